"""From overrides to tables: cached (same question, same answer), with progress, and given up when no longer wanted."""

import copy
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.app.configurations import (
    Configuration,
    overrides,
    preset_overrides,
    read_configuration,
    set_changes,
)
from pipeline.config import compose_study
from pipeline.grid import Grid, build_grid
from pipeline.simulate import Table, run_unit, work_units
from pipeline.store_table import arrow_table
from pipeline.study_config import StudyConfig, read_study

CACHED_ANSWERS, REMEMBERED_PAGES = 48, 512
SLICE_SCENARIOS = 16  # of a long computation: between slices progress is told and a cancel is heard
Tell = Callable[[int, int], None]


class Cancelled(Exception):  # noqa: N818 - no error: nobody waits for the answer any more
    """The computation was given up."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One configuration's rows."""

    overrides: tuple[str, ...]
    grid: Grid
    table: Table

    @cached_property
    def arrow(self) -> pa.Table:
        """The rows with unit, meaning and source of each column."""
        return arrow_table(self.table)

    @cached_property
    def feasible(self) -> dict[str, np.ndarray]:
        """The feasible rows, ordered by training compute and then accelerators."""
        keep = np.flatnonzero(self.table["is_feasible"].astype(bool))
        order = np.lexsort((self.table["accelerator_count"][keep], self.table["training_flop"][keep]))
        return {name: values[keep[order]] for name, values in self.table.items()}


_compose = threading.Lock()  # Hydra keeps one global state
_cached = threading.Lock()
_slots = threading.BoundedSemaphore(2)
_answers: "OrderedDict[tuple[str, ...], Answer]" = OrderedDict()


@lru_cache(maxsize=32)
def _preset(overrides: tuple[str, ...]) -> StudyConfig:
    with _compose:
        return compose_study(list(overrides))


def study_of(configuration: Configuration) -> StudyConfig:
    """Return what `compose_study` makes of the configuration's overrides, without composing its entries each time."""
    preset = _preset(preset_overrides(configuration))
    plain = copy.deepcopy(dict(preset.as_composed))
    set_changes(plain, configuration)
    return read_study(plain, preset.economics)


def answer(configuration: Configuration, tell: Tell = lambda done, total: None) -> Answer:
    """Return the rows of a configuration. `tell` hears of progress and may raise Cancelled.

    Raises UserError in one line if the configuration is wrong.
    """
    key = overrides(configuration)
    with _cached:
        if key in _answers:
            _answers.move_to_end(key)
            return _answers[key]
    tell(0, 1)
    grid = build_grid(study_of(configuration))
    with _slots:
        found = Answer(overrides=key, grid=grid, table=_run(grid, tell))
    with _cached:
        _answers[key] = found
        while len(_answers) > CACHED_ANSWERS:
            _answers.popitem(last=False)
    return found


def _run(grid: Grid, tell: Tell) -> Table:
    units = work_units(grid)
    if len(units) > 1:
        size = SLICE_SCENARIOS
        units = [range(at, min(at + size, unit.stop)) for unit in units for at in range(unit.start, unit.stop, size)]
    tables = []
    for unit in units:
        tell(unit.start, grid.size)
        tables.append(run_unit(grid, unit))
    return {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}


class Pages:
    """Which request each open page waits for: a newer one, or a cancel, ends the older ones. Pages know no other."""

    def __init__(self) -> None:
        """Begin without pages."""
        self._lock = threading.Lock()
        self._pages: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def begin(self, page: str, revision: int) -> None:
        """Note that a page now waits for this revision, unless it waits for a newer one."""
        with self._lock:
            state = self._pages.setdefault(page, {"revision": -1, "done": 0, "total": 1, "cancelled": -1})
            state["revision"] = max(state["revision"], revision)
            state["done"] = 0
            self._pages.move_to_end(page)
            while len(self._pages) > REMEMBERED_PAGES:
                self._pages.popitem(last=False)

    def check(self, page: str, revision: int, done: int, total: int) -> None:
        """Note progress; raise Cancelled if the page no longer waits for this revision."""
        with self._lock:
            state = self._pages.get(page)
            if state is None or state["revision"] != revision or state["cancelled"] >= revision:
                raise Cancelled
            state["done"], state["total"] = done, total

    def is_current(self, page: str, revision: int) -> bool:
        """Return whether the page still waits for this revision."""
        with self._lock:
            return page in self._pages and self._pages[page]["revision"] == revision

    def cancel(self, page: str) -> None:
        """Give up what the page waits for."""
        with self._lock:
            if page in self._pages:
                self._pages[page]["cancelled"] = self._pages[page]["revision"]

    def progress(self, page: str) -> tuple[int, int]:
        """Return (scenarios done, scenarios in all) of what the page waits for."""
        with self._lock:
            state = self._pages.get(page)
            return (int(state["done"]), int(state["total"])) if state else (0, 1)


def redraw_seconds() -> float:
    """Return how long one changed number takes to a new utilisation curve, once warm."""
    from pipeline.figures import Series, utilisation_figure

    def draw(bandwidth_byte_per_s: float) -> float:
        started = time.perf_counter()
        numbers = {"hardware.hbm_byte_per_s": repr(bandwidth_byte_per_s)}
        configuration = read_configuration({"name": "H100", "numbers": numbers})
        found = answer(configuration)
        utilisation_figure([Series(configuration.name, found.feasible, 0)]).to_json()
        return time.perf_counter() - started

    draw(3.3e12)
    changed = time.time_ns() % 1_000_000  # a number that no earlier call has cached
    return sorted(draw(3.3e12 + 1e6 * changed + step) for step in range(1, 6))[2]
