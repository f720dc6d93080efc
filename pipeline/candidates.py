"""Every candidate of a scenario as a row (keep=all): layouts in their order, placements in theirs, in blocks of rows.

A candidate is a layout with a placement that divides it, at every cluster size that the search tries. Those that do
not fit in memory or do not end in time are rows too, flagged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.evaluate import costs_at_times, placement_outcomes
from models.outcome import Outcome
from models.packing import DEGREES, field_names, layout_names
from models.point import Physics
from pipeline.costs import UNKNOWN_IF_ZERO
from pipeline.distinct import PER_SCENARIO
from pipeline.grid import Block
from pipeline.layouts import SearchRules, placements, used_group_ranks
from pipeline.physics import PhysicsEntry
from pipeline.result_columns import LAYOUT_COLUMNS, POINT_BITS, Table, block_texts, result_columns, scenario_names
from pipeline.search_layouts import degree_limits, degree_rows, packed_layouts
from pipeline.search_table import ScenarioTable, Winners, first_counts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
BLOCK_CANDIDATES = 1 << 18
"""Candidates made in one go: bounds the memory of a scenario however many it has."""
FURTHER_COLUMNS = ("constant_dollar_ratio",)
REASONS = ("", "memory", "time")


def constant_text(value: str, size: int) -> pa.DictionaryArray:
    """Return a column of one text."""
    return pa.DictionaryArray.from_arrays(np.zeros(size, dtype=np.int32), pa.array([value]))


def cluster_sizes(table: ScenarioTable, winners: Winners, scenario: int) -> list[int]:
    """Return the cluster sizes that the search of a scenario tried, smallest first."""
    first, last = int(first_counts(table)[scenario]), int(winners.last_count[scenario])
    sizes = []
    while first <= last:
        sizes.append(first)
        first *= 2
    return sizes


def candidate_tables(
    block: Block,
    physics: PhysicsEntry,
    ids: Int64,
    columns: Mapping[str, Float64],
    scenarios: ScenarioTable,
    winners: Winners,
) -> Iterator[Table]:
    """Yield every candidate of some scenarios of one block as rows; a scenario without any is one empty row."""
    for scenario, scenario_id in enumerate(ids):
        sizes = cluster_sizes(scenarios, winners, scenario)
        found = candidate_blocks(scenarios, scenario, sizes, columns, physics.physics, physics.rules)
        number = 0
        for table in found:
            rows = len(table["step_time_s"])
            table |= {name: constant_text(text, rows) for name, text in block_texts(block).items()}
            numbers = [*scenario_names(block), *(name for name in FURTHER_COLUMNS if name in columns)]
            table |= {name: np.full(rows, columns[name][scenario]) for name in numbers}
            table["candidate_count"] = np.full(rows, winners.candidate_count[scenario])
            table["scenario_id"] = np.full(rows, scenario_id, dtype=np.uint64)
            first = (int(scenario_id) << POINT_BITS) + number
            table["point_id"] = np.arange(first, first + rows, dtype=np.uint64)
            number += rows
            yield table
        if number == 0:
            yield _empty_row(block, scenario_id, columns, scenarios, winners, scenario)


def _empty_row(
    block: Block, scenario_id: int, columns: Mapping[str, Float64], table: ScenarioTable, winners: Winners, at: int
) -> Table:
    one = np.array([at])
    row = {name: values[one] for name, values in columns.items()}
    scenario = replace(table, matrix=table.matrix[:, one], **{n: getattr(table, n)[one] for n in PER_SCENARIO})
    winner = Winners(**{each.name: getattr(winners, each.name)[..., one] for each in fields(Winners)})
    nothing = {name: np.zeros(0) for name in field_names(Outcome)}
    result = result_columns(block, np.array([scenario_id]), row, scenario, winner, nothing)
    return result | {"point_id": result["scenario_id"] << np.uint64(POINT_BITS)}


def candidate_blocks(
    table: ScenarioTable,
    scenario: int,
    sizes: list[int],
    columns: Mapping[str, Float64],
    physics: Physics,
    rules: SearchRules,
) -> Iterator[Table]:
    """Yield all candidates of one scenario: what differs from row to row, and the cluster's size."""
    shape = table.shapes[table.shape_index[scenario]]
    group_ranks = table.group_ranks[table.network_index[scenario]]
    economics = np.array([columns[name][scenario] for name in field_names(Economics)])
    for count in sizes:
        layouts = packed_layouts(shape, count, rules)
        if layouts.shape[1] == 0:
            continue
        used = used_group_ranks(count, group_ranks)
        ways = placements(used, degree_limits(degree_rows(layouts), used))
        lowers = ways.reshape(len(ways), -1).T.astype(np.float64)
        step = max(1, BLOCK_CANDIDATES // len(ways))
        for start in range(0, layouts.shape[1], step):
            part = layouts[:, start : start + step]
            block = _expanded(table, scenario, part, ways, lowers, physics)
            rows = len(block["step_time_s"])
            run_time_s = block["step_time_s"] * table.steps[scenario]
            block |= {"run_time_s": run_time_s, **_judged(table, scenario, block.pop("fits_in_memory"), run_time_s)}
            block["accelerator_count"] = np.full(rows, count, dtype=np.int64)
            costs = costs_at_times(economics, float(count), run_time_s)
            for name in UNKNOWN_IF_ZERO:
                costs[name] = np.where(costs[name] > 0.0, costs[name], np.nan)
            block |= costs
            yield block


def _expanded(
    table: ScenarioTable, scenario: int, layouts: Float64, ways: Int64, lowers: Float64, physics: Physics
) -> Table:
    """Return layout, placement and outcome of each (layout, placement) that divides, layouts slowest."""
    placed, unplaced, divides = placement_outcomes(
        table.matrix[:, scenario], layouts, lowers, physics, table.level_count
    )
    flat = np.flatnonzero(divides)
    layout, way = np.divmod(flat.astype(np.int32), np.int32(divides.shape[1]))
    names = layout_names()
    whole = {name: layouts[names.index(name)].astype(np.int64) for name in LAYOUT_COLUMNS}
    block: Table = {name: values[layout] for name, values in whole.items()}
    inside = ways.prod(axis=1)
    for level in range(table.level_count - 1):
        for index, degree in enumerate(DEGREES):
            block[f"{degree}_level_{level}"] = ways[:, level, index][way]
    for index, degree in enumerate(DEGREES):
        block[f"{degree}_level_{table.level_count - 1}"] = block[degree] // inside[:, index][way]
    block |= {name: values.ravel()[flat] for name, values in placed.items()}
    block |= {name: values[layout] for name, values in unplaced.items()}
    return block


def _judged(table: ScenarioTable, scenario: int, fits: Float64, run_time_s: Float64) -> dict[str, Any]:
    """Return whether each candidate is feasible, and why not."""
    is_fixed = table.accelerator_count[scenario] > 0
    in_time = np.ones(len(fits), dtype=bool) if is_fixed else run_time_s < table.run_limit_s[scenario]
    code = np.where(fits == 0.0, 1, np.where(in_time, 0, 2)).astype(np.int32)
    return {
        "is_feasible": code == 0,
        "infeasible_reason": pa.DictionaryArray.from_arrays(code, pa.array(REASONS)),
        "fits_in_memory": fits,
    }
