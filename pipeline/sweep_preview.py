"""What a sweep would do (--dry-run): work, time, size and the first rows. Writes nothing."""

import numpy as np

from pipeline.grid import Grid
from pipeline.query_format import table_text
from pipeline.runner import worker_count
from pipeline.simulate import unit_tables, work_units
from pipeline.study_config import StudyConfig

FIRST_ROWS = 3
SHOWN = (
    "hardware",
    "topology",
    "model",
    "training_flop",
    "accelerator_count",
    "data_ranks",
    "pipeline_ranks",
    "model_flop_utilisation_fraction",
    "run_time_s",
    "infeasible_reason",
)
CANDIDATES_PER_CPU_S = {"epoch2024": 15e6, "calibrated": 5e6}  # `flopscape bench` on one core of a 2024 server
ROWS_PER_CPU_S = 1.5e6
BYTE_PER_ROW, BYTE_PER_PART = {"all": 30.0}, 25_000.0  # Parquet: few rows a part cost more in headers than in rows
FEW_ROWS_BYTE = 250.0


def estimates(study: StudyConfig, grid: Grid, candidates: int) -> tuple[float, float, int]:
    """Return (seconds, bytes, rows) that the sweep takes, about."""
    units = study.execution.share(work_units(grid))
    share = sum(map(len, units)) / grid.size
    slowest = min(CANDIDATES_PER_CPU_S.get(block.physics.id, 5e6) for block in grid.blocks)
    each = int(study.keep.partition(":")[2] or 1)
    rows = candidates if study.keep == "all" else grid.size * each
    workers = worker_count(study.execution.workers, len(units), candidates, study.keep)
    seconds = share * (candidates / slowest + (rows / ROWS_PER_CPU_S if study.keep == "all" else 0.0)) / workers
    byte = share * rows * BYTE_PER_ROW.get(study.keep, FEW_ROWS_BYTE) + len(units) * BYTE_PER_PART
    return seconds + 2.0, byte, round(share * rows)


def preview(study: StudyConfig, grid: Grid, candidates: int) -> str:
    """Return the text of a dry run."""
    seconds, byte, rows = estimates(study, grid, candidates)
    units = work_units(grid)
    lines = [
        f"keep={study.keep}: about {rows:,} rows in {len(units):,} work units, {_size(byte)}, {_duration(seconds)}",
        f"would go to {study.results}; nothing is written. The first rows:",
    ]
    return "\n".join(lines) + "\n" + first_rows(grid)


def first_rows(grid: Grid) -> str:
    """Return the first rows as text."""
    table = next(iter(unit_tables(grid, range(0, min(FIRST_ROWS, grid.size)))))
    names = [name for name in SHOWN if name in table]
    columns = [_values(table[name])[:FIRST_ROWS] for name in names]
    return table_text(names, list(zip(*columns, strict=True))) + "\n"


def _values(column: object) -> list[object]:
    return column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()  # type: ignore[attr-defined]


def _size(byte: float) -> str:
    return f"{byte / 1e9:.1f} GB" if byte >= 1e9 else f"{max(byte / 1e6, 0.1):.1f} MB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
