"""Physics entries (conf/physics): the constants and choices of the cost model, and the search that goes with them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import jax
import numpy as np

from models.packing import field_names
from models.point import Physics
from pipeline.catalogue_load import fail, read_sources
from pipeline.layouts import SearchRules

TEXT_KEYS = ("name", "notes")


@dataclass(frozen=True, kw_only=True)
class PhysicsEntry:
    """One preset of the model."""

    id: str
    constants: Mapping[str, float]
    rules: SearchRules

    @cached_property
    def physics(self) -> Physics:
        """The constants as the cost model takes them."""
        return physics_bundle(self.constants)


def physics_bundle(constants: Mapping[str, float]) -> Physics:
    """Return constants as the bundle that the cost model takes."""
    # device_put compiles nothing, jnp.asarray a small program
    return Physics(**{name: jax.device_put(np.array(value, dtype=np.float64)) for name, value in constants.items()})


def load_physics(mapping: Mapping[str, Any], file: str, entry_id: str) -> PhysicsEntry:
    """Return a checked physics preset; raises UserError in one line."""
    names = field_names(Physics)
    for key in mapping:
        if key not in (*names, *TEXT_KEYS, "search", "sources"):
            raise fail(file, str(key), mapping[key], "unknown key", f"known keys: {', '.join(names)}")
    constants = {name: _non_negative(file, name, mapping.get(name)) for name in names}
    search = mapping.get("search") or {}
    rule_names = tuple(each.name for each in fields(SearchRules))
    for key in search:
        if key not in rule_names:
            raise fail(file, f"search.{key}", search[key], "unknown key", f"known keys: {', '.join(rule_names)}")
    rules = {name: int(_non_negative(file, f"search.{name}", search.get(name))) for name in rule_names}
    sources = read_sources(mapping.get("sources"), file)
    for name in (*names, "search"):
        if name not in sources:
            raise fail(file, f"sources.{name}", None, "no source is given", "say where the number comes from")
    return PhysicsEntry(id=entry_id, constants=constants, rules=SearchRules(**rules))


def _non_negative(file: str, name: str, value: object) -> float:
    if value is None:
        raise fail(file, name, None, "is missing and required", "give the number")
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise fail(file, name, value, "must be a number >= 0", "correct the value")
    return float(value)
