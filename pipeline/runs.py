"""A table of published training runs as inputs of the calibrated model, with what was measured and what was missing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.accelerators import accelerator_fields, capacity_byte
from pipeline.catalogue import Chip, ModelShape, read_entries
from pipeline.errors import UserError
from pipeline.runs_chips import chip_of, precision_of, run_links
from pipeline.runs_layout import run_layout, run_transformer
from pipeline.runs_measured import impossible_measurement, measured_byte, measured_step_s, set_aside, untimed_reason
from pipeline.runs_recompute import NONE, PYTORCH_SELECTIVE, RECOMPUTE_FIELDS
from pipeline.runs_shape import known_model, with_known_shape
from pipeline.runs_software import run_software
from pipeline.runs_stacks import stack_of
from pipeline.runs_table import PUBLISHED_RUNS, Row, read_runs_table

Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs that the model can take, one row each, and why it cannot take the others."""

    columns: Columns
    about: pl.DataFrame
    left_out: Mapping[str, int]
    left_out_runs: tuple[tuple[str, str], ...] = ()  # (run_id, reason)


@lru_cache(maxsize=1)
def catalogue() -> tuple[Mapping[str, Chip], Mapping[str, ModelShape]]:
    """Return the chips and models of conf."""
    return read_entries("hardware"), read_entries("model")


def read_runs(path: Path = PUBLISHED_RUNS, *others: Path) -> Runs:
    """Return the runs of a table, or of several, one after the other.

    Raises UserError in one line if one is no table of runs, or if two have a run_id in common.
    """
    tables = [read_table(each) for each in (path, *others)]
    about = pl.concat([each.about for each in tables])
    if (repeated := about["run_id"].filter(about["run_id"].is_duplicated())).len() and others:
        raise UserError(f"{others[-1]}: run_id {repeated[0]}: is in more than one table; give each run once")
    filled = [each.columns for each in tables if each.columns]
    columns = {name: np.concatenate([each[name] for each in filled]) for name in (filled[0] if filled else {})}
    left_out = tuple(each for table in tables for each in table.left_out_runs)
    return Runs(columns=columns, about=about, left_out=reason_counts(left_out), left_out_runs=left_out)


