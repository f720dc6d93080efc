"""Runs work units: in this process, in one pinned process a core, or on Ray. The rows are the same."""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, Any

from pipeline import device
from pipeline.errors import UserError
from pipeline.runner_worker import work, write_unit
from pipeline.store import PartWriter, unit_name

if TYPE_CHECKING:
    from pipeline.grid import Grid
    from pipeline.study_config import StudyConfig

SMALL_CANDIDATES, SMALL_ROWS = 60_000_000, 4_000_000
"""A job of fewer candidates (rows, with keep=all) is done before other processes are up."""
LOOK_EVERY_S = 0.5
ATTEMPTS = 2
Done = Callable[[range, int], None]


def worker_count(asked: int, unit_count: int, candidates: int, keep: str) -> int:
    """Return how many processes to run: as asked, else one a core; 1 (this one) if the job is small."""
    if asked:
        return min(asked, max(unit_count, 1))
    if candidates < (SMALL_ROWS if keep == "all" else SMALL_CANDIDATES):
        return 1
    return max(1, min(len(device.available_cores()), unit_count))


def run_here(grid: "Grid", units: Sequence[range], writer: PartWriter, on_done: Done) -> None:
    """Run units in this process, one after another."""
    for unit in units:
        on_done(unit, write_unit(grid, writer, unit))


@dataclass
class _Worker:
    process: SpawnProcess
    link: Any
    core: int
    unit: range | None = None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.link.close()


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Set variables of the environment while processes are started, which inherit it."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _start(study: "StudyConfig", writer: PartWriter, core: int) -> _Worker:
    context = get_context("spawn")
    here, there = context.Pipe()
    with _environment(device.single_thread_environment()):
        process = context.Process(target=work, args=(there, study, writer, core), daemon=True)
        process.start()
    there.close()
    return _Worker(process, here, core)


def run_local(study: "StudyConfig", units: Sequence[range], writer: PartWriter, workers: int, on_done: Done) -> None:
    """Run units in so many processes, each on a core of its own.

    A worker that dies is replaced and its unit tried once more; a unit that ends two workers is named. However this
    function ends, no worker outlives it.
    """
    cores = device.available_cores()
    crew = _Crew(study, writer, deque(units), on_done)
    try:
        for number in range(workers):
            crew.hire(cores[number % len(cores)])
        while crew.members:
            crew.attend()
    finally:
        for member in crew.members:
            member.kill()


class _Crew:
    """The workers of a run and what they have to do."""

    def __init__(self, study: "StudyConfig", writer: PartWriter, waiting: "deque[range]", on_done: Done):
        self._study, self._writer, self._waiting, self._on_done = study, writer, waiting, on_done
        self._deaths: dict[range, int] = {}
        self.members: list[_Worker] = []

    def hire(self, core: int) -> None:
        self.members.append(_start(self._study, self._writer, core))

    def attend(self) -> None:
        """Hear what the workers say, and give each that is idle its next unit."""
        links = {member.link: member for member in self.members}
        for link in wait(list(links), timeout=LOOK_EVERY_S):
            member = links[link]  # type: ignore[index]
            try:
                said, unit, what = member.link.recv()
            except (EOFError, OSError):
                self._replace(member)
                continue
            if said == "refused":
                raise UserError(str(what))
            if said == "failed":
                self._count_death(unit, str(what))
                self._waiting.appendleft(unit)
            if said == "done":
                self._on_done(unit, int(what))
            self._next(member)

    def _next(self, member: _Worker) -> None:
        member.unit = self._waiting.popleft() if self._waiting else None
        if member.unit is None:
            self._dismiss(member)
            return
        try:
            member.link.send(member.unit)
        except OSError:
            self._replace(member)

    def _dismiss(self, member: _Worker) -> None:
        member.link.close()
        member.process.join(timeout=5)
        self.members.remove(member)

    def _replace(self, member: _Worker) -> None:
        """Take on another worker for one that died; its unit goes first."""
        member.process.join(timeout=1)
        code = member.process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        self.members.remove(member)
        member.kill()
        if member.unit is None:
            raise UserError(f"runner: a worker {how} before it began; run again with workers=1 to see why")
        self._count_death(member.unit, f"its worker {how}")
        self._waiting.appendleft(member.unit)
        self.hire(member.core)

    def _count_death(self, unit: range, how: str) -> None:
        self._deaths[unit] = self._deaths.get(unit, 0) + 1
        if self._deaths[unit] >= ATTEMPTS:
            raise UserError(
                f"runner: work unit {unit_name(unit)} failed twice ({how}); what is written stays: "
                "give it more memory or fewer workers and run again with resume=true"
            )
