"""Is every number sourced, and is it plausible? The questions of `catalogue check`, each finding one line.

A finding names file, key, value, rule and remedy.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from pipeline.catalogue_bands import implausible
from pipeline.catalogue_schema import UNCERTAIN_KINDS, Chip, ModelShape, Published, Source, Topology, number_keys

PRINTED_TOLERANCE = 0.006  # data sheets print three digits
PRINTED_UNITS = {
    "B": 1.0,
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 2.0**10,
    "MiB": 2.0**20,
    "GiB": 2.0**30,
    "GB/s": 1e9,
    "TB/s": 1e12,
    "PB/s": 1e15,
    "Gb/s": 1e9 / 8,
    "TFLOP/s": 1e12,
    "PFLOP/s": 1e15,
    "TOPS": 1e12,
    "MHz": 1e6,
    "GHz": 1e9,
    "billion": 1e9,
    "nm": 1.0,
    "mm2": 1.0,
    "W": 1.0,
    "us": 1e-6,
    "": 1.0,
}
CACHE_UNITS = {"KB": 2.0**10, "MB": 2.0**20}  # on-chip memories are sized in powers of two
MISTAKES = (
    (8.0, "typed in bits?"),
    (1 / 8, "bits taken for bytes?"),
    (1e-3, "typed in thousands (or GB for MB)?"),
    (1e3, "thousand times too much?"),
    (1e-9, "typed in giga-units instead of base units?"),
    (1e-12, "typed in tera-units instead of base units?"),
    (2.0**30 / 1e9, "GiB taken for GB?"),
    (1e9 / 2.0**30, "GB taken for GiB?"),
    (2.0, "both directions, or sparse, counted?"),
    (0.5, "half of what is printed"),
)


def printed_value(text: str, key: str) -> float | None:
    """Return what an `as_printed` means in base units, or None if it is not one plain number with a known unit."""
    found = re.fullmatch(r"\$?([0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?) ?([A-Za-z0-9/]*)", text.strip())
    if not found or found[2] not in PRINTED_UNITS:
        return None
    is_cache = key.startswith(("l2_byte", "shared_memory_byte_per_m", "register")) and not key.endswith("_s")
    unit = CACHE_UNITS.get(found[2]) if is_cache else None
    return float(found[1].replace(",", "")) * (unit or PRINTED_UNITS[found[2]])


def misprinted(file: str, key: str, value: float, source: Source) -> Iterator[str]:
    """Yield the finding if a number differs from what its source prints (unless it is derived from it)."""
    printed = printed_value(source.as_printed, key)
    if source.kind == "derived" or not printed or abs(value / printed - 1) <= PRINTED_TOLERANCE:
        return
    guess = next((words for factor, words in MISTAKES if abs(value / printed / factor - 1) <= PRINTED_TOLERANCE), "")
    yield (
        f"{file}: {key} = {value:.6g}: its source prints {source.as_printed!r}, which is {printed:.6g}; "
        f"{guess + ' ' if guess else ''}correct it, or say how it is derived"
    )


def entry_numbers(entry: Any) -> dict[str, Any]:
    """Return the non-null numbers of an entry by the key its source record has."""
    numbers = {key: getattr(entry, key) for key in number_keys(type(entry)) if getattr(entry, key) is not None}
    if isinstance(entry, Chip) and entry.network_levels:
        numbers["network_levels"] = entry.network_levels
    if isinstance(entry, Topology):
        for index, level in enumerate(entry.levels):
            keys = [f.name for f in fields(level) if f.metadata["type"] is float and getattr(level, f.name) is not None]
            numbers |= {f"levels[{index}].{key}": getattr(level, key) for key in keys}
    if isinstance(entry, ModelShape):
        published = {key: getattr(entry.published, key) for key in number_keys(Published)}
        numbers |= {f"published.{key}": value for key, value in published.items() if value is not None}
    return numbers


def source_of(entry: Any, key: str) -> Source | None:
    """Return the source record of a number: its own, or that of its block, or that of the whole entry (`all`)."""
    return entry.sources.get(key) or entry.sources.get(key.split(".")[0]) or entry.sources.get("all")


def unsourced(entry: Any, references: Mapping[str, Any]) -> Iterator[str]:
    """Yield every number without a source, every source without a number, every reference that leads nowhere."""
    numbers = entry_numbers(entry)
    for key, value in numbers.items():
        source = source_of(entry, key)
        if source is None:
            yield f"{entry.file}: {key} = {value!r}: has no source; add sources.{key} with ref, where and kind"
        elif isinstance(value, float):
            yield from misprinted(entry.file, key, value, source)
    blocks = {"all", "published"} | {key.split(".")[0] for key in numbers}
    for key, source in entry.sources.items():
        if source.ref not in references:
            yield f"{entry.file}: sources.{key}.ref = {source.ref!r}: not in sources.yaml; add it there or correct it"
        if key not in numbers and key not in blocks:
            yield f"{entry.file}: sources.{key}: there is no such number in the entry; remove it or correct the key"


def uncertain_keys(entry: Any) -> list[str]:
    """Return the numbers of an entry that rest on an assumption or on what nobody has checked."""
    found = [(key, source_of(entry, key)) for key in entry_numbers(entry)]
    return [key for key, source in found if source is not None and source.kind in UNCERTAIN_KINDS]


def findings(entry: Any, references: Mapping[str, Any]) -> list[str]:
    """Return everything that is wrong with an entry."""
    return [*unsourced(entry, references), *implausible(entry)]
