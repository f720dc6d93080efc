"""Numeric axes of a sweep: numbers, lists, and linear, log or power-of-two ranges."""

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import UserError

FORMS = "a number, a list, {linear: [a, b, n]}, {log: [a, b, n]} or {log2: [a, b]}"
POINT_LIMIT = 10_000_000


def _bad(name: str, spec: object, rule: str, remedy: str) -> UserError:
    return UserError(f"config.yaml: axes.{name} = {spec!r}: {rule}; {remedy}")


def read_number(name: str, value: object) -> float:
    """Return a number, also one written as a power such as 2**24."""
    if isinstance(value, str):
        power = re.fullmatch(r"\s*(\d+)\s*\*\*\s*(\d+)\s*", value)
        if power and int(power[2]) <= 1000:
            return float(int(power[1]) ** int(power[2]))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(name, value, "must be a number", "write it in base units, as 9.89e+14 or 2**24")
    if not np.isfinite(value) or value <= 0:
        raise _bad(name, value, "must be finite and > 0", "correct the value")
    return float(value)


def read_axis(name: str, spec: object) -> tuple[str, NDArray[np.float64]]:
    """Return an axis as (name, float64 values in their order), or refuse it in one line."""
    if isinstance(spec, Mapping):
        return name, _range(name, spec)
    values = [spec] if not isinstance(spec, Sequence) or isinstance(spec, str) else list(spec)
    if not values:
        raise _bad(name, spec, "the axis is empty", "give at least one value or leave the axis out")
    result = np.array([read_number(name, value) for value in values])
    if len(np.unique(result)) < len(result):
        raise _bad(name, spec, "a value stands twice", "name each value once")
    return name, result


def _range(name: str, spec: Mapping[object, object]) -> NDArray[np.float64]:
    kind, bounds = next(iter(spec.items())) if len(spec) == 1 else (None, None)
    if kind not in ("linear", "log", "log2") or not isinstance(bounds, Sequence) or isinstance(bounds, str):
        raise _bad(name, dict(spec), f"must be {FORMS}", "use one of these forms")
    if len(bounds) not in ((2, 3) if kind == "log2" else (3,)):
        raise _bad(name, dict(spec), f"must be {FORMS}", "give lower bound, upper bound and number of points")
    low, high = read_number(name, bounds[0]), read_number(name, bounds[1])
    if not low < high:
        raise _bad(name, dict(spec), "the lower bound must be below the upper", "swap them")
    if kind == "log2" and len(bounds) == 2:
        steps = np.arange(int(np.floor(np.log2(high / low))) + 1, dtype=np.float64)
        return np.asarray(low * 2.0**steps, dtype=np.float64)
    count = bounds[2]
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= POINT_LIMIT:
        raise _bad(name, dict(spec), f"the number of points must be 2 to {POINT_LIMIT}", "give a whole number")
    share = np.arange(count, dtype=np.float64) / (count - 1)
    values = low + share * (high - low) if kind == "linear" else low * (high / low) ** share
    values[-1] = high
    return values
