"""Kernels compiled beside a search, on a core that is free: those of what it finds, which the search itself needs not.

A start without kept kernels spends most of its time compiling, and XLA compiles without holding Python.
"""

import threading
from collections.abc import Callable

import numpy as np

from models.chunks import FEW_POINTS
from models.effects.economics import Economics
from models.evaluate import outcomes, run_costs
from models.packing import field_names, layout_names, placement_names, scenario_names
from models.point import Physics
from pipeline import device

Wait = Callable[[], None]
_begun: dict[tuple[int, bool], threading.Thread] = {}
"""By (levels of the network, whether the points are few)."""


def compile_outcomes(physics: Physics, level_count: int, point_count: int) -> Wait:
    """Begin to compile what evaluates so many winners and their costs; returns what waits for the end of it.

    Once a process for each kernel; on one core nothing is begun, for it would only come first.
    """
    if len(device.available_cores()) == 1:
        return _nothing
    is_few = point_count <= FEW_POINTS
    key = (level_count, is_few)
    if key not in _begun:
        size = 1 if is_few else FEW_POINTS + 1
        _begun[key] = threading.Thread(target=_evaluate_any, args=(physics, level_count, size), name="compile ahead")
        _begun[key].start()
    return _begun[key].join


def point_names(level_count: int) -> tuple[str, ...]:
    """Return the rows of a packed, fully placed point."""
    return (*scenario_names(level_count), *layout_names(), *placement_names(level_count))


def _nothing() -> None:
    return None


def _evaluate_any(physics: Physics, level_count: int, size: int) -> None:
    """Evaluate points that stand for any, for the sake of the kernels that it leaves behind."""
    outcomes(np.ones((len(point_names(level_count)), size)), physics, level_count)
    run_costs(np.ones((len(field_names(Economics)), size)), np.ones(size), np.ones(size))
