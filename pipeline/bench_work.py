"""The pieces of work that the benchmark times."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.evaluate import best_placements, bounds, placement_outcomes
from pipeline import device
from pipeline.bench_slow import numpy_outcomes, python_outcomes, rate_per_cpu_s
from pipeline.block import scenario_table
from pipeline.config import compose_study
from pipeline.grid import Grid, build_grid
from pipeline.layouts import placements, used_group_ranks
from pipeline.physics import PhysicsEntry
from pipeline.runner_worker import write_unit
from pipeline.search import search
from pipeline.search_layouts import degree_limits, degree_rows, packed_layouts
from pipeline.simulate import run_unit, unit_tables
from pipeline.store import PartWriter

Float64 = NDArray[np.float64]
H100 = ("hardware=epoch_h100_sxm", "model=epoch_dense", "topology=vendor", "physics=epoch2024", "study=reference_model")
CALIBRATED = (
    "hardware=h100_sxm5",
    "model=[llama31_405b,llama3_70b,gpt3_175b,mixtral_8x22b]",
    "topology=vendor",
    "physics=calibrated",
    "study=reference_model",
    "axes.accelerator_count={log2: [256, 65536]}",
    "axes.scale_out_byte_per_s_ratio={log: [0.1, 10, 8]}",  # as many candidates as the H100 sweep has
)
EVERY_ROW = (*H100, "keep=all", "run.training_flop_maximum=1e28", "axes.accelerator_count=[65536,1048576,16777216]")
EVERY_LAYOUT = (
    *CALIBRATED[:-2],
    "keep=all",
    "axes.accelerator_count=[512,2048,8192]",
    "axes.scale_out_byte_per_s_ratio={log: [0.1, 10, 8]}",
)
PYTHON_POINTS = 2000
COLD = """
import time; started = time.perf_counter()
from pipeline import device; device.prepare("cpu")
from pipeline.bench_work import H100, grid_of, winners
table = winners(grid_of(*H100))
print(time.perf_counter() - started, int(table["is_feasible"].sum()))
"""


def grid_of(*overrides: str) -> Grid:
    """Return the grid of a study by its overrides."""
    return build_grid(compose_study(list(overrides)))


def winners(grid: Grid) -> dict[str, Any]:
    """Return the best layout of every scenario."""
    return run_unit(grid, range(grid.size))


def search_rate(grid: Grid) -> float:
    """Return the candidates of a study's whole search a CPU-second, pruning and enumeration of layouts included."""
    table = winners(grid)
    return rate_per_cpu_s(lambda: winners(grid), int(table["candidate_count"].sum()))


class Candidates:
    """Every candidate of the H100 sweep's largest clusters, to be evaluated without a bound."""

    def __init__(self) -> None:
        """Enumerate them: for each feasible scenario the layouts at its own size of cluster."""
        block = grid_of(*H100).blocks[0]
        assert isinstance(block.physics, PhysicsEntry)
        self.physics, rules = block.physics.physics, block.physics.rules
        table = scenario_table(block, block.columns(np.arange(block.size)))
        self.level_count, found = table.level_count, search(table, self.physics, rules)
        pieces = []
        for at in np.nonzero(found.is_feasible)[0]:
            layouts = packed_layouts(table.shapes[table.shape_index[at]], int(found.accelerator_count[at]), rules)
            pieces.append(np.concatenate([np.repeat(table.matrix[:, [at]], layouts.shape[1], axis=1), layouts]))
        self.points = np.concatenate(pieces, axis=1)
        self.scenario_rows = table.matrix.shape[0]
        count = int(found.accelerator_count[found.is_feasible].max())
        used = used_group_ranks(count, table.group_ranks[0])
        degrees = degree_rows(self.points[self.scenario_rows :])
        ways = placements(used, degree_limits(degrees, used))
        self.lowers = ways.reshape(len(ways), -1).T.astype(np.float64)
        top = degrees[:, :, None] / self.lowers[:, None, :]
        self.divides = (top == np.floor(top)).all(axis=0)
        self.count = int(self.divides.sum())

    def placed(self, limit: int) -> Float64:
        """Return the first so many candidates as fully placed, packed points."""
        layout, way = (each[:limit] for each in np.nonzero(self.divides))
        points, lower = self.points[:, layout], self.lowers[:, way]
        return np.concatenate([points, lower, degree_rows(points[self.scenario_rows :]) / lower])

    def evaluate(self) -> None:
        """Bound every layout and try every placement of it: the whole search with nothing left out."""
        bounds(self.points, self.physics, self.level_count)
        best_placements(self.points, self.lowers, self.physics, self.level_count)

    def rates(self) -> dict[str, float]:
        """Return candidates a CPU-second: all of them, by NumPy, by a plain Python loop."""
        sizes = (self.scenario_rows, self.points.shape[0] - self.scenario_rows)
        many, few = self.placed(1 << 17), self.placed(PYTHON_POINTS)
        more = (sizes, self.physics, self.level_count)
        return {
            "evaluated": rate_per_cpu_s(self.evaluate, self.count),
            "numpy": rate_per_cpu_s(lambda: numpy_outcomes(many, *more), many.shape[1]),
            "python": rate_per_cpu_s(lambda: python_outcomes(few, *more), few.shape[1]),
        }

    def check(self) -> float:
        """Return the largest relative difference of the three versions' step times (should be rounding)."""
        points = self.placed(PYTHON_POINTS)
        sizes = (self.scenario_rows, self.points.shape[0] - self.scenario_rows)
        by_numpy = np.concatenate(
            [each.step_time_s for each in numpy_outcomes(points, sizes, self.physics, self.level_count)]  # type: ignore[arg-type]
        )
        by_python = np.array(
            [each.step_time_s for each in python_outcomes(points, sizes, self.physics, self.level_count)]
        )
        few = self.points[:, :PYTHON_POINTS]
        placed, _, divides, _ = placement_outcomes(few, self.lowers, self.physics, self.level_count)
        ours = placed["step_time_s"][divides][:PYTHON_POINTS]
        size = len(ours)
        return float(max(np.abs(by_numpy[:size] / ours - 1).max(), np.abs(by_python[:size] / ours - 1).max()))


