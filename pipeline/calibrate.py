"""`flopscape calibrate`: fit the model's global constants on published runs, and say how well it does on others."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.arguments import Parser
from pipeline.calibrate_fit import Float64, Mask, Problem, fit, folds, packed
from pipeline.calibrate_memory import memory_folds, memory_problem
from pipeline.calibrate_priors import TIME_PRIORS, Prior, source_group
from pipeline.calibrate_write import Fitted, write_constants
from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.errors import UserError
from pipeline.physics_calibrated import CalibratedEntry, load_calibrated
from pipeline.run_scores import score
from pipeline.runs import Runs, read_runs
from pipeline.runs_table import FURTHER_RUNS, PUBLISHED_RUNS

PRESET = CONF_DIRECTORY / "physics" / "calibrated.yaml"
WHOLE_ITERATIONS, FAMILY_ITERATIONS, SOURCE_ITERATIONS = 14, 6, 8
GROUPS = ("dense_16bit", "dense_fp8", "dense_fp4", "moe", "all")
FEWEST_FAMILIES = 2
TESTS = {
    "in sample": "fitted on all",
    "family out": "each family predicted by constants fitted on the others",
    "source out": "all families of one source left out together",
}


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Constants with their ranges, and predictions of every run: in sample, family left out, source left out."""

    fitted: Mapping[str, Fitted]
    about: pl.DataFrame  # of the runs with a step time
    predicted_s: Mapping[str, Float64]
    memory: pl.DataFrame  # measured and predicted peaks, family left out and in sample


def load_preset(path: Path = PRESET) -> CalibratedEntry:
    """Return the calibrated preset of conf."""
    return load_calibrated(read_yaml(path), f"physics/{path.name}", path.stem)


def time_problem(
    runs: Runs, constants: Mapping[str, float], priors: Mapping[str, Prior] = TIME_PRIORS
) -> tuple[Problem, pl.DataFrame]:
    """Return the fit of step times, and what is known of the runs that have one. Raises UserError if too few do."""
    is_timed = runs.about["measured_step_s"].is_not_null().to_numpy()
    about = runs.about.filter(pl.Series(is_timed))
    is_used = (about["aside"] == "").to_numpy()
    families = about["family"].to_numpy().astype(np.str_)
    if len(np.unique(families[is_used])) < FEWEST_FAMILIES:
        raise UserError(f"runs table: fewer than {FEWEST_FAMILIES} families with step times; give a larger table")
    problem = Problem(
        points=packed({name: values[is_timed] for name, values in runs.columns.items()}),
        measured=about["measured_step_s"].to_numpy(),
        families=families,
        is_used=is_used,
        constants=constants,
        priors=priors,
    )
    return problem, about


def calibrate(runs: Runs, constants: Mapping[str, float]) -> Calibration:
    """Return constants fitted on all runs, their range over folds, and how each test predicts."""
    problem, about = time_problem(runs, constants)
    families, is_used = problem.families, problem.is_used
    whole = fit(problem, np.ones(len(families), dtype=bool), iterations=WHOLE_ITERATIONS)
    sources = np.array([source_group(each) for each in families])
    by_family, family_fits = folds(families, refit_from(problem, whole, FAMILY_ITERATIONS), problem.predicted)
    by_source, source_fits = folds(sources, refit_from(problem, whole, SOURCE_ITERATIONS), problem.predicted)
    note = f"fitted on {int(is_used.sum())} step times of {len(np.unique(families[is_used]))} families; "
    fitted = ranges(problem, whole, [*family_fits, *source_fits], note)
    predicted = dict(zip(TESTS, (problem.predicted(whole), by_family, by_source), strict=True))
    memory_fitted, memory = calibrate_memory(runs, constants)
    return Calibration(fitted={**fitted, **memory_fitted}, about=about, predicted_s=predicted, memory=memory)


def refit_from(problem: Problem, start: Float64, iterations: int) -> Callable[[Mask], Float64]:
    """Return the function that fits masked runs from a given start."""
    return lambda mask: fit(problem, mask, start=start, iterations=iterations)


def ranges(problem: Problem, whole: Float64, others: Sequence[Float64], note: str) -> dict[str, Fitted]:
    """Return each constant with its range over the folds."""
    each = [problem.values(offsets) for offsets in others] + [problem.values(whole)]
    text = note + "low and high: range over folds that leave a family or a source out"
    return {
        name: Fitted(value=value, low=min(v[name] for v in each), high=max(v[name] for v in each), note=text)
        for name, value in problem.values(whole).items()
    }


def calibrate_memory(runs: Runs, constants: Mapping[str, float]) -> tuple[dict[str, Fitted], pl.DataFrame]:
    """Return the constants of memory, and measured against predicted peaks."""
    problem = memory_problem(runs, constants)
    whole = problem.fit(np.ones(len(problem.capacity), dtype=bool))
    left_out, fits = memory_folds(problem)
    counts = f"{int(problem.has_value.sum())} peak memories and {int((problem.is_ran | problem.is_oom).sum())}"
    fitted = ranges(problem.published, whole, fits, f"fitted on {counts} runs that fitted or not; ")
    frame = pl.DataFrame(
        {
            "family": problem.published.families,
            "measured_byte": problem.published.measured,
            "in sample": problem.published.predicted(whole),
            "family out": left_out,
        }
    )
    return fitted, frame.filter(pl.Series(problem.has_value))


