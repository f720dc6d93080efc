"""Every candidate of a scenario as a row (keep=all): layouts in their order, placements in theirs, in blocks of rows.

A candidate is a layout with a placement that divides it, at every cluster size that the search tries. Those that do
not fit in memory or do not end in time are rows too, flagged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.evaluate import placement_outcomes
from models.outcome import Outcome
from models.packing import DEGREES, field_names, layout_names
from models.point import Physics
from pipeline.candidate_columns import (
    constant_number,
    constant_text,
    costs_a_second,
    costs_of_runs,
    sealed,
    verdicts,
)
from pipeline.distinct import PER_SCENARIO
from pipeline.grid import Block
from pipeline.layouts import SearchRules, placements, used_group_ranks
from pipeline.physics import PhysicsEntry
from pipeline.result_columns import LAYOUT_COLUMNS, POINT_BITS, Table, block_texts, result_columns, scenario_names
from pipeline.search_layouts import degree_limits, degree_rows, packed_layouts
from pipeline.search_table import ScenarioTable, Winners, first_counts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
BLOCK_CANDIDATES = 1 << 16
"""Candidates made in one go: bounds the memory of a scenario however many it has."""
FURTHER_COLUMNS = ("constant_dollar_ratio",)


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
    offset: int,
) -> Iterator[Table]:
    """Yield every candidate of some scenarios of one block as rows; a scenario without any is one empty row."""
    for scenario, scenario_id in enumerate(ids):
        labels = {name: str(values[0]) for name, values in block.labels(ids[[scenario]] - offset).items()}
        texts = block_texts(block) | labels
        series = offset + int(scenario_id - offset) % (block.size // block.point_count)
        sizes = cluster_sizes(scenarios, winners, scenario)
        found = candidate_blocks(scenarios, scenario, sizes, columns, physics.physics, physics.rules)
        number = 0
        for table in found:
            rows = len(table["step_time_s"])
            table |= {name: constant_text(text, rows) for name, text in texts.items()}
            numbers = [*scenario_names(block), *(name for name in FURTHER_COLUMNS if name in columns)]
            table |= {name: constant_number(name, columns[name][scenario], rows) for name in numbers}
            table["scenario_id"] = constant_number("scenario_id", int(scenario_id), rows)
            table["series_id"] = constant_number("series_id", series, rows)
            first = (int(scenario_id) << POINT_BITS) + number
            table["point_id"] = np.arange(first, first + rows, dtype=np.uint64)
            number += rows
            yield sealed(table)
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
    del result["candidate_count"]  # each candidate is a row
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
    economics = {name: float(columns[name][scenario]) for name in field_names(Economics)}
    for count in sizes:
        layouts = packed_layouts(shape, count, rules)
        if layouts.shape[1] == 0:
            continue
        used = used_group_ranks(count, group_ranks)
        ways = placements(used, degree_limits(degree_rows(layouts), used))
        lowers = ways.reshape(len(ways), -1).T.astype(np.float64)
        step = max(1, BLOCK_CANDIDATES // max(1, len(ways)))
        costs = costs_a_second(economics, count)
        for start in range(0, layouts.shape[1], step):
            part = layouts[:, start : start + step]
            block = _expanded(table, scenario, part, ways, lowers, physics)
            rows = len(block["step_time_s"])
            run_time_s = block["step_time_s"] * table.steps[scenario]
            limit_s = np.inf if table.accelerator_count[scenario] > 0 else table.run_limit_s[scenario]
            block |= {"run_time_s": run_time_s, **verdicts(block.pop("fits_in_memory") != 0.0, run_time_s < limit_s)}
            block["accelerator_count"] = constant_number("accelerator_count", count, rows)
            block |= costs_of_runs(costs, columns["value_decay_per_s"][scenario], run_time_s)
            yield block


def _expanded(
    table: ScenarioTable, scenario: int, layouts: Float64, ways: Int64, lowers: Float64, physics: Physics
) -> Table:
    """Return layout, placement and outcome of each (layout, placement) that divides, layouts slowest."""
    placed, unplaced, divides = placement_outcomes(
        table.matrix[:, scenario], layouts, lowers, physics, table.level_count
    )
    layout, way = np.nonzero(divides)
    flat = layout * divides.shape[1] + way
    names = layout_names()
    block: Table = {
        name: np.take(layouts[names.index(name)].astype(np.int64), layout, mode="clip") for name in LAYOUT_COLUMNS
    }
    inside = ways.prod(axis=1)
    for index, degree in enumerate(DEGREES):
        for level in range(table.level_count - 1):
            block[f"{degree}_level_{level}"] = np.take(ways[:, level, index], way, mode="clip")
        whole = layouts[names.index(degree)].astype(np.int64)
        top = whole[:, None] // inside[None, :, index]
        block[f"{degree}_level_{table.level_count - 1}"] = np.take(top.ravel(), flat, mode="clip")
    block |= {name: np.take(values.ravel(), flat, mode="clip") for name, values in placed.items()}
    block |= {name: np.take(values, layout, mode="clip") for name, values in unplaced.items()}
    return block
