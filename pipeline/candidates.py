"""Every candidate of a scenario as a row (keep=all): layouts in their order, placements in theirs, in blocks of rows.

A candidate is a layout with a placement that divides it, at every cluster size that the search tries. Those that do
not fit in memory or do not end in time are rows too, flagged. Layouts of one scenario after another share a call of
the kernel as long as the same placements are tried on them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.evaluate import layouts_at_once
from models.outcome import Outcome
from models.packing import DEGREES, field_names, layout_names
from pipeline.block import Block
from pipeline.candidate_columns import as_stored, is_one
from pipeline.candidate_rows import Batch, Rows
from pipeline.distinct import PER_SCENARIO
from pipeline.layouts import SearchRules, Shape, placements, used_group_ranks
from pipeline.physics import PhysicsEntry
from pipeline.result_columns import POINT_BITS, Table, block_texts, result_columns, scenario_names
from pipeline.search_layouts import degree_limits, degree_rows, packed_layouts
from pipeline.search_table import ScenarioTable, Winners, first_counts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
FURTHER_COLUMNS = ("constant_dollar_ratio",)
NO_WAYS = np.ones((1, 0, len(DEGREES)), dtype=np.int64)


@dataclass(frozen=True)
class Piece:
    """Layouts of one scenario on one cluster size, and the placements to try on them."""

    scenario: int
    accelerator_count: int
    layouts: Float64
    ways: Int64

    def part(self, start: int, stop: int) -> "Piece":
        """Return some of its layouts."""
        return replace(self, layouts=self.layouts[:, start:stop])


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
    names = [*scenario_names(block), *(name for name in FURTHER_COLUMNS if name in columns)]
    series = offset + (ids - offset) % (block.size // block.point_count)
    numbers = {name: columns[name] for name in names} | {"scenario_id": ids, "series_id": series}
    numbers.pop("accelerator_count", None)  # a row's is its piece's
    rows = Rows(
        scenarios=scenarios,
        physics=physics.physics,
        texts=block_texts(block),
        labels=block.labels(ids - offset),
        shared={name: values[0] for name, values in numbers.items() if is_one(values)},
        numbers={name: as_stored(name, values) for name, values in numbers.items() if not is_one(values)},
        economics=np.stack([columns[name] for name in field_names(Economics)]),
        next_id=ids << POINT_BITS,
    )
    sizes = [cluster_sizes(scenarios, winners, scenario) for scenario in range(len(ids))]
    for pieces in _batches(_pieces(scenarios, sizes, physics.rules)):
        if pieces[0].layouts.shape[1] == 0:
            scenario = pieces[0].scenario
            yield _empty_row(block, ids[scenario], columns, scenarios, winners, scenario)
        else:
            yield rows.table(_batch(pieces))


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


def _pieces(table: ScenarioTable, sizes: list[list[int]], rules: SearchRules) -> Iterator[Piece]:
    """Yield the layouts of every scenario at each of its cluster sizes; one piece without any if it has none."""
    for scenario, counts in enumerate(sizes):
        shape = table.shapes[table.shape_index[scenario]]
        group_ranks = table.group_ranks[table.network_index[scenario]]
        found = [(count, packed_layouts(shape, count, rules)) for count in counts]
        found = [(count, layouts) for count, layouts in found if layouts.shape[1]]
        if not found:
            yield Piece(scenario, 0, np.zeros((len(layout_names()), 0)), NO_WAYS)
        for count, layouts in found:
            yield Piece(scenario, count, layouts, _ways(shape, count, group_ranks, rules))


@lru_cache(maxsize=256)
def _ways(shape: Shape, count: int, group_ranks: tuple[float, ...], rules: SearchRules) -> Int64:
    used = used_group_ranks(count, group_ranks)
    return placements(used, degree_limits(degree_rows(packed_layouts(shape, count, rules)), used))


def _batches(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Yield pieces, in order, that one call of the kernel takes; a piece without layouts alone."""
    waiting: list[Piece] = []
    room = 0
    for piece in pieces:
        count, start = piece.layouts.shape[1], 0
        if waiting and (count == 0 or not np.array_equal(piece.ways, waiting[0].ways)):
            yield waiting
            waiting = []
        if count == 0:
            yield [piece]
        while start < count:
            room = room if waiting else layouts_at_once(len(piece.ways))
            stop = min(count, start + room)
            waiting.append(piece.part(start, stop))
            room, start = room - (stop - start), stop
            if room == 0:
                yield waiting
                waiting = []
    if waiting:
        yield waiting


def _batch(pieces: list[Piece]) -> Batch:
    return Batch(
        scenario=np.array([piece.scenario for piece in pieces]),
        accelerator_count=np.array([piece.accelerator_count for piece in pieces]),
        layout_count=np.array([piece.layouts.shape[1] for piece in pieces]),
        layouts=np.concatenate([piece.layouts for piece in pieces], axis=1),
        ways=pieces[0].ways,
    )
