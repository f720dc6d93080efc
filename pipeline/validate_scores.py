"""The figures of a validation: errors of step time and memory, by group and class, OOM hits, the worst runs."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from models.evaluate_layouts import transformer_outcomes
from models.packing import field_names, pack, transformer_names
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import Constants
from pipeline.run_scores import score
from pipeline.runs import Runs, with_least_memory
from pipeline.runs_measured import ASIDE_RULES

NOT_PARTS = ("step_time_s",)
PARTS = tuple(name for name in field_names(TransformerOutcome) if name.endswith("_time_s") and name not in NOT_PARTS)
"""The parts of a step; they add up to it."""
GROUPS = ("dense_16bit", "dense_fp8", "dense_fp4", "moe", "all")
CLASSES = ("chip", "precision", "scale", "source", "family", "framework")
SCALES = ((8, "1 to 8"), (64, "9 to 64"), (512, "65 to 512"), (4096, "513 to 4,096"), (np.inf, "above 4,096"))
WORST_COUNT = 20
LAYOUT = ("tensor_ranks", "pipeline_ranks", "data_ranks", "context_ranks", "expert_ranks")
LAYOUT += ("microbatch_sequence", "microbatch_count", "interleave_ratio", "sharding_stage", "sequence_token")
Scores = dict[str, Any]


def predicted_frame(runs: Runs, constants: Constants) -> pl.DataFrame:
    """Return what is known of each run beside its prediction: step time, its parts, memory, relative errors.

    Step times, not wall times: what failures and checkpoints take is no part of a published step.
    """
    columns = runs.columns or {name: np.zeros(0) for name in transformer_names()}
    outcome = transformer_outcomes(pack(columns, transformer_names()), constants)
    least = transformer_outcomes(pack({**columns, **with_least_memory(runs)}, transformer_names()), constants)
    about = runs.about
    return about.with_columns(
        *(pl.Series(name, outcome[name]) for name in ("step_time_s", *PARTS, "memory_byte")),
        *(pl.Series(name, columns[name]) for name in LAYOUT),
        pl.Series("least_memory_byte", least["memory_byte"]),
        pl.Series("error", outcome["step_time_s"]) / about["measured_step_s"] - 1.0,
        (pl.Series("memory_error", outcome["memory_byte"]) / about["measured_byte"] - 1.0),
        pl.Series("scale", [scale_of(each) for each in about["accelerator_count"]], dtype=pl.String),
    )


def scale_of(accelerator_count: float) -> str:
    """Return the class of sizes that a number of accelerators is in."""
    return next(name for most, name in SCALES if accelerator_count <= most)


def step_score(frame: pl.DataFrame) -> Scores:
    """Return the score of step times of a frame of timed runs; ranks are those of tokens/s of one accelerator."""
    names = ("step_time_s", "measured_step_s", "token_per_accelerator")
    return score(*(frame[name].to_numpy() for name in names))


def group_scores(timed: pl.DataFrame) -> dict[str, Scores]:
    """Return the score of each group, and of all."""
    return {name: step_score(timed if name == "all" else timed.filter(pl.col("group") == name)) for name in GROUPS}


def class_scores(frame: pl.DataFrame, name: str, scored: Callable[[pl.DataFrame], Scores]) -> dict[str, Scores]:
    """Return the score of each value of a column, most runs first, sizes by size."""
    order = frame.group_by(name).len().sort(["len", name], descending=[True, False])[name].to_list()
    if name == "scale":
        order = [each for _, each in SCALES if each in order]
    return {str(value): scored(frame.filter(pl.col(name) == value)) for value in order}


def memory_score(frame: pl.DataFrame) -> Scores:
    """Return the score of peak memory of a frame of runs that have one."""
    return score(frame["memory_byte"].to_numpy(), frame["measured_byte"].to_numpy())


def oom_counts(frame: pl.DataFrame) -> Scores:
    """Return how many runs that ended out of memory are predicted so, how many not, and how many others are.

    A run whose recomputation or microbatch is unpublished is a false alarm only if it would not fit with everything
    recomputed, one sequence at a time. Left out: rows without a layout and rows with state outside the accelerator.
    """
    known = frame.filter("has_known_memory")
    is_oom = pl.col("status") == "oom"
    is_over = pl.when(is_oom).then(pl.col("memory_byte")).otherwise("least_memory_byte") > pl.col("capacity_byte")
    hits, misses = known.filter(is_oom & is_over), known.filter(is_oom & ~is_over)
    alarms = known.filter(~is_oom & is_over)
    return {
        "hits": hits.height,
        "misses": misses.height,
        "false_alarms": alarms.height,
        "rows_oom": hits.height + misses.height,
        "rows_ran": known.filter(~is_oom).height,
        "missed_runs": misses["run_id"].to_list(),
        "alarmed_runs": alarms["run_id"].to_list(),
    }


def guess_scores(timed: pl.DataFrame) -> dict[str, Scores]:
    """Return the score of runs with every input published, of those with a guess, and by what was guessed."""
    is_guessed = pl.col("flags").list.len() > 0
    names = sorted({flag for flags in timed["flags"].to_list() for flag in flags})
    scores = {"none": step_score(timed.filter(~is_guessed)), "some": step_score(timed.filter(is_guessed))}
    return scores | {name: step_score(timed.filter(pl.col("flags").list.contains(name))) for name in names}


def most_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts by reason, the most frequent first."""
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def worst_runs(timed: pl.DataFrame) -> list[dict[str, Any]]:
    """Return the runs with the largest errors, each with its layout and the parts of its predicted step."""
    far = timed.with_columns(far=(pl.col("step_time_s") / pl.col("measured_step_s")).log().abs())
    names = ("run_id", "family", "chip", "model", "precision", "accelerator_count", "flags", *LAYOUT)
    numbers = ("measured_step_s", "step_time_s", "error", *PARTS)
    return far.sort(["far", "run_id"], descending=[True, False]).head(WORST_COUNT).select(*names, *numbers).to_dicts()


def validation(runs: Runs, frame: pl.DataFrame) -> dict[str, Any]:
    """Return all figures of a validation as plain data; errors are fractions."""
    timed_all = frame.filter(pl.col("measured_step_s").is_not_null())
    timed = timed_all.filter(pl.col("aside") == "")
    with_memory = frame.filter(pl.col("measured_byte").is_not_null() & (pl.col("status") != "oom"))
    aside = class_scores(timed_all.filter(pl.col("aside") != ""), "aside", step_score)
    return {
        "rows": {
            "read": frame.height + sum(runs.left_out.values()),
            "predicted": frame.height,
            "with_step_time": timed_all.height,
            "scored": timed.height,
            "with_peak_memory": with_memory.height,
        },
        "groups": group_scores(timed),
        "groups_with_set_aside": group_scores(timed_all),
        "peak_memory": memory_score(with_memory),
        "oom": oom_counts(frame),
        "by": {name: class_scores(timed, name, step_score) for name in CLASSES},
        "peak_memory_by_family": class_scores(with_memory, "family", memory_score),
        "guessed_inputs": guess_scores(timed),
        "set_aside": {name: {"rule": ASIDE_RULES[name], **each} for name, each in aside.items()},
        "untimed": most_first(Counter(each for each in frame["untimed"].to_list() if each)),
        "left_out": most_first(runs.left_out),
        "worst": worst_runs(timed),
    }
