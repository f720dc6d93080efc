"""`flopscape sweep`: the whole flow, from overrides to a folder of results, an answer and a picture."""

import argparse
import sys
import time
from pathlib import Path

from pipeline.config import StudyConfig, compose_study
from pipeline.errors import UserError
from pipeline.grid import Grid, build_grid
from pipeline.side_tables import write_side_tables
from pipeline.simulate import count, run_unit, work_units
from pipeline.store import open_results


def read_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the options of `flopscape sweep` and the Hydra overrides beside them."""
    parser = argparse.ArgumentParser(
        prog="flopscape sweep",
        description="Compose a study (conf/config.yaml), search every scenario, write results, answer its question.",
        epilog="Overrides: study=NAME hardware=[a,b] model=NAME run.limit_s=7.9e6 axes.NAME={log: [a, b, n]} ...",
    )
    parser.add_argument("--config-dir", type=Path, help="a further folder with hardware/, model/, topology/ ...")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done and write nothing")
    parser.add_argument("overrides", nargs="*", help="Hydra overrides: key=value")
    options, unknown = parser.parse_known_args(argv)
    for each in unknown:
        if each.startswith("-"):
            raise UserError(f"command line: {each}: unknown option; see `flopscape sweep --help`")
    return options, [*options.overrides, *unknown]


def describe(grid: Grid) -> str:
    """Return one line that says how much work the sweep is."""
    scenarios, candidates = count(grid)
    return f"{grid.study.name}: {scenarios:,} scenarios, at least {candidates:,} candidate layouts"


def run(study: StudyConfig, grid: Grid) -> Path | str:
    """Run every work unit that is not finished yet and complete the results folder; return where it is."""
    from pipeline.progress import progress_bar

    units = work_units(grid)
    described = {"study": study.name, "question": study.question, "scenario_count": grid.size}
    description = {**described, "config": study.as_composed}
    results = open_results(study.results, description, units, resume=study.resume, replace=study.replace)
    candidates = 0
    with results, progress_bar(grid.size, "scenarios") as advance:
        for unit in units:
            if not results.is_finished(unit):
                table = run_unit(grid, unit)
                candidates += int(table["candidate_count"].sum())
                results.write_unit(unit, table)
            advance(len(unit))
        results.finish()
    write_side_tables(study, study.results)
    return study.results


def main(argv: list[str]) -> int:
    """Run `flopscape sweep [--config-dir DIR] [--dry-run] [overrides]`."""
    options, overrides = read_arguments(argv)
    study = compose_study(overrides, options.config_dir)
    grid = build_grid(study)
    print(describe(grid), flush=True)
    if options.dry_run:
        return 0
    started = time.perf_counter()
    where = run(study, grid)
    print(f"{grid.size:,} rows in {time.perf_counter() - started:.1f} s: {where}", flush=True)
    from pipeline.report import write_report

    sys.stdout.write(write_report(str(where)))
    return 0
