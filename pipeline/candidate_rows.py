"""The rows of a batch of candidates (keep=all), made as columns.

Making a row must cost less than writing it: what many rows in turn share is repeated by runs, what few share is taken
by one index, and what all share is a column made once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from models.chunks import aligned
from models.evaluate import placement_outcomes
from models.packing import DEGREES, layout_names
from models.point import Physics
from pipeline.candidate_columns import (
    as_stored,
    by_piece,
    constant_number,
    constant_text,
    costs_of_runs,
    is_one,
    repeated,
    sealed,
    spread,
    verdicts,
)
from pipeline.result_columns import LAYOUT_COLUMNS, Table
from pipeline.search_table import ScenarioTable

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Layouts of some scenarios, piece by piece, and the placements to try on each."""

    scenario: Int64  # of each piece, by its place
    accelerator_count: Int64  # of each piece
    layout_count: Int64  # of each piece
    layouts: Float64  # packed, the pieces side by side
    ways: Int64  # (placement, level, degree)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Makes the rows of scenarios in order, and counts them."""

    scenarios: ScenarioTable
    physics: Physics
    texts: Mapping[str, NDArray[np.str_]]  # of each scenario
    shared: Mapping[str, float]  # of all scenarios
    numbers: Mapping[str, NDArray[Any]]  # of each scenario
    economics: Float64  # packed, of each scenario
    next_id: Int64  # of each scenario: the point_id of its next row

    def table(self, batch: Batch) -> Table:
        """Return every candidate of a batch: placed layouts, layouts slowest."""
        placed, unplaced, divides = placement_outcomes(
            self._points(batch), _lowers(batch.ways), self.physics, self.scenarios.level_count
        )
        flat = np.flatnonzero(divides)
        per_layout = np.rint(divides.astype(np.float32) @ np.ones(divides.shape[1], np.float32)).astype(np.int64)
        per_piece = np.add.reduceat(per_layout, np.cumsum(batch.layout_count) - batch.layout_count)
        if not per_piece.all():
            raise ValueError(f"{batch.accelerator_count[per_piece == 0][0]} accelerators: no layout of them is placed")
        table: Table = {name: np.take(values, flat, mode="clip") for name, values in placed.items()}
        table |= {name: np.repeat(values, per_layout) for name, values in unplaced.items() if name != "fits_in_memory"}
        fits = np.repeat(unplaced["fits_in_memory"] != 0.0, per_layout)
        table |= _layout_columns(batch, per_layout, len(flat))
        way = flat - np.repeat(np.arange(len(divides)) * divides.shape[1], per_layout)
        table |= _level_columns(batch.ways, way, table)
        table |= self._run_columns(batch, per_piece, table["step_time_s"], fits)
        return sealed(table | self._constants(batch, per_piece))

    def _points(self, batch: Batch) -> Float64:
        """Return the packed points of the layouts: their scenario's rows, then their own."""
        rows = self.scenarios.matrix.shape[0]
        points = aligned(rows + len(batch.layouts), batch.layouts.shape[1])
        start = 0
        for scenario, count in zip(batch.scenario, batch.layout_count, strict=True):
            points[:rows, start : start + count] = self.scenarios.matrix[:, [scenario]]
            start += count
        points[rows:] = batch.layouts
        return points

    def _run_columns(self, batch: Batch, rows: Int64, step_time_s: Float64, fits: NDArray[np.bool_]) -> Table:
        """Return how long each run takes, whether that is feasible, and what it costs."""
        at = batch.scenario
        run_time_s = step_time_s * spread(self.scenarios.steps[at], rows)
        is_fixed = self.scenarios.accelerator_count[at] > 0
        limit_s = spread(np.where(is_fixed, np.inf, self.scenarios.run_limit_s[at]), rows)
        table: Table = {"run_time_s": run_time_s, **verdicts(fits, run_time_s < limit_s)}
        return table | costs_of_runs(self.economics[:, at], batch.accelerator_count, rows, run_time_s)

    def _constants(self, batch: Batch, rows: Int64) -> Table:
        """Return the columns that a piece's rows share, and the numbers of the rows."""
        table: Table = {name: _text_by_piece(values[batch.scenario], rows) for name, values in self.texts.items()}
        total = int(rows.sum())
        table |= {name: constant_number(name, value, total) for name, value in self.shared.items()}
        table |= {name: by_piece(name, values[batch.scenario], rows) for name, values in self.numbers.items()}
        table["accelerator_count"] = by_piece("accelerator_count", batch.accelerator_count, rows)
        return table | {"point_id": self._ids(batch.scenario, rows)}

    def _ids(self, scenario: Int64, rows: Int64) -> NDArray[np.uint64]:
        ids, start = np.empty(rows.sum(), dtype=np.uint64), 0
        for at, count in zip(scenario.tolist(), rows.tolist(), strict=True):
            first = self.next_id[at].astype(np.uint64)
            np.add(_numbers(1 << (count - 1).bit_length())[:count], first, out=ids[start : start + count])
            self.next_id[at] += count
            start += count
        return ids


@lru_cache(maxsize=32)
def _numbers(count: int) -> NDArray[np.uint64]:
    return np.arange(count, dtype=np.uint64)


def _lowers(ways: Int64) -> Float64:
    return ways.reshape(len(ways), -1).T.astype(np.float64)


def _text_by_piece(values: NDArray[np.str_], rows: Int64) -> pa.DictionaryArray:
    if (values == values[0]).all():
        return constant_text(str(values[0]), int(rows.sum()))
    words, codes = np.unique(values, return_inverse=True)
    return pa.DictionaryArray.from_arrays(repeated(codes.astype(np.int32), rows), pa.array(words.tolist()))


def _layout_columns(batch: Batch, per_layout: Int64, total: int) -> Table:
    names, table = layout_names(), {}
    for name in LAYOUT_COLUMNS:
        values = batch.layouts[names.index(name)]
        if is_one(values):
            table[name] = constant_number(name, values[0], total)
        else:
            table[name] = np.repeat(as_stored(name, values), per_layout)
    return table


def _level_columns(ways: Int64, way: Int64, layout_columns: Table) -> Table:
    """Return the degrees on each level: on the lower ones those of the placement, on the top the rest of the layout's.

    `way` is the placement of each row.
    """
    level_count = ways.shape[1] + 1
    inside = ways.prod(axis=1)
    table: Table = {}
    for index, degree in enumerate(DEGREES):
        for level in range(level_count - 1):
            name = f"{degree}_level_{level}"
            table[name] = _by_way(name, ways[:, level, index], way)
        name, whole = f"{degree}_level_{level_count - 1}", layout_columns[degree]
        table[name] = whole if (inside[:, index] == 1).all() else _quotient(name, whole, inside[:, index], way)
    return table


def _by_way(name: str, values: Int64, way: Int64) -> Any:
    if is_one(values):
        return constant_number(name, values[0], len(way))
    return np.take(as_stored(name, values), way, mode="clip")


def _quotient(name: str, whole: Any, inside: Int64, way: Int64) -> NDArray[Any]:
    """Return what is left of whole numbers, which the part inside divides; by powers of two it takes a tenth of it."""
    whole = whole.to_numpy() if isinstance(whole, pa.Array) else whole
    if (inside & (inside - 1) == 0).all():
        bits = np.rint(np.log2(inside)).astype(whole.dtype)
        return np.right_shift(whole, np.take(bits, way, mode="clip"))
    return np.floor_divide(whole, np.take(as_stored(name, inside), way, mode="clip"))
