"""From the mapping in a YAML file to a checked entry: every mistake is one line with file, key, value, rule, remedy."""

from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any, TypeVar

from pipeline.catalogue_schema import (
    SOURCE_KINDS,
    UNCERTAIN_KINDS,
    Chip,
    ModelShape,
    NetworkLevelSpec,
    Published,
    Source,
    Topology,
)
from pipeline.errors import UserError, closest, short

Entry = TypeVar("Entry")
BLOCKS = ("all", "published")  # source records of many numbers at once: no single range
LEVEL_COUNT_LIMIT = 4


def fail(file: str, key: str, value: object, rule: str, remedy: str) -> UserError:
    """Return the one-line error."""
    return UserError(f"{file}: {key} = {short(value)}: {rule}; {remedy}")


def read_value(declared: Field, value: object, file: str, key: str) -> object:
    """Return a value of the declared type and range, or refuse it."""
    metadata = declared.metadata
    if value is None:
        return None
    if metadata["type"] is str:
        if not isinstance(value, str):
            raise fail(file, key, value, "must be text", 'put it in quotes, as in "2022-09"')
        if metadata["among"] and value not in metadata["among"]:
            raise fail(file, key, value, f"must be one of {', '.join(metadata['among'])}", "choose one of them")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fail(file, key, value, "must be a number", "write it as 9.89e+14, in base units, or null if unknown")
    low, high = metadata["low"], metadata["high"]
    if not low <= value <= high:
        limit = f"must be >= {low:g}" if value < low else f"must be <= {high:g}"
        raise fail(
            file, key, value, f"{limit} {metadata['unit']}", f"correct it: {metadata['meaning']}, in {metadata['unit']}"
        )
    return float(value)


def read_fields(
    schema: type, mapping: object, file: str, extra: tuple[str, ...] = (), prefix: str = ""
) -> dict[str, Any]:
    """Return the checked scalar values of a mapping; `extra` are further keys that the caller reads itself."""
    if not isinstance(mapping, Mapping):
        raise fail(
            file,
            prefix.rstrip(".") or "file",
            mapping,
            "must be a mapping of keys to values",
            "see the README's recipe",
        )
    known = {f.name: f for f in fields(schema) if "type" in f.metadata}
    for key in mapping:
        if key not in known and key not in extra:
            close = closest(str(key), [*known, *extra], limit=1)
            remedy = f"did you mean {close[0]}?" if close else f"remove it; known keys: {', '.join([*known, *extra])}"
            raise fail(file, f"{prefix}{key}", mapping[key], "unknown key", remedy)
    values = {}
    for key, declared in known.items():
        values[key] = read_value(declared, mapping.get(key), file, prefix + key)
        if values[key] is None and declared.metadata["required"]:
            meaning, unit = declared.metadata["meaning"], declared.metadata.get("unit", "text")
            remedy = f"give it ({meaning}, in {unit}); if no source has it, as kind assumption with low and high"
            raise fail(file, prefix + key, None, "is missing and required", remedy)
    return values


def read_source(record: object, file: str, key: str) -> Source:
    """Return one source record, checked."""
    place = f"sources.{key}"
    allowed = [f.name for f in fields(Source)]
    if not isinstance(record, Mapping):
        raise fail(file, place, record, "must be a mapping", "write {ref: ..., where: ..., as_printed: ..., kind: ...}")
    for name in record:
        if name not in allowed:
            raise fail(file, f"{place}.{name}", record[name], "unknown key", f"known keys: {', '.join(allowed)}")
    if not record.get("ref"):
        raise fail(file, f"{place}.ref", record.get("ref"), "is missing", "name an id of conf/sources.yaml")
    if record.get("kind") not in SOURCE_KINDS:
        raise fail(file, f"{place}.kind", record.get("kind"), f"must be one of {', '.join(SOURCE_KINDS)}", "choose one")
    uncertain = record["kind"] in UNCERTAIN_KINDS
    has_range = all(isinstance(record.get(end), int | float) for end in ("low", "high"))
    if uncertain and not has_range and key not in BLOCKS:
        raise fail(file, place, record["kind"], "needs low and high", "say how far off the number may be")
    if has_range and not record["low"] <= record["high"]:
        raise fail(file, place, record["low"], f"low must be <= high ({record['high']:g})", "swap them")
    return Source(**{name: value for name, value in record.items() if value is not None})


