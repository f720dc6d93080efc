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
    Spans,
    as_stored,
    by_piece,
    by_spans,
    constant_number,
    constant_text,
    costs_of_runs,
    is_one,
    repeated,
    sealed,
    spread,
    stored_type,
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
    texts: Mapping[str, str]  # of all scenarios
    labels: Mapping[str, NDArray[np.str_]]  # of each scenario
    shared: Mapping[str, float]  # of all scenarios
    numbers: Mapping[str, NDArray[Any]]  # of each scenario, as they are stored
    economics: Float64  # packed, of each scenario
    next_id: Int64  # of each scenario: the point_id of its next row

    def table(self, batch: Batch) -> Table:
        """Return every candidate of a batch: placed layouts, layouts slowest."""
        placed, by_layout, divides, per_layout = placement_outcomes(
            self._points(batch), _lowers(batch.ways), self.physics, self.scenarios.level_count
        )
        flat = np.flatnonzero(divides)
        starts = np.cumsum(batch.layout_count) - batch.layout_count
        spans = Spans(np.add.reduceat(per_layout, starts))
        if not spans.rows.all():
            raise ValueError(f"{batch.accelerator_count[spans.rows == 0][0]} accelerators: no layout of them is placed")
        table: Table = {name: np.take(values, flat, mode="clip") for name, values in placed.items()}
        ideal_s = by_layout.pop("ideal_step_time_s")[starts]
        table["model_flop_utilisation_fraction"] = by_spans(np.divide, ideal_s, table["step_time_s"], spans)
        fits = np.repeat(by_layout.pop("fits_in_memory") != 0.0, per_layout)
        table |= {name: np.repeat(values, per_layout) for name, values in by_layout.items()}
        table |= _layout_columns(batch, per_layout, len(flat))
        way = flat - np.repeat(np.arange(len(divides)) * divides.shape[1], per_layout)
        table |= _level_columns(batch.ways, way, table)
        table |= self._run_columns(batch, spans, table["step_time_s"], fits)
        return sealed(table | self._constants(batch, spans))

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

    def _run_columns(self, batch: Batch, spans: Spans, step_time_s: Float64, fits: NDArray[np.bool_]) -> Table:
        """Return how long each run takes, whether that is feasible, and what it costs."""
        at = batch.scenario
        run_time_s = by_spans(np.multiply, self.scenarios.steps[at], step_time_s, spans)
        is_fixed = self.scenarios.accelerator_count[at] > 0
        limit_s = spread(np.where(is_fixed, np.inf, self.scenarios.run_limit_s[at]), spans)
        table: Table = {"run_time_s": run_time_s, **verdicts(fits, run_time_s < limit_s)}
        return table | costs_of_runs(self.economics[:, at], batch.accelerator_count, spans, run_time_s)

    def _constants(self, batch: Batch, spans: Spans) -> Table:
        """Return the columns that a piece's rows share, and the numbers of the rows."""
        at, total = batch.scenario, spans.total
        table: Table = {name: constant_text(text, total) for name, text in self.texts.items()}
        table |= {name: constant_number(name, value, total) for name, value in self.shared.items()}
        table |= {name: _text_by_piece(values[at], spans) for name, values in self.labels.items()}
        table |= {name: by_piece(name, values[at], spans) for name, values in self.numbers.items()}
        table["accelerator_count"] = by_piece("accelerator_count", batch.accelerator_count, spans)
        return table | {"point_id": self._ids(at, spans)}

    def _ids(self, scenario: Int64, spans: Spans) -> NDArray[np.uint64]:
        ids, start = np.empty(spans.total, dtype=np.uint64), 0
        for at, count in zip(scenario.tolist(), spans.counts, strict=True):
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


def _text_by_piece(values: NDArray[np.str_], spans: Spans) -> pa.DictionaryArray:
    if (values == values[0]).all():
        return constant_text(str(values[0]), spans.total)
    words, codes = np.unique(values, return_inverse=True)
    return pa.DictionaryArray.from_arrays(repeated(codes.astype(np.int32), spans), pa.array(words.tolist()))


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
    lower, divisors = _ways_by_column(ways.tobytes(), ways.shape)
    table: Table = {}
    for name, values in lower.items():
        is_same = isinstance(values, int)
        table[name] = constant_number(name, values, len(way)) if is_same else np.take(values, way, mode="clip")
    for degree, divisor in divisors.items():
        whole = layout_columns[degree]
        table[f"{degree}_level_{ways.shape[1]}"] = whole if divisor is None else _quotient(whole, divisor, way)
    return table


@lru_cache(maxsize=64)
def _ways_by_column(
    ways: bytes, shape: tuple[int, ...]
) -> tuple[dict[str, int | NDArray[Any]], dict[str, tuple[Any, NDArray[Any]] | None]]:
    """Return (degrees on the lower levels, by column; how to take what is below the top out of each degree, if any)."""
    table = np.frombuffer(ways, dtype=np.int64).reshape(shape)
    inside = table.prod(axis=1)
    lower: dict[str, int | NDArray[Any]] = {}
    divisors: dict[str, tuple[Any, NDArray[Any]] | None] = {}
    for index, degree in enumerate(DEGREES):
        for level in range(shape[1]):
            name, values = f"{degree}_level_{level}", table[:, level, index]
            lower[name] = int(values[0]) if is_one(values) else as_stored(name, np.ascontiguousarray(values))
        divisors[degree] = _divisor(inside[:, index], stored_type(degree))
    return lower, divisors


def _divisor(inside: Int64, stored: np.dtype[Any]) -> tuple[Any, NDArray[Any]] | None:
    """Return the operation and its operands that divide by numbers; by powers of two it takes a tenth of the time."""
    if (inside == 1).all():
        return None
    if (inside & (inside - 1) == 0).all():
        return np.right_shift, np.rint(np.log2(inside)).astype(stored)
    return np.floor_divide, inside.astype(stored)


def _quotient(whole: Any, divisor: tuple[Any, NDArray[Any]], way: Int64) -> NDArray[Any]:
    """Return what is left of whole numbers, which the part inside divides."""
    operation, operands = divisor
    whole = whole.to_numpy() if isinstance(whole, pa.Array) else whole
    inside = np.take(operands, way, mode="clip")
    return operation(whole, inside, out=inside)
