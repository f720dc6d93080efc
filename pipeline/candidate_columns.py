"""Columns of rows that list every candidate (keep=all): what is constant over a block of rows, and what follows a run.

They are Arrow arrays that many blocks share, or one product a row: making them must cost less than writing them.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from models.effects.economics import Economics, RunCost
from models.evaluate import run_costs
from models.packing import field_names
from pipeline.columns import GLOSSARY

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Table = dict[str, Any]
IN_PROPORTION = ("amortised_hardware_usd", "energy_j", "energy_usd", "emissions_kg", "cloud_usd", "total_usd")
"""Costs of one cluster in proportion to its run time: worked out for one second, then multiplied."""
BY_TIME = (*IN_PROPORTION, "decayed_hardware_usd")
REASONS = ("", "memory", "time")
CHUNK_ROWS = 1 << 12  # of what is constant over long pieces: small enough to stay in the cache
LONG_RUN = 256  # rows in a run, on average, from which filling it pays


@dataclass(frozen=True)
class Spans:
    """The rows of a table as pieces one after another: how many each has."""

    rows: Int64

    @cached_property
    def counts(self) -> list[int]:
        """Return the rows of each piece."""
        return self.rows.tolist()

    @cached_property
    def total(self) -> int:
        """Return the rows of the table."""
        return sum(self.counts)

    def are_long(self, rows: int) -> bool:
        """Return whether pieces have so many rows or more, on average."""
        return self.total >= rows * len(self.counts)


@lru_cache(maxsize=256)
def _filled(value: float, dtype: str, capacity: int) -> pa.Array:
    """Return equal numbers, of which tables show the front: most blocks of rows share most constants."""
    return pa.array(np.full(capacity, value, dtype=dtype))


@lru_cache(maxsize=16)
def _missing(capacity: int) -> pa.Array:
    return pa.nulls(capacity, pa.float64())


@lru_cache(maxsize=256)
def _text(value: str, capacity: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(_filled(0, "int32", capacity), pa.array([value]))


@lru_cache(maxsize=1)
def _reasons() -> pa.Array:
    return pa.array(REASONS)


def _capacity(size: int) -> int:
    return 1 << (size - 1).bit_length()


def constant_text(value: str, size: int) -> pa.DictionaryArray:
    """Return a column of one text."""
    return _text(value, _capacity(size)).slice(0, size)


def stored_type(name: str) -> np.dtype[Any]:
    """Return the NumPy type in which a column of numbers is stored."""
    return np.dtype(GLOSSARY[name].arrow_type)


def constant_number(name: str, value: float, size: int) -> pa.Array:
    """Return a column of one number, of the type that the glossary stores."""
    if value != value:
        return _missing(_capacity(size)).slice(0, size)
    kind = GLOSSARY[name].arrow_type
    is_whole = kind != "float64" and float(value).is_integer()
    return _filled(value, kind if is_whole else "float64", _capacity(size)).slice(0, size)


def sealed(table: Table) -> Table:
    """Return the table as Arrow arrays, nothing copied: no number in it is missing, so none need be looked at."""
    return {name: _sealed(values) if isinstance(values, np.ndarray) else values for name, values in table.items()}


def _sealed(values: NDArray[Any]) -> pa.Array:
    if values.dtype != np.bool_:
        return pa.array(values)
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))  # a sixth of the time that Arrow takes
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def verdicts(fits: NDArray[np.bool_], in_time: NDArray[np.bool_]) -> Table:
    """Return whether each candidate is feasible, and why not."""
    is_feasible, code = fits, np.logical_not(fits).astype(np.int32)  # places in REASONS
    if not in_time.all():
        is_feasible = fits & in_time
        np.add(code, 2, out=code, where=fits & ~in_time)
    reason = pa.DictionaryArray.from_arrays(code, _reasons(), safe=False)
    return {"is_feasible": is_feasible, "infeasible_reason": reason, "fits_in_memory": fits}


def is_one(values: NDArray[Any]) -> bool:
    """Return whether an array holds one number again and again (not-a-number is one)."""
    return bool((values == values[0]).all() or (values != values).all())


def spread(values: Float64, spans: Spans) -> Any:
    """Return numbers of pieces as numbers of rows, or the one that they all are."""
    return values[0] if (values == values[0]).all() else repeated(values, spans)


def repeated(values: NDArray[Any], spans: Spans) -> NDArray[Any]:
    """Return each number so many times. Long runs are filled, a fifth of the time of np.repeat, which copies singly."""
    if not spans.are_long(LONG_RUN):
        return np.repeat(values, spans.rows)
    column, start = np.empty(spans.total, dtype=values.dtype), 0
    for value, count in zip(values, spans.counts, strict=True):
        column[start : start + count] = value
        start += count
    return column


def by_spans(operation: np.ufunc, values: Float64, column: Float64, spans: Spans) -> Float64:
    """Return an operation on the number of each piece and the column of its rows."""
    if (values == values[0]).all() or not spans.are_long(LONG_RUN):
        return operation(spread(values, spans), column)
    result, start = np.empty_like(column), 0
    for value, count in zip(values, spans.counts, strict=True):
        operation(value, column[start : start + count], out=result[start : start + count])
        start += count
    return result


def _known(values: Float64, pieces: Float64) -> Any:
    """Return a column in which not-a-number, if any piece has it, is a missing value."""
    return pa.array(values, from_pandas=True) if np.isnan(pieces).any() else values


def as_stored(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in the type in which the column is stored; refuse those that it does not hold."""
    if values.dtype == stored_type(name):
        return values
    narrow = values.astype(stored_type(name))
    if not np.array_equal(narrow, values, equal_nan=narrow.dtype.kind == "f"):
        raise ValueError(f"column {name}: {values[narrow != values][0]} is not stored as {narrow.dtype}")
    return narrow


