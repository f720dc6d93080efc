"""One study, carried out: its work units run where the configuration says, its results folder completed."""

from pipeline.device import settled
from pipeline.grid import Grid
from pipeline.progress import progress_bar
from pipeline.runner import run_here, run_local, worker_count
from pipeline.side_tables import write_side_tables
from pipeline.simulate import work_units
from pipeline.store import open_results
from pipeline.study_config import StudyConfig


def run_study(study: StudyConfig, grid: Grid, candidates: int = 0) -> int | None:
    """Run every work unit that is not finished yet; return the rows of the whole run, None if other shards go on.

    `candidates` is how many the search looks at, about: a small job is not worth other processes.
    """
    units = work_units(grid)
    described = {"study": study.name, "question": study.question, "scenario_count": grid.size}
    description = {**described, "config": study.as_composed, "skipped": list(grid.skipped)}
    execution = study.execution
    with open_results(
        study.results, description, units, resume=study.resume, replace=study.replace, shard=execution.shard
    ) as results:
        mine = execution.share(units)
        waiting = [unit for unit in mine if not results.is_finished(unit)]
        workers = worker_count(execution.workers, len(waiting), candidates, study.keep)
        with progress_bar(sum(map(len, mine)), "scenarios") as advance:
            advance(sum(len(unit) for unit in mine if results.is_finished(unit)))

            def on_done(unit: range, rows: int) -> None:
                advance(len(unit))

            if execution.is_ray:
                from pipeline.runner_ray import run_ray

                run_ray(study, waiting, results.writer, on_done)
            elif waiting and workers > 1 and settled(execution.device) == "cpu":
                run_local(study, waiting, results.writer, workers, on_done)
            else:
                run_here(grid, waiting, results.writer, on_done)
        write_side_tables(study, study.results)
        manifest = results.finish() if execution.shard is None else results.finish_if_last()
    return None if manifest is None else int(manifest["row_count"])
