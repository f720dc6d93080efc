"""Model families: scaling rules read from conf/model entries of kind `family`."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.scaling import ScalingRules
from pipeline.catalogue_load import fail, read_sources

TEXT_KEYS = ("kind", "name", "notes")
BATCH_RULES = ("critical_batch", "compute_power_law", "fixed")
MAY_BE_ZERO = ("expert_coefficient", "batch_coefficient_token", "batch_exponent", "depth_exponent")


def load_family(mapping: Mapping[str, Any], file: str) -> ScalingRules:
    """Return the checked scaling rules of a family; raises UserError in one line."""
    declared = {each.name: each for each in fields(ScalingRules)}
    for key in mapping:
        if key not in declared and key not in (*TEXT_KEYS, "sources"):
            raise fail(file, str(key), mapping[key], "unknown key", f"known keys: {', '.join(declared)}")
    values: dict[str, Any] = {}
    for name, each in declared.items():
        if name not in mapping and each.default is MISSING:
            raise fail(file, name, None, "is missing and required", "copy it from conf/model/epoch_dense.yaml")
        values[name] = _value(file, name, mapping[name])
    sources = read_sources(mapping.get("sources"), file)
    for name in values:
        if name not in sources:
            raise fail(file, f"sources.{name}", None, "no source is given", "say where the number comes from")
    return ScalingRules(**values)


def _value(file: str, name: str, value: Any) -> Any:
    if name in ("width_factors", "rounding_factors"):
        if not isinstance(value, list) or not value or not all(isinstance(v, int) and v > 0 and v % 2 for v in value):
            raise fail(file, name, value, "must be a list of odd whole numbers > 0", "as in [1, 3, 5, 7, 9]")
        return tuple(value)
    if name == "batch_rule":
        if value not in BATCH_RULES:
            raise fail(file, name, value, f"must be one of {', '.join(BATCH_RULES)}", "choose one")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise fail(file, name, value, "must be a number", "write it in base units")
    if value < 0 or (value == 0 and name not in MAY_BE_ZERO):
        raise fail(file, name, value, "must be > 0", "correct the value")
    whole = ScalingRules.__annotations__[name] is int
    if whole and value != int(value):
        raise fail(file, name, value, "must be a whole number", "round it")
    return int(value) if whole else float(value)


def kept_sizes(
    training_flop: NDArray[np.float64], *, minimum: float, maximum: float, near: tuple[float, ...]
) -> NDArray[np.bool_]:
    """Return which sizes a run keeps: those in the bounds, and of them the first at or above each `near`."""
    inside = (training_flop >= minimum) & (training_flop <= maximum)
    if not near:
        return inside
    wanted = [training_flop[inside & (training_flop >= size)].min(initial=np.inf) for size in near]
    return inside & np.isin(training_flop, wanted)
