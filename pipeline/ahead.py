"""Kernels compiled beside a search, on a core that is free: those of what it finds, which the search itself needs not.

A start without kept kernels spends most of its time compiling, and XLA compiles without holding Python.
"""

import threading
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from models.chunks import FEW_POINTS
from models.effects.economics import Economics
from models.evaluate import outcomes, run_costs
from models.packing import field_names, layout_names, placement_names, scenario_names
from models.point import Physics
from pipeline import device

Wait = Callable[[], None]


def compile_outcomes(physics: Physics, level_count: int, point_count: int) -> Wait:
    """Begin to compile what evaluates so many winners and their costs; returns what waits for the end of it.

    Once a process for each kernel; on one core nothing is begun, for it would only come first.
    """
    if device.core_count() == 1:
        return _nothing
    thread = _thread(level_count, point_count <= FEW_POINTS)
    if thread.ident is None:
        thread.physics = physics
        thread.start()
    return thread.join


def point_names(level_count: int) -> tuple[str, ...]:
    """Return the rows of a packed, fully placed point."""
    return (*scenario_names(level_count), *layout_names(), *placement_names(level_count))


def _nothing() -> None:
    return None


class _Compiling(threading.Thread):
    """One evaluation of points that stand for any, for the sake of the kernels that it leaves behind."""

    physics: Physics

    def __init__(self, level_count: int, is_few: bool):
        super().__init__(name="compile ahead")
        self.level_count, self.size = level_count, 1 if is_few else FEW_POINTS + 1

    def run(self) -> None:
        outcomes(np.ones((len(point_names(self.level_count)), self.size)), self.physics, self.level_count)
        ones = np.ones(self.size)
        run_costs(np.ones((len(field_names(Economics)), self.size)), ones, ones)


@lru_cache(maxsize=64)
def _thread(level_count: int, is_few: bool) -> _Compiling:
    return _Compiling(level_count, is_few)
