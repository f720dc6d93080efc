"""Is every number sourced, and is it plausible? The questions of `catalogue check`, each finding one line.

A finding names file, key, value, rule and remedy. Bands are wide: they catch a wrong unit, not a wrong digit.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

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


@dataclass(frozen=True)
class Band:
    """A plausible range of something computed from a chip, with its reason."""

    key: str
    low: float
    high: float
    unit: str
    reason: str


CHIP_BANDS = (
    Band("hbm_byte", 1e9, 1e12, "B", "accelerators carry 1 GB to 1 TB"),
    Band("hbm_byte_per_s", 1e11, 1e14, "B/s", "0.1 TB/s (2010) to 22 TB/s (2026); a wafer of SRAM is the exception"),
    Band("l2_byte", 2.5e5, 2e9, "B", "caches have 0.5 to 512 MiB"),
    Band("process_node_nm", 1, 90, "nm", "90 nm (2006) to 2 nm (2026)"),
    Band("die_area_mm2", 100, 3000, "mm2", "one to four reticles of about 830 mm2"),
    Band("transistor_count", 1e9, 1e12, "1", "3e9 (2010) to 3.4e11 (2026)"),
    Band("tdp_w", 50, 3000, "W", "70 W (T4) to 1800 W (Rubin)"),
    Band("boost_clock_hz", 3e8, 3.5e9, "Hz", "0.7 to 2.6 GHz"),
    Band("scale_up_latency_s", 2e-7, 1e-4, "s", "a hop takes 0.3 us at least, software tens of us"),
    Band("scale_out_latency_s", 3e-7, 1e-3, "s", "an adapter takes 0.5 us at least"),
    Band("matmul_latency_s", 1e-7, 1e-4, "s", "a kernel launch takes microseconds"),
)
FLOP_PER_BYTE = Band(
    "peak / hbm_byte_per_s", 5, 1000, "FLOP/B", "8 (GTX 580) to 650 (BR100): memory is built to feed the units"
)
SCALE_UP_SHARE = Band("scale_up_one_way_byte_per_s / hbm_byte_per_s", 0.005, 0.6, "1", "a link is slower than memory")
USD_PER_TFLOP = Band("release_price_usd / peak TFLOP/s", 2.0, 4000.0, "USD/TFLOP/s", "9 (TPU v5e) to 1957 (K20X)")
USD_PER_CHIP = Band("release_price_usd", 400.0, 2e5, "USD", "500 (GTX 580) to 60,000; a wafer is the exception")
EXCEPTIONS = {"cerebras_wse3": "a wafer, not a chip"}
BEST_PORT_BYTE_PER_S = ((2010, 6.8e9), (2014, 12.5e9), (2018, 25e9), (2021, 50e9), (2024, 100e9), (2026, 200e9))
BEST_PORT_SHARE = 1.6  # several adapters may serve one accelerator


def outside(file: str, value: float, band: Band) -> Iterator[str]:
    """Yield the finding if a value lies outside its band."""
    if not band.low <= value <= band.high:
        yield (
            f"{file}: {band.key} = {value:.4g} {band.unit}: outside {band.low:g} to {band.high:g} ({band.reason}); "
            f"check the unit: base units, bytes not bits, GB = 1e9, dollars not thousands"
        )


def implausible_chip(chip: Chip) -> Iterator[str]:
    """Yield what cannot be right about a chip."""
    if chip.id in EXCEPTIONS or chip.reference_name:
        return
    for band in CHIP_BANDS:
        value = getattr(chip, band.key)
        if value is not None:
            yield from outside(chip.file, value, band)
    peaks = [getattr(chip, f"peak_dense_{p}_flop_per_s") for p in ("bf16", "fp16", "fp32")]
    peak = max(p for p in peaks if p) if any(peaks) else None
    if peak and chip.hbm_byte_per_s:
        yield from outside(chip.file, peak / chip.hbm_byte_per_s, FLOP_PER_BYTE)
    if peak and chip.release_price_usd:
        yield from outside(chip.file, chip.release_price_usd, USD_PER_CHIP)
        yield from outside(chip.file, chip.release_price_usd / (peak / 1e12), USD_PER_TFLOP)
    if chip.scale_up_one_way_byte_per_s and chip.hbm_byte_per_s:
        yield from outside(chip.file, chip.scale_up_one_way_byte_per_s / chip.hbm_byte_per_s, SCALE_UP_SHARE)
    if chip.hbm_byte and (chip.hbm_byte / 5e8) % 1:
        yield (
            f"{chip.file}: hbm_byte = {chip.hbm_byte:.6g}: not a multiple of 0.5 GB, as memories are sold; "
            "GB = 1e9 B, so write 80 GB as 8.0e+10 even where the vendor means GiB"
        )
    if chip.scale_out_one_way_byte_per_s and chip.released:
        year = int(chip.released[:4])
        best = max(rate for since, rate in BEST_PORT_BYTE_PER_S if since <= max(year, 2010))
        band = Band(
            "scale_out_one_way_byte_per_s",
            1e8,
            BEST_PORT_SHARE * best,
            "B/s",
            f"the best adapter of {year} gives {best:g}",
        )
        yield from outside(chip.file, chip.scale_out_one_way_byte_per_s, band)


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
    implausible = list(implausible_chip(entry)) if isinstance(entry, Chip) else []
    return [*unsourced(entry, references), *implausible]