def row_rates(*study: str) -> dict[str, float]:
    """Return rows written a CPU-second with keep=all, the same without computing them, and the columns of a row."""
    grid = grid_of(*study)
    unit = range(0, grid.size)
    best: dict[str, float] = {"rows": 0.0, "encode": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        writer = PartWriter(folder, "bench")
        tables = list(unit_tables(grid, unit))
        for _ in range(3):
            started = time.process_time()
            rows = write_unit(grid, writer, unit)
            best["rows"] = max(best["rows"], rows / (time.process_time() - started))
            started = time.process_time()
            writer.write_tables(unit, iter(tables))
            best["encode"] = max(best["encode"], rows / (time.process_time() - started))
    return best | {"columns": float(len(tables[0]))}


def h100_sweep() -> dict[str, float]:
    """Return wall time of the reference's H100 sweep: warm, from a cold start, and from a start with kernels kept."""
    grid = grid_of(*H100)
    table, seconds, cpu = winners(grid), [], []
    for _ in range(9):
        started, cpu_started = time.perf_counter(), time.process_time()
        winners(grid)
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - cpu_started)
    feasible = table["is_feasible"]
    with tempfile.TemporaryDirectory() as cache:
        one_core = _cold_start(cache)
    with device.all_cores(), tempfile.TemporaryDirectory() as cache:  # a start uses the machine as it is
        cold, again = (_cold_start(cache) for _ in range(2))
    return {
        "warm_s": min(seconds),
        "warm_cpu_s": min(cpu),
        "cold_s": cold,
        "cold_on_one_core_s": one_core,
        "cold_with_kept_kernels_s": again,
        "candidates": float(table["candidate_count"][feasible].sum()),
        "feasible": float(feasible.sum()),
    }


def _cold_start(cache: str) -> float:
    environment = {**os.environ, "FLOPSCAPE_CACHE": cache, "PYTHONPATH": str(Path(__file__).parents[1])}
    for name in [each for each in environment if each.startswith(("JAX_", "XLA_")) or each in device.SINGLE_THREAD]:
        del environment[name]
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", COLD], env=environment, check=True, capture_output=True)
    return time.perf_counter() - started


def growth(repeats: int = 100) -> dict[str, float]:
    """Return CPU time of 10 and 100 times the H100 sweep's work over 10 and 100 times its CPU time."""
    seconds = {}
    for times in (1, 10, repeats):
        axis = ",".join(f"{7.885e6 * (1.0 + 1e-5 * each):.1f}" for each in range(times))
        grid = grid_of(*H100, f"axes.run_limit_s=[{axis}]")
        winners(grid)
        runs = []
        for _ in range(3 if times < repeats else 1):
            started = time.process_time()
            winners(grid)
            runs.append(time.process_time() - started)
        seconds[times] = min(runs)
    return {
        "growth_10x": seconds[10] / (10 * seconds[1]),
        "growth_100x": seconds[repeats] / (repeats * seconds[1]),
    }


def peak_rss_bytes() -> int:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
