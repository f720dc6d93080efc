"""`flopscape bench [--json]`: how fast it is on this machine, on one core, and against what."""

import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

from pipeline import device
from pipeline.arguments import Parser

TARGETS = {
    "candidates_per_cpu_s.epoch2024": 20e6,
    "candidates_per_cpu_s.calibrated": 8e6,
    "numpy_ratio": 10.0,
    "rows_written_per_cpu_s": 3e6,
    "encode_bound_share": 0.8,
    "h100_sweep.warm_s": 0.1,
    "h100_sweep.cold_s": 4.0,
    "peak_rss_bytes": float(2 << 30),
    "growth_10x": 1.05,
    "growth_100x": 1.05,
    "redraw_s": 0.5,
    "frontier_10m_s": 1.0,
}
AT_MOST = ("h100_sweep.warm_s", "h100_sweep.cold_s", "peak_rss_bytes", "growth_10x", "growth_100x")
AT_MOST += ("redraw_s", "frontier_10m_s")


def machine() -> dict[str, Any]:
    """Return what the figures hold for."""
    import jax

    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "precision": "float64",
    }


def pin_to_one_core() -> None:
    """Keep to one core, with single-threaded libraries: the figures are per CPU-second of one process."""
    os.environ.update({**device.single_thread_environment()})
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    device.keep_memory()


def measure() -> dict[str, Any]:
    """Return all figures."""
    from pipeline import bench_work as work

    candidates = work.Candidates()
    rates = candidates.rates()
    rows, layouts = work.row_rates(*work.EVERY_ROW), work.row_rates(*work.EVERY_LAYOUT)
    figures = {
        "candidates_per_cpu_s": {
            "epoch2024": work.search_rate(work.grid_of(*work.H100)),
            "calibrated": work.search_rate(work.grid_of(*work.CALIBRATED)),
        },
        "candidates_evaluated_per_cpu_s": rates["evaluated"],
        "numpy_per_cpu_s": rates["numpy"],
        "python_per_cpu_s": rates["python"],
        "numpy_ratio": rates["evaluated"] / rates["numpy"],
        "python_ratio": rates["evaluated"] / rates["python"],
        "largest_difference": candidates.check(),
        "rows_written_per_cpu_s": rows["rows"],
        "encode_only_rows_per_cpu_s": rows["encode"],
        "encode_bound_share": rows["rows"] / rows["encode"],
        "columns": rows["columns"],
        "calibrated_rows": {
            "written_per_cpu_s": layouts["rows"],
            "encode_bound_share": layouts["rows"] / layouts["encode"],
            "columns": layouts["columns"],
        },
        "h100_sweep": work.h100_sweep(),
        **work.growth(),
        "peak_rss_bytes": work.peak_rss_bytes(),
        **further(),
    }
    return {"machine": machine(), **figures}


def further() -> dict[str, float]:
    """Return what other parts of the program measure of themselves: redrawing the app, the frontier in SQL."""
    from pipeline.bench_frontier import frontier_benchmark

    with device.all_cores():  # a query uses the machine as it is, all of its cores
        result = {"frontier_10m_s": frontier_benchmark()}
    try:
        from pipeline.app.answers import redraw_seconds
    except ImportError:  # the app is an extra
        return result
    return result | {"redraw_s": redraw_seconds()}


def flat(figures: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested figures under dotted names."""
    result: dict[str, Any] = {}
    for name, value in figures.items():
        result |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return result


def report(figures: dict[str, Any]) -> str:
    """Return the figures as text, each beside its target."""
    lines = [f"{figures['machine']['processor']}, one core, float64", ""]
    for name, value in flat({key: each for key, each in figures.items() if key != "machine"}).items():
        line = f"{name:<36} {value:>14,.4g}"
        if name in TARGETS:
            reached = value <= TARGETS[name] if name in AT_MOST else value >= TARGETS[name]
            bound = "at most" if name in AT_MOST else "at least"
            line += f"   {'reached' if reached else 'NOT reached'}: {bound} {TARGETS[name]:,.4g}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def main(argv: list[str]) -> int:
    """Run `flopscape bench [--json]`."""
    parser = Parser(prog="flopscape bench", description="How fast it is on one core of this machine.")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    options = parser.parse_args(argv)
    pin_to_one_core()
    figures = measure()
    sys.stdout.write(json.dumps(figures, indent=1) + "\n" if options.json else report(figures))
    return 0