def by_piece(name: str, values: NDArray[Any], spans: Spans) -> Any:
    """Return a column of a number for each piece; long pieces are chunks that show one short array again and again."""
    if is_one(values):
        return constant_number(name, values[0], spans.total)
    stored = as_stored(name, values)
    if not spans.are_long(CHUNK_ROWS):
        return _known(repeated(stored, spans), values)
    chunks, dtype = [], str(stored.dtype)
    for value, count in zip(stored.tolist(), spans.counts, strict=True):
        chunk = _missing(CHUNK_ROWS) if value != value else _filled(value, dtype, CHUNK_ROWS)
        whole, rest = divmod(count, CHUNK_ROWS)
        chunks += [chunk] * whole
        if rest:
            chunks.append(chunk.slice(0, rest))
    return pa.chunked_array(chunks)


def costs_of_runs(economics: Float64, accelerator_count: Int64, spans: Spans, run_time_s: Float64) -> Table:
    """Return the cost columns of rows that come in pieces, each of one scenario on one cluster.

    `economics` is packed, a column a piece. What grows with the time and what does not; missing where a price is
    unknown.
    """
    each = [_costs_a_second(economics[:, at].tobytes(), int(count)) for at, count in enumerate(accelerator_count)]
    table: Table = {}
    rates = np.stack(each, axis=1)
    unknown: list[bool] = np.isnan(rates).all(axis=1).tolist()  # pyright: ignore[reportAssignmentType]
    for name, rate, is_unknown in zip(field_names(RunCost), rates, unknown, strict=True):
        if is_unknown:
            table[name] = constant_number(name, np.nan, spans.total)
        elif name not in BY_TIME:
            table[name] = by_piece(name, rate, spans)
        else:
            time = run_time_s if name in IN_PROPORTION else _decay(economics, spans, run_time_s)
            table[name] = _known(by_spans(np.multiply, rate, time, spans), rate)
    return table


@lru_cache(maxsize=4096)
def _costs_a_second(economics: bytes, accelerator_count: int) -> Float64:
    """Return the costs of a cluster that runs for one second, in the order of `RunCost`; NaN: a price is unknown."""
    costs = run_costs(np.frombuffer(economics)[:, None], np.array([accelerator_count]), np.ones(1))
    values = np.concatenate([costs[name] for name in field_names(RunCost)])
    cloud = field_names(RunCost).index("cloud_usd")
    values[cloud] = values[cloud] if values[cloud] > 0.0 else np.nan  # nobody rents it out
    return values


def _decay(economics: Float64, spans: Spans, run_time_s: Float64) -> Float64:
    """Return what decays exponentially in a run, in terms of what does in one second."""
    rate_per_s = economics[field_names(Economics).index("value_decay_per_s")]
    if (rate_per_s == 0.0).any():
        rate_per_s = np.repeat(rate_per_s, spans.rows)
        some = np.where(rate_per_s == 0.0, 1.0, rate_per_s)
        return np.where(rate_per_s == 0.0, run_time_s, np.expm1(-some * run_time_s) / np.expm1(-some))
    return np.expm1(-spread(rate_per_s, spans) * run_time_s) / spread(np.expm1(-rate_per_s), spans)
