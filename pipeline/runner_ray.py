"""Work units on Ray: it schedules them over a cluster and tries lost ones again; workers write to the destination."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import device
from pipeline.errors import UserError
from pipeline.execution import Execution
from pipeline.store import PartWriter
from pipeline.store_files import is_remote

if TYPE_CHECKING:
    from pipeline.study_config import StudyConfig

RETRIES = 2
IN_FLIGHT_PER_CPU = 2  # units handed over ahead of what runs


def _unit_on_worker(study: "StudyConfig", writer: PartWriter, unit: range) -> int:
    """Run one unit in a Ray worker; the grid is built once in each."""
    from pipeline.runner_worker import write_unit

    return write_unit(_grid(study), writer, unit)


_grids: dict[str, Any] = {}


def _grid(study: "StudyConfig") -> Any:
    from pipeline.grid import build_grid

    key = repr(study.as_composed)
    if key not in _grids:
        device.keep_memory()
        _grids[key] = build_grid(study)
    return _grids[key]


def connect(execution: Execution) -> Any:
    """Return Ray, connected: to the cluster at `runner=ray://host:port`, the one that is up, or one made here.

    Ray forks to start one, so this comes before JAX has threads: a fork of a process with threads may never return.
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]  an extra
    except ImportError as error:
        raise UserError("config.yaml: runner = ray: Ray is not installed; pip install 'flopscape[ray]'") from error
    if ray.is_initialized():
        return ray
    address = execution.runner if "://" in execution.runner else os.environ.get("RAY_ADDRESS")
    root = str(Path(__file__).resolve().parents[1])
    environment = {**device.single_thread_environment(), "PYTHONPATH": os.pathsep.join([root, *_paths()])}
    try:
        ray.init(
            address=address,
            num_cpus=None if address else execution.workers or None,
            runtime_env={"env_vars": environment},
            include_dashboard=None if address else False,
            log_to_driver=False,
        )
    except (OSError, RuntimeError, ValueError) as error:  # ConnectionError and TimeoutError are OSErrors
        where = f"no cluster at {address}" if address else "no cluster could be started here"
        words = " ".join(str(error).split())[:200]
        remedy = "start one with `ray start --head`" if address else "choose runner=local"
        raise UserError(f"config.yaml: runner = {execution.runner}: {where}: {words}; {remedy}") from error
    return ray


def run_ray(
    study: "StudyConfig", units: Sequence[range], writer: PartWriter, on_done: Callable[[range, int], None]
) -> None:
    """Run units on a Ray cluster, and leave it."""
    ray = connect(study.execution)
    try:
        _all(ray, study, units, _absolute(writer), on_done)
    finally:
        ray.shutdown()


def _paths() -> list[str]:
    return [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]


def _absolute(writer: PartWriter) -> PartWriter:
    """Return the writer with a path that means the same in a worker's own working folder."""
    if is_remote(writer.url):
        return writer
    return PartWriter(str(Path(writer.url.removeprefix("file://")).resolve()), writer.identity_sha256)


def _all(
    ray: Any, study: "StudyConfig", units: Sequence[range], writer: PartWriter, on_done: Callable[[range, int], None]
) -> None:
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(_unit_on_worker)
    shared = ray.put(study)
    ahead = IN_FLIGHT_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting, running = list(reversed(units)), {}
    while waiting or running:
        while waiting and len(running) < ahead:
            unit = waiting.pop()
            running[remote.remote(shared, writer, unit)] = unit
        finished, _ = ray.wait(list(running), num_returns=1)
        for reference in finished:
            unit = running.pop(reference)
            try:
                on_done(unit, ray.get(reference))
            except ray.exceptions.RayTaskError as error:
                cause = error.cause if isinstance(error.cause, UserError) else None
                words = str(cause) if cause else f"runner: work unit {unit}: {' '.join(str(error).split())[-300:]}"
                raise UserError(words) from error
