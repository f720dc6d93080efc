"""Columns of rows that list every candidate (keep=all): what is constant over a block of rows, and what follows a run.

They are Arrow arrays that many blocks share, or one product a row: making them must cost less than writing them.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.evaluate import run_costs
from models.packing import field_names
from pipeline.columns import GLOSSARY

Float64 = NDArray[np.float64]
Table = dict[str, Any]
IN_PROPORTION = ("amortised_hardware_usd", "energy_j", "energy_usd", "emissions_kg", "cloud_usd", "total_usd")
"""Costs of one cluster in proportion to its run time: worked out for one second, then multiplied."""
BY_TIME = (*IN_PROPORTION, "decayed_hardware_usd")
REASONS = ("", "memory", "time")


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
    code = np.where(fits, (~in_time).view(np.uint8) << 1, np.uint8(1))  # places in REASONS
    reason = pa.DictionaryArray.from_arrays(code.astype(np.int32), _reasons())
    return {"is_feasible": code == 0, "infeasible_reason": reason, "fits_in_memory": fits}


def costs_a_second(economics: Mapping[str, float], accelerator_count: int) -> dict[str, float]:
    """Return the costs of a cluster that runs for one second (fields of `RunCost`); NaN where a price is unknown."""
    packed = np.array([[economics[name]] for name in field_names(Economics)])
    costs = run_costs(packed, np.array([accelerator_count]), np.ones(1))
    values = {name: float(each[0]) for name, each in costs.items()}
    return values | {"cloud_usd": values["cloud_usd"] if values["cloud_usd"] > 0.0 else np.nan}  # nobody rents it out


def costs_of_runs(a_second: Mapping[str, float], decay_per_s: float, run_time_s: Float64) -> Table:
    """Return the cost columns of runs of one cluster: what grows with the time, and what does not."""
    table = {name: _in_proportion(a_second[name], run_time_s) for name in IN_PROPORTION}
    table |= {
        name: constant_number(name, value, len(run_time_s)) for name, value in a_second.items() if name not in BY_TIME
    }
    return table | {
        "decayed_hardware_usd": _in_proportion(a_second["decayed_hardware_usd"], _decay(decay_per_s, run_time_s))
    }


def _in_proportion(rate: float, run_time_s: Float64) -> Any:
    return rate * run_time_s if rate == rate else _missing(_capacity(len(run_time_s))).slice(0, len(run_time_s))


def _decay(rate_per_s: float, run_time_s: Float64) -> Float64:
    """Return what decays exponentially in a time, in terms of what does in one second."""
    return np.expm1(-rate_per_s * run_time_s) / np.expm1(-rate_per_s) if rate_per_s else run_time_s