def scores(result: Calibration) -> list[dict[str, object]]:
    """Return the rows of the table of errors: each test, each group, without and with rows set aside."""
    about, rows = result.about, []
    amount, measured = about["token_per_accelerator"].to_numpy(), about["measured_step_s"].to_numpy()
    kept, tables = (about["aside"] == "").to_numpy(), about["table"].unique(maintain_order=True).to_list()
    for test, predicted in result.predicted_s.items():
        for name, chosen in {"": kept, " with rows set aside": np.ones_like(kept)}.items():
            for group in GROUPS if not name else ("all",):
                mask = chosen & in_group(about, group)
                numbers = score(predicted[mask], measured[mask], amount[mask])
                rows.append({"test": test, "group": group + name, **numbers})
        for table in tables if len(tables) > 1 else ():
            for group in GROUPS:
                mask = kept & in_group(about, group) & (about["table"] == table).to_numpy()
                if mask.any():
                    numbers = score(predicted[mask], measured[mask], amount[mask])
                    rows.append({"test": test, "group": f"{group} of {table}", **numbers})
    memory = result.memory
    for test in ("in sample", "family out"):
        numbers = score(memory[test].to_numpy(), memory["measured_byte"].to_numpy())
        rows.append({"test": test, "group": "peak memory", **numbers})
    return rows


def in_group(about: pl.DataFrame, group: str) -> NDArray[np.bool_]:
    """Return which runs belong to a group."""
    return np.ones(about.height, dtype=bool) if group == "all" else (about["group"] == group).to_numpy()


def as_text(result: Calibration) -> str:
    """Return the tables of constants and of errors."""
    lines = ["constant                            fitted     low        high"]
    for name, each in result.fitted.items():
        lines.append(f"{name:32s} {each.value:10.4g} {each.low:10.4g} {each.high:10.4g}")
    lines += ["", *(f"{name}: {meaning}" for name, meaning in TESTS.items()), ""]
    lines.append(f"{'test':11s} {'group':34s} {'rows':>5s} {'median':>7s} {'p90':>7s} {'bias':>7s} {'rank':>7s}")
    for row in scores(result):
        shares = [
            f"{row[name]:7.1%}" if row[name] is not None else "-" for name in ("median_abs_error", "p90_abs_error")
        ]
        bias = f"{row['bias']:+7.1%}" if row["bias"] is not None else "-"
        rank = f"{row['rank_correlation']:7.4f}" if row["rank_correlation"] is not None else "-"
        lines.append(f"{row['test']:11s} {row['group']:34s} {row['rows']:5d} {' '.join(shares)} {bias} {rank}")
    return "\n".join(lines)


def report_without(runs: Runs, names: Sequence[str], *, as_json: bool) -> None:
    """Print the errors of the model without effects, each as soon as it is known; nothing is written."""
    from pipeline.calibrate_ablation import ablation, chosen_effects, heading, line

    effects, found = chosen_effects(names), []
    if not as_json:
        print(heading(), flush=True)
    for row in ablation(runs, load_preset().constants, effects):
        found.append(row)
        if not as_json:
            print(line(row), flush=True)
    if as_json:
        print(json.dumps(found, indent=1, allow_nan=False))


def main(argv: list[str]) -> int:
    """Run `flopscape calibrate [--runs FILE] [--out FILE | --without EFFECT ... [--json]]`."""
    parser = Parser(
        prog="flopscape calibrate",
        description="Fit the calibrated model's constants on measured runs; a minute or two.",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        action="append",
        help="a table of runs; may be given several times; published_runs.csv and further_runs.csv if left out",
    )
    parser.add_argument("--out", type=Path, help=f"the physics file to write; conf's own, {PRESET.name}, if left out")
    parser.add_argument(
        "--without",
        action="append",
        metavar="EFFECT",
        help="write nothing: say how far off the model is, fitted again without an effect (all: each in turn)",
    )
    parser.add_argument("--json", action="store_true", help="with --without: print JSON")
    options = parser.parse_args(argv)
    if options.json and not options.without:
        raise UserError("command line: --json: only with --without EFFECT; the fitted constants are written as YAML")
    if options.out and options.without:
        raise UserError("command line: --out: --without writes no constants; leave one of them out")
    runs = read_runs(*(options.runs or (PUBLISHED_RUNS, FURTHER_RUNS)))
    if options.without:
        report_without(runs, options.without, as_json=options.json)
        return 0
    result = calibrate(runs, load_preset().constants)
    print(as_text(result))
    out = options.out or PRESET
    write_constants(PRESET, out, result.fitted)
    print(f"\nwritten: {out}")
    return 0
