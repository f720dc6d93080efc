"""From a range of scenario ids to a table of results: decode, search, evaluate the winners."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.packing import layout_names, placement_names
from pipeline.costs import cost_columns
from pipeline.distinct import search_distinct
from pipeline.grid import Block, Grid, scenario_table
from pipeline.local_steps import with_sites
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.search import winner_outcomes
from pipeline.search_layouts import candidate_count
from pipeline.search_table import ScenarioTable, Winners, first_counts
from pipeline.transformer_table import transformer_candidates, transformer_table

Table = dict[str, NDArray[Any]]
SCENARIO_COLUMNS = (
    "training_flop",
    "parameter_count",
    "d_model",
    "d_ff",
    "layer_count",
    "expert_count",
    "sequence_token",
    "global_batch_token",
    "dataset_token",
    "run_limit_s",
    "peak_flop_per_s",
    "sustained_fraction",
    "hbm_byte",
)
LAYOUT_COLUMNS = (
    "data_ranks",
    "tensor_model_ranks",
    "tensor_ff_ranks",
    "pipeline_ranks",
    "expert_ranks",
    "microbatch_count",
    "interleave_count",
    "is_zero_bubble",
)


def work_units(grid: Grid) -> list[range]:
    """Return the study's work units: contiguous ranges of scenario ids that cover it, in order."""
    size = grid.study.unit_scenarios
    return [range(start, min(start + size, grid.size)) for start in range(0, grid.size, size)]


def run_unit(grid: Grid, unit: range) -> Table:
    """Return one row for each scenario of the unit, in order of scenario id."""
    tables = []
    for block, inside, ids in grid.parts(unit.start, unit.stop):
        table = block_table(block, inside, ids)
        tables.append(table | block.labels(table["scenario_id"].astype(np.int64) - (ids[0] - inside[0])))
    names = list(dict.fromkeys(name for table in tables for name in table))
    return {name: np.concatenate([_column(table, name) for table in tables]) for name in names}


def _column(table: Table, name: str) -> NDArray[Any]:
    """Return a column, or zeros where a block's network has no such level."""
    return table[name] if name in table else np.zeros(len(table["scenario_id"]))


def block_table(block: Block, inside: NDArray[np.int64], ids: NDArray[np.int64]) -> Table:
    """Return the winners of some scenarios of one block, with everything a reader of the row needs."""
    columns = block.columns(inside)
    table_of = partial(winner_table, block, ids)
    table = with_sites(table_of, columns, block.level_count) if "local_step_count" in columns else table_of(columns)
    table["series_id"] = (ids - inside + inside % (block.size // block.point_count)).astype(np.uint64)
    return table


def winner_table(block: Block, ids: NDArray[np.int64], columns: Mapping[str, NDArray[np.float64]]) -> Table:
    """Return the best layout of each of some scenarios of one block, given by their numbers."""
    if isinstance(block.physics, CalibratedEntry):
        return transformer_table(block, block.physics, columns, ids, "best")
    scenarios = scenario_table(block, columns)
    winners = search_distinct(scenarios, block.physics.physics, block.physics.rules)
    outcome = winner_outcomes(scenarios, winners, block.physics.physics)
    return result_columns(block, ids, columns, scenarios, winners, outcome)


def result_columns(
    block: Block,
    ids: NDArray[np.int64],
    columns: Mapping[str, NDArray[np.float64]],
    scenarios: ScenarioTable,
    winners: Winners,
    outcome: Mapping[str, NDArray[np.float64]],
) -> Table:
    """Return the result table: keys, scenario, layout, placement, outcome. Infeasible rows hold null (NaN) outcomes."""
    size = len(ids)
    table: Table = {"scenario_id": ids.astype(np.uint64)}
    for name in ("hardware", "topology", "model", "precision"):
        table[name] = np.full(size, getattr(block, name))
    table["physics"] = np.full(size, block.physics.id)
    table |= {name: columns[name] for name in SCENARIO_COLUMNS}
    for name, _ in block.axes:
        base = name.removesuffix("_ratio")
        table[base] = columns[base]
    table["accelerator_count"] = winners.accelerator_count
    table["is_feasible"] = winners.is_feasible
    table["infeasible_reason"] = winners.infeasible_reason
    table["candidate_count"] = winners.candidate_count
    layout = dict(zip(layout_names(), winners.layout, strict=True))
    table |= {name: layout[name].astype(np.int64) for name in LAYOUT_COLUMNS}
    placement = dict(zip(placement_names(block.level_count), winners.placement, strict=True))
    table |= {name: values.astype(np.int64) for name, values in placement.items()}
    for name, values in outcome.items():
        spread = np.full(size, np.nan)
        spread[winners.is_feasible] = values
        table[name] = spread
    table["run_time_s"] = table["step_time_s"] * scenarios.steps
    table |= cost_columns(columns, table["accelerator_count"], table["run_time_s"])
    return table


def count(grid: Grid) -> tuple[int, int]:
    """Return (scenarios, candidates): candidates of the first cluster size that each scenario tries.

    Larger clusters are tried only where that one does not end in time, so this is the least the search looks at.
    """
    candidates = 0
    for block in grid.blocks:
        columns = block.columns(np.arange(block.size, dtype=np.int64))
        if isinstance(block.physics, CalibratedEntry):
            candidates += transformer_candidates(columns, block.physics.rules)
            continue
        table = scenario_table(block, columns)
        counts = first_counts(table)
        keys = np.stack([table.shape_index, table.network_index, counts])
        distinct, repeats = np.unique(keys, axis=1, return_counts=True)
        for (shape, network, accelerators), times in zip(distinct.T, repeats, strict=True):
            key = (table.shapes[shape], int(accelerators), table.group_ranks[network])
            candidates += int(times) * candidate_count(*key, block.physics.rules)
    return grid.size, candidates