def read_sources(mapping: object, file: str) -> dict[str, Source]:
    """Return the source records of an entry by key (dotted for keys inside a block)."""
    if mapping is None:
        return {}
    if not isinstance(mapping, Mapping):
        raise fail(file, "sources", mapping, "must be a mapping from key to source record", "see the README's recipe")
    return {str(key): read_source(record, file, str(key)) for key, record in mapping.items()}


def read_levels(levels: object, file: str, key: str, *, is_chip: bool) -> tuple[NetworkLevelSpec, ...]:
    """Return the network levels of a chip or a topology, lowest first."""
    if not isinstance(levels, list | tuple) or not 1 <= len(levels) <= LEVEL_COUNT_LIMIT:
        raise fail(
            file, key, levels, f"must be a list of 1 to {LEVEL_COUNT_LIMIT} levels, lowest first", "see conf/topology"
        )
    specs = []
    for index, level in enumerate(levels):
        place, is_last = f"{key}[{index}]", index == len(levels) - 1
        renamed = (
            {"takes_from" if name == "from" else name: v for name, v in level.items()}
            if isinstance(level, Mapping)
            else level
        )
        spec = NetworkLevelSpec(**read_fields(NetworkLevelSpec, renamed, file, prefix=f"{place}."))
        if is_last and spec.group_ranks is not None:
            raise fail(
                file,
                f"{place}.group_ranks",
                spec.group_ranks,
                "the last level is unbounded",
                "set it to null or add a level",
            )
        needed = ["one_way_byte_per_s", "latency_s"] + ([] if is_last else ["group_ranks"])
        for name in needed:
            if getattr(spec, name) is None and (is_chip or spec.takes_from is None):
                raise fail(file, f"{place}.{name}", None, "is missing", "give it, or from: scale_up or scale_out")
        specs.append(spec)
    return tuple(specs)


def load_chip(mapping: Mapping[str, Any], file: str) -> Chip:
    """Return a checked accelerator; its id is the name of its file."""
    values = read_fields(Chip, mapping, file, extra=("sources", "network_levels"))
    levels = mapping.get("network_levels")
    chip = Chip(
        id=entry_id(file),
        file=file,
        network_levels=() if levels is None else read_levels(levels, file, "network_levels", is_chip=True),
        sources=read_sources(mapping.get("sources"), file),
        **values,
    )
    if not any(value for name, value in values.items() if name.startswith("peak_dense_")):
        raise fail(file, "peak_dense_*_flop_per_s", None, "no peak rate at any precision", "give at least one")
    return chip


def load_topology(mapping: Mapping[str, Any], file: str) -> Topology:
    """Return a checked network."""
    values = read_fields(Topology, mapping, file, extra=("sources", "levels", "only_hardware"))
    only = mapping.get("only_hardware") or []
    if not isinstance(only, list | tuple) or not all(isinstance(each, str) for each in only):
        raise fail(file, "only_hardware", only, "must be a list of hardware ids", "as in [gtx580]")
    levels = read_levels(mapping.get("levels"), file, "levels", is_chip=False)
    return Topology(
        id=entry_id(file),
        file=file,
        levels=levels,
        only_hardware=tuple(only),
        sources=read_sources(mapping.get("sources"), file),
        **values,
    )


def load_model(mapping: Mapping[str, Any], file: str) -> ModelShape:
    """Return a checked model shape (kinds shape, convnet, compute_only; families are read elsewhere)."""
    values = read_fields(ModelShape, mapping, file, extra=("sources", "published"))
    published = read_fields(Published, mapping.get("published") or {}, file, prefix="published.")
    sources = read_sources(mapping.get("sources"), file)
    return ModelShape(id=entry_id(file), file=file, published=Published(**published), sources=sources, **values)


def entry_id(file: str) -> str:
    """Return the id of an entry: the name of its file without folder and ending."""
    return file.rsplit("/", 1)[-1].removesuffix(".yaml")
