"""What a search takes and what it gives back."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.packing import DEGREES, layout_names
from pipeline.layouts import Shape

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ScenarioTable:
    """Scenarios to search, one entry each, all on networks of one depth and under one physics."""

    level_count: int
    matrix: Float64  # rows of models.packing.scenario_names, a column a scenario
    shapes: tuple[Shape, ...]
    shape_index: Int64
    group_ranks: tuple[tuple[float, ...], ...]  # bounded levels of each distinct network
    network_index: Int64
    run_limit_s: Float64
    steps: Float64  # optimiser steps of the whole run
    accelerator_count: Int64  # fixed count, or 0: the smallest experts x 2^i that ends in time
    floor_accelerators: Float64  # training FLOP / (limit x sustained rate of one): no smaller cluster can do it
    step_floor_s: Float64  # a step takes at least this long on any number of accelerators


@dataclass(frozen=True, kw_only=True)
class Winners:
    """The result of a search, one entry a scenario; layout columns are 0 where nothing is feasible."""

    accelerator_count: Int64
    is_feasible: NDArray[np.bool_]
    infeasible_reason: NDArray[np.str_]
    layout: Float64  # rows of layout_names
    placement: Float64  # rows of placement_names
    candidate_count: Int64
    placed_count: Int64
    last_count: Int64  # the largest cluster that was searched, 0 if none was


def no_search(table: ScenarioTable) -> Winners:
    """Return what a search finds that does not look at a single layout: fixed clusters, nothing feasible."""
    size = len(table.accelerator_count)
    nothing = np.zeros(size, dtype=np.int64)
    return Winners(
        accelerator_count=nothing,
        is_feasible=np.zeros(size, dtype=bool),
        infeasible_reason=np.full(size, "no_layout"),
        layout=np.zeros((len(layout_names()), size)),
        placement=np.zeros((len(DEGREES) * table.level_count, size)),
        candidate_count=nothing,
        placed_count=nothing,
        last_count=table.accelerator_count,
    )


def first_counts(table: ScenarioTable) -> Int64:
    """Return the first cluster size to try: the fixed one, or the smallest experts x 2^i that could end in time."""
    experts = np.array([shape.expert_count for shape in table.shapes], dtype=np.int64)[table.shape_index]
    exponent = np.ceil(np.log2(np.maximum(table.floor_accelerators / experts, 1.0))).astype(np.int64)
    below = experts * 2.0 ** (exponent - 1) >= table.floor_accelerators
    exponent = np.where(below & (exponent > 0), exponent - 1, exponent)
    return np.where(table.accelerator_count > 0, table.accelerator_count, experts << exponent)
