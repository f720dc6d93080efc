"""The benchmark compares like with like and says what the figures hold for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import bench, bench_work

ROOT = Path(__file__).parent.parent.parent
ROUNDING = 1e-12  # the same formulas, the same order of operations, three ways of carrying them out
SAME = """
from pipeline.bench_work import Candidates
print(Candidates().check())
"""


def test_numpy_and_plain_python_give_the_same_step_times():
    """In a process of its own: this test run checks that arrays are JAX's, and here they are not."""
    done = subprocess.run([sys.executable, "-c", SAME], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout) < ROUNDING


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    class Few:
        def rates(self):
            return {"evaluated": 3e7, "numpy": 2e6, "python": 1e4}

        def check(self):
            return 1e-16

    monkeypatch.setattr(bench_work, "Candidates", Few)
    monkeypatch.setattr(bench_work, "row_rates", lambda *study: {"rows": 2.0, "encode": 4.0, "columns": 60.0})
    monkeypatch.setattr(bench_work, "search_rate", lambda grid: 2e7)
    monkeypatch.setattr(bench_work, "h100_sweep", lambda: {"warm_s": 0.05, "cold_s": 5.0})
    monkeypatch.setattr(bench_work, "growth", lambda: {"growth_10x": 1.0, "growth_100x": 1.0})
    monkeypatch.setattr(bench, "further", lambda: {"frontier_10m_s": 1.0})
    monkeypatch.setattr(bench, "pin_to_one_core", lambda: None)


def test_json_has_the_figures_by_name(quick, capsys):
    assert bench.main(["--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    names = {"candidates_per_cpu_s", "numpy_ratio", "python_ratio", "rows_written_per_cpu_s", "encode_bound_share"}
    assert names | {"h100_sweep", "peak_rss_bytes", "growth_10x", "growth_100x", "machine"} <= set(figures)
    assert set(figures["candidates_per_cpu_s"]) == {"epoch2024", "calibrated"}
    assert {"warm_s", "cold_s"} <= set(figures["h100_sweep"])
    assert figures["encode_bound_share"] == 0.5 and figures["numpy_ratio"] == 15.0
    assert {"processor", "cores", "load_average", "precision"} <= set(figures["machine"])


def test_text_says_what_is_reached_and_what_is_not(quick, capsys):
    bench.main([])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "reached: at most 0.1" in lines["h100_sweep.warm_s"]
    assert "NOT reached: at most 4" in lines["h100_sweep.cold_s"]
    assert "NOT reached: at least 0.8" in lines["encode_bound_share"]


def test_the_work_of_the_benchmark_is_the_reference_sweep():
    grid = bench_work.grid_of(*bench_work.H100)
    table = bench_work.winners(grid)
    assert int(table["is_feasible"].sum()) == 31
    assert int(table["candidate_count"][table["is_feasible"]].sum()) == 1_669_885
