"""What a worker does: compute work units and write their parts. Also the whole of a run in one process."""

import os
import queue
import signal
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, TypeVar

from pipeline import device
from pipeline.errors import UserError
from pipeline.store_files import is_remote

if TYPE_CHECKING:
    from pipeline.grid import Grid
    from pipeline.store import PartWriter
    from pipeline.study_config import StudyConfig

Item = TypeVar("Item")
AHEAD = 2  # pieces computed while one is encoded
PARENT_DEATH_SIGNAL = 1  # prctl's PR_SET_PDEATHSIG


def overlapped(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator that another thread runs ahead: computing beside encoding."""
    waiting: queue.Queue[Any] = queue.Queue(maxsize=AHEAD)
    stopped = threading.Event()

    def put(kind: str, value: Any) -> None:
        while not stopped.is_set():
            try:
                return waiting.put((kind, value), timeout=0.1)
            except queue.Full:
                continue

    def produce() -> None:
        try:
            for item in items:
                if stopped.is_set():
                    return
                put("item", item)
            put("end", None)
        except BaseException as error:  # whatever it is, the reader raises it
            put("error", error)

    threading.Thread(target=produce, daemon=True).start()
    try:
        while True:
            kind, value = waiting.get()
            if kind == "error":
                raise value
            if kind == "end":
                return
            yield value
    finally:
        stopped.set()


def write_unit(grid: "Grid", writer: "PartWriter", unit: range) -> int:
    """Compute a unit and write its parts; return its rows.

    On one core, computing beside encoding only drives both out of the cache; there it pays where writing must wait.
    """
    from pipeline.simulate import unit_tables

    tables = unit_tables(grid, unit)
    is_alone = len(device.available_cores()) == 1 and not is_remote(writer.url)
    return writer.write_tables(unit, tables if is_alone else overlapped(tables))


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent dies, however it dies."""
    import ctypes

    try:
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    except (OSError, AttributeError):  # not Linux: the closed pipe ends it after its unit
        return


def pin(core: int) -> None:
    """Keep this process on one core, where the system allows it."""
    try:
        os.sched_setaffinity(0, {core})
    except (OSError, AttributeError):
        return


def work(link: Connection, study: "StudyConfig", writer: "PartWriter", core: int) -> None:
    """Run units that come over the link until it closes; answer with (what happened, unit, rows or words)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    die_with_parent()
    pin(core)
    from pipeline import device

    device.keep_memory()
    device.prepare("cpu")
    from pipeline.grid import build_grid

    grid = build_grid(study)
    link.send(("ready", None, 0))
    while True:
        try:
            unit = link.recv()
        except (EOFError, OSError):
            return
        try:
            answer = ("done", unit, write_unit(grid, writer, unit))
        except UserError as error:
            answer = ("refused", unit, str(error))
        except Exception as error:
            answer = ("failed", unit, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")
        link.send(answer)
