"""The calibrated preset (conf/physics/calibrated.yaml): constants, the stack of a planned run, and its search."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from models.packing import field_names
from models.transformer_point import Constants, Software
from pipeline.catalogue_load import fail, read_sources
from pipeline.physics import PhysicsEntry, load_physics
from pipeline.transformer_layouts import TransformerSearchRules

TEXT_KEYS = ("name", "notes")
BY_PRECISION = ("operand_byte", "cast_byte", "is_4bit", "gather_byte")  # settled by the precision of the run
LISTS = {"microbatch_sequences": int, "interleave_counts": int, "recompute_layer_fractions": float}
LISTS |= {"sharding_stages": int}


@dataclass(frozen=True, kw_only=True)
class CalibratedEntry:
    """One preset of the calibrated model."""

    id: str
    constants: Mapping[str, float]
    software: Mapping[str, float]
    rules: TransformerSearchRules

    @cached_property
    def constants_bundle(self) -> Constants:
        """The constants as the cost model takes them."""
        return constants_bundle(self.constants)


def constants_bundle(constants: Mapping[str, float]) -> Constants:
    """Return constants as the bundle that the cost model takes."""
    return Constants(**{name: jax.device_put(np.array(value, dtype=np.float64)) for name, value in constants.items()})


def load_preset(mapping: Mapping[str, Any], file: str, entry_id: str) -> PhysicsEntry | CalibratedEntry:
    """Return a checked physics preset of either kind; one with `software` is of the calibrated kind."""
    return load_calibrated(mapping, file, entry_id) if "software" in mapping else load_physics(mapping, file, entry_id)


def load_calibrated(mapping: Mapping[str, Any], file: str, entry_id: str) -> CalibratedEntry:
    """Return a checked calibrated preset; raises UserError in one line."""
    names = field_names(Constants)
    for key in mapping:
        if key not in (*names, *TEXT_KEYS, "software", "search", "sources"):
            raise fail(file, str(key), mapping[key], "unknown key", f"known keys: {', '.join(names)}")
    constants = {name: _number(file, name, mapping.get(name)) for name in names}
    wanted = [name for name in field_names(Software) if name not in BY_PRECISION]
    software = _numbers(file, "software", mapping.get("software"), wanted)
    sources = read_sources(mapping.get("sources"), file)
    for name in (*names, "software", "search"):
        if name not in sources:
            raise fail(file, f"sources.{name}", None, "no source is given", "say where the number comes from")
    rules = _rules(file, mapping.get("search"))
    return CalibratedEntry(id=entry_id, constants=constants, software=software, rules=rules)


def _number(file: str, name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise fail(file, name, value, "must be a number >= 0", "give the number, in base units")
    return float(value)


def _mapping(file: str, section: str, given: object, wanted: list[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise fail(file, section, given, "must be a mapping", "copy it from conf/physics/calibrated.yaml")
    for key in given:
        if key not in wanted:
            raise fail(file, f"{section}.{key}", given[key], "unknown key", f"known keys: {', '.join(wanted)}")
    return given


def _numbers(file: str, section: str, given: object, wanted: list[str]) -> dict[str, float]:
    checked = _mapping(file, section, given, wanted)
    return {name: _number(file, f"{section}.{name}", checked.get(name)) for name in wanted}


def _rules(file: str, given: object) -> TransformerSearchRules:
    wanted = list(TransformerSearchRules.__dataclass_fields__)
    checked = _mapping(file, "search", given, wanted)
    values: dict[str, Any] = {}
    for name in wanted:
        value = checked.get(name)
        if name in LISTS:
            if not isinstance(value, list) or not value:
                raise fail(file, f"search.{name}", value, "must be a list of numbers", "as in [1, 2, 4]")
            values[name] = tuple(LISTS[name](_number(file, f"search.{name}", each)) for each in value)
        else:
            number = _number(file, f"search.{name}", value)
            values[name] = number if name == "zero_bubble_ratio" else int(number)
    return TransformerSearchRules(**values)
