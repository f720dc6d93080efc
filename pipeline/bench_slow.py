"""The same formulas in NumPy and in plain Python: the modules of `models` with another `jnp` put under them.

Nothing of the model is written twice; what is compared is only who carries the arithmetic out.
"""

import contextlib
import math
import sys
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import models.step  # noqa: F401  the modules must be there to be given another jnp
from models.outcome import Outcome
from models.packing import field_names, layout_of, placement_of, scenario_of
from models.point import Physics

Float64 = NDArray[np.float64]
PLAIN = SimpleNamespace(
    maximum=max,
    minimum=min,
    where=lambda condition, first, second: first if condition else second,
    ceil=math.ceil,
    sqrt=math.sqrt,
    ones=lambda shape: 1.0,
    zeros=lambda shape: 0.0,
    asarray=float,
)
NUMPY_CHUNK = 16384  # measured: larger ones leave the cache


@contextlib.contextmanager
def arithmetic_by(namespace: Any) -> Iterator[None]:
    """Let the model's modules find this namespace where they expect jax.numpy."""
    found = {
        name: module for name, module in sys.modules.items() if name.startswith("models.") and hasattr(module, "jnp")
    }
    before = {name: module.jnp for name, module in found.items()}  # type: ignore[attr-defined]
    try:
        for module in found.values():
            module.jnp = namespace  # type: ignore[attr-defined]
        yield
    finally:
        for name, module in found.items():
            module.jnp = before[name]  # type: ignore[attr-defined]


def step_of(rows: Any, scenario_rows: int, layout_rows: int, physics: Physics, level_count: int) -> Outcome:
    """Return the outcome of packed points, whoever carries the arithmetic out."""
    from models.step import step

    rows = list(rows)
    end = scenario_rows + layout_rows
    return step(
        scenario=scenario_of(rows[:scenario_rows], level_count),
        layout=layout_of(rows[scenario_rows:end]),
        placement=placement_of(rows[end:], level_count),
        physics=physics,
    )


def plain_physics(physics: Physics, number: type) -> Physics:
    """Return the constants as plain numbers."""
    return Physics(**{name: number(getattr(physics, name)) for name in field_names(Physics)})


def numpy_outcomes(points: Float64, sizes: tuple[int, int], physics: Physics, level_count: int) -> list[Outcome]:
    """Return the outcomes of all points, a chunk at a time, in NumPy."""
    plain = plain_physics(physics, np.float64)
    with arithmetic_by(np), np.errstate(all="ignore"):
        return [
            step_of(points[:, start : start + NUMPY_CHUNK], *sizes, plain, level_count)
            for start in range(0, points.shape[1], NUMPY_CHUNK)
        ]


def python_outcomes(points: Float64, sizes: tuple[int, int], physics: Physics, level_count: int) -> list[Outcome]:
    """Return the outcomes of all points, one after another, in plain Python."""
    plain = plain_physics(physics, float)
    with arithmetic_by(PLAIN):
        return [step_of(point, *sizes, plain, level_count) for point in points.T.tolist()]


def rate_per_cpu_s(run: Any, count: int, least_s: float = 0.5) -> float:
    """Return how many a CPU-second of this process a call does, best of three after a first that does not count."""
    run()
    best = 0.0
    for _ in range(3):
        started, calls = time.process_time(), 0
        while time.process_time() - started < least_s:
            run()
            calls += 1
        best = max(best, count * calls / (time.process_time() - started))
    return best
