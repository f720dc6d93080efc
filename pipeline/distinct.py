"""Scenarios that differ in prices alone have one best layout: search each distinct one once."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.point import Physics
from pipeline.layouts import SearchRules
from pipeline.search import ScenarioTable, Winners, search

PER_SCENARIO = (
    "shape_index",
    "network_index",
    "run_limit_s",
    "steps",
    "accelerator_count",
    "floor_accelerators",
    "step_floor_s",
)


def search_distinct(table: ScenarioTable, physics: Physics, rules: SearchRules) -> Winners:
    """Return the winner of each scenario, as `search` does; equal scenarios are searched once."""
    rows = np.concatenate([table.matrix, [getattr(table, name) for name in PER_SCENARIO]])
    _, first, again = np.unique(rows, axis=1, return_index=True, return_inverse=True)
    order = np.argsort(first)  # as they stand, so that nothing changes where all are distinct
    first, again = first[order], np.argsort(order)[again.ravel()]
    if len(first) == rows.shape[1]:
        return search(table, physics, rules)
    numbers: dict[str, Any] = {name: getattr(table, name)[first] for name in PER_SCENARIO}
    winners = search(replace(table, matrix=table.matrix[:, first], **numbers), physics, rules)
    return Winners(**{each.name: _spread(getattr(winners, each.name), again) for each in fields(Winners)})


def _spread(values: NDArray[Any], again: NDArray[np.intp]) -> NDArray[Any]:
    return values[..., again]