def reason_counts(left_out: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return how many runs were left out for each reason."""
    return dict(Counter(reason for _, reason in left_out))


def read_table(path: Path) -> Runs:
    """Return the runs of one table."""
    chips, models = catalogue()
    inputs: list[dict[str, float]] = []
    about: list[dict[str, Any]] = []
    left_out: list[tuple[str, str]] = []
    for printed in read_runs_table(path):
        row, is_filled = with_known_shape(printed, models)
        reason = reason_to_leave_out(row, chips)
        if reason:
            left_out.append((row["run_id"], reason))
            continue
        numbers, told = run_inputs(row, chips, models, ["shape"] if is_filled else [])
        inputs.append(numbers)
        about.append(told)
    names = inputs[0] if inputs else {}
    columns = {name: np.array([each[name] for each in inputs]) for name in names}
    frame = about_frame(about).with_columns(table=pl.lit(path.name))
    return Runs(columns=columns, about=frame, left_out=reason_counts(left_out), left_out_runs=tuple(left_out))


def reason_to_leave_out(row: Row, chips: Mapping[str, Chip]) -> str:
    """Return why the model cannot take a row, "" if it can."""
    for name in ("n_layers", "d_model", "seq_len", "num_gpus"):
        if not row[name]:
            is_wrong = f"{name} is not a number" if row[name] is None else f"{name} is zero"
            return is_wrong if name in row["unreadable"] or row[name] == 0.0 else f"{name} is not published"
    if not row["gpu"]:
        return "gpu is not published"
    if chip_of(row["gpu"], chips) is None:
        return f"gpu {row['gpu']!r} is not in the catalogue"
    if not row["global_batch_sequences"] and not (row["microbatch_sequences"] and row["dp"]):
        return "neither global nor microbatch is published"
    if (row["n_experts"] or 0.0) > 1.0 and (row["top_k"] or 1.0) > row["n_experts"]:
        return "top_k is above n_experts"
    if "IMPLAUSIBLE" in row["notes"]:
        return "implausible by its own note"
    if "GPU-hours" in row["derived_fields"] or "gpuhours" in row["family"]:
        return "accelerator hours of a whole run, restarts included"
    return ""


def run_inputs(
    row: Row, chips: Mapping[str, Chip], models: Mapping[str, ModelShape], filled: Sequence[str]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return (all fields of the model's bundles, what is known of the run) of one row."""
    flags = [*filled, *(f"unreadable {name}" for name in row["unreadable"])]
    chip = chip_of(row["gpu"], chips)
    assert chip is not None  # rows without a chip were left out
    batch = row["global_batch_sequences"]
    if not batch:
        flags.append("batch")
        batch = row["microbatch_sequences"] * row["dp"]
    stack, year = stack_of(row, chip.vendor or "", flags)
    precision = precision_of(row, chip, flags)
    links = run_links(row, chip)
    transformer = run_transformer(row, stack, known_model(row, models), flags)
    layout = run_layout(row, stack, transformer, links["domain_ranks"], batch, flags)
    software = run_software(row, stack, year, chip, precision, layout)
    numbers = {**accelerator_fields(chip, precision), **links, **transformer, **layout, **software}
    step_s = measured_step_s(row, batch, transformer, flags)
    return {name: float(value) for name, value in numbers.items()}, {
        "run_id": row["run_id"],
        "family": row["family"],
        "source": row["source"] or "none given",
        "framework": row["framework"] or "none given",
        "stack": stack.id,
        "gpu": row["gpu"],
        "chip": chip.id,
        "model": row["model_name"],
        "precision": row["precision"].lower() or precision,
        "group": group_of(transformer, precision),
        "status": row["status"],
        "measured_step_s": step_s,
        "measured_byte": measured_byte(row, stack),
        "capacity_byte": capacity_byte(chip),
        "token_per_accelerator": batch * row["seq_len"] / row["num_gpus"],
        "accelerator_count": row["num_gpus"],
        "aside": set_aside(row) or impossible_measurement(row, step_s, batch, transformer, chip),
        "untimed": untimed_reason(row) if step_s is None else "",
        "flags": tuple(flags),
        "has_known_memory": has_known_memory(row, flags),
    }


def group_of(transformer: Mapping[str, float], precision: str) -> str:
    """Return the group that a run is scored in."""
    if transformer["expert_count"] > 0.0:
        return "moe"
    return {"fp8": "dense_fp8", "int8": "dense_fp8", "fp4": "dense_fp4"}.get(precision, "dense_16bit")


def has_known_memory(row: Row, flags: Sequence[str]) -> bool:
    """Return whether a row says enough to compare its memory with the chip's: a layout, and nothing kept elsewhere."""
    is_elsewhere = set_aside(row) == "network" or "offload" in row["recompute"].lower()
    return not ("layout" in flags or is_elsewhere or row["framework"].startswith("HF"))


def about_frame(about: list[dict[str, Any]]) -> pl.DataFrame:
    """Return what is known of the runs as a frame."""
    kinds: dict[str, Any] = dict.fromkeys(
        ("measured_step_s", "measured_byte", "capacity_byte", "token_per_accelerator", "accelerator_count"), pl.Float64
    )
    texts = ("run_id", "family", "source", "framework", "stack", "gpu", "chip", "model", "precision", "group", "status")
    schema = (
        dict.fromkeys((*texts, "aside", "untimed"), pl.String)
        | kinds
        | {"flags": pl.List(pl.String), "has_known_memory": pl.Boolean}
    )
    return pl.DataFrame([{name: each[name] for name in schema} for each in about], schema=schema)


def with_least_memory(runs: Runs) -> Columns:
    """Return the columns with the least memory that the runs may have had, where what decides it is unpublished.

    All recomputed where the share is unknown, microbatches of one sequence where their size is, and the optimiser
    sharded where its sharding is; one chunk a stage where interleaving is unpublished; layer inputs on the host where a
    compiler plans the memory, as MaxText's policies do (decoder_layer_input: offload).
    """
    flags = runs.about["flags"].to_list()
    if not flags:
        return runs.columns
    is_unsure = np.array(["recompute" in each for each in flags])
    is_unsure |= runs.columns["stored_activation_fraction"] == PYTORCH_SELECTIVE[-1]
    least = {
        name: np.where(is_unsure, 1.0 - none, runs.columns[name])
        for name, none in zip(RECOMPUTE_FIELDS, NONE, strict=True)
    }
    size, count = runs.columns["microbatch_sequence"], runs.columns["microbatch_count"]
    smallest = np.where(["microbatch" in each for each in flags], np.minimum(size, 1.0), size)
    stage = runs.columns["sharding_stage"]
    least |= {"sharding_stage": np.where(["zero" in each for each in flags], np.maximum(stage, 1.0), stage)}
    least |= {"interleave_ratio": np.where(["vpp" in each for each in flags], 1.0, runs.columns["interleave_ratio"])}
    is_on_host = is_unsure & (runs.columns["is_static_allocation"] > 0.0)
    again = least["recompute_elementwise_fraction"]
    least |= {"recompute_elementwise_fraction": np.where(is_on_host, 0.0, again)}
    return runs.columns | least | {"microbatch_sequence": smallest, "microbatch_count": count * size / smallest}
