"""`flopscape sweep`: the whole flow, from overrides to a folder of results, an answer and a picture."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline import device
from pipeline.arguments import Parser
from pipeline.errors import UserError

if TYPE_CHECKING:
    from pipeline.grid import Grid
    from pipeline.study_config import StudyConfig


def read_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of `flopscape sweep` and the Hydra overrides beside them."""
    parser = Parser(
        prog="flopscape sweep",
        description="Compose a study (conf/config.yaml), search every scenario, write results, answer its question.",
        epilog="Overrides: study=NAME hardware=[a,b] model=NAME run.limit_s=7.9e6 axes.NAME={log: [a, b, n]} ...",
    )
    parser.add_argument("--config-dir", type=Path, help="a further folder with hardware/, model/, topology/ ...")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and write nothing")
    parser.add_argument(
        "-m", "--multirun", action="store_true", help="Hydra's sweep syntax: hardware=a,b topology=glob(*) key=1,2,3"
    )
    parser.add_argument("overrides", nargs="*", help="Hydra overrides: key=value")
    options, unknown = parser.parse_known_args(argv)
    for each in unknown:
        if each.startswith("-"):
            raise UserError(f"command line: {each}: unknown option; see `flopscape sweep --help`")
    return options, [*options.overrides, *unknown]


def run(study: "StudyConfig", grid: "Grid", candidates: int = 0) -> str:
    """Run every work unit that is not finished yet and complete the results folder; return where it is."""
    from pipeline.sweep_run import run_study

    run_study(study, grid, candidates)
    return study.results


def sweep(study: "StudyConfig", *, dry_run: bool) -> int:
    """Carry out one study and say what came of it."""
    from pipeline.grid import build_grid
    from pipeline.simulate import count
    from pipeline.sweep_run import run_study

    if study.execution.is_ray and not dry_run:
        from pipeline.runner_ray import connect

        connect(study.execution)
    device.settled(study.execution.device)
    grid = build_grid(study)
    scenarios, candidates = count(grid)
    print(f"{study.name}: {scenarios:,} scenarios, at least {candidates:,} candidate layouts", flush=True)
    for first in grid.skipped[:1]:
        more = f" and {len(grid.skipped) - 1} more (`skipped` in manifest.json)" if len(grid.skipped) > 1 else ""
        print(f"left out: {first}{more}", flush=True)
    if dry_run:
        from pipeline.sweep_preview import preview

        sys.stdout.write(preview(study, grid, candidates))
        return 0
    started = time.perf_counter()
    rows = run_study(study, grid, candidates)
    took = f"in {time.perf_counter() - started:.1f} s: {study.results}"
    if rows is None:
        print(f"this shard is written {took}; others have units to write", flush=True)
        return 0
    print(f"{rows:,} rows {took}", flush=True)
    from pipeline.report import write_report

    sys.stdout.write(write_report(study.results))
    return 0


def main(argv: list[str]) -> int:
    """Run `flopscape sweep [--config-dir DIR] [--dry-run] [-m] [overrides]`."""
    options, overrides = read_arguments(argv)
    if options.multirun:
        from pipeline.multirun import run_many

        return run_many(overrides, options.config_dir, dry_run=options.dry_run)
    from pipeline.config import compose_study

    return sweep(compose_study(overrides, options.config_dir), dry_run=options.dry_run)
