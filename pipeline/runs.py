"""A table of published training runs as inputs of the calibrated model, with what was measured and what was missing."""

import re
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
from pipeline.runs_chips import chip_of, precision_of, run_links
from pipeline.runs_layout import run_layout, run_transformer
from pipeline.runs_recompute import NONE, PYTORCH_SELECTIVE, RECOMPUTE_FIELDS
from pipeline.runs_shape import known_model, with_known_shape
from pipeline.runs_software import run_software
from pipeline.runs_stacks import Stack, stack_of
from pipeline.runs_table import PUBLISHED_RUNS, Row, read_runs_table

Columns = dict[str, NDArray[np.float64]]
GIB_BYTE, GB_BYTE, TFLOP = 2.0**30, 1e9, 1e12

ASIDE_RULES = {
    "layout": "S2: the printed layout does not multiply to the accelerators",
    "network": "S3: the source says that the network varied twofold, or state was offloaded to the host",
    "repair": "S4: measured on machines before the source repaired their PCIe and NUMA settings",
}


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs that the model can take, one row each, and why it cannot take the others."""

    columns: Columns
    about: pl.DataFrame
    left_out: Mapping[str, int]


@lru_cache(maxsize=1)
def catalogue() -> tuple[Mapping[str, Chip], Mapping[str, ModelShape]]:
    """Return the chips and models of conf."""
    return read_entries("hardware"), read_entries("model")


def read_runs(path: Path = PUBLISHED_RUNS) -> Runs:
    """Return the runs of a table. Raises UserError in one line if it is no table of runs."""
    chips, models = catalogue()
    inputs: list[dict[str, float]] = []
    about: list[dict[str, Any]] = []
    left_out: Counter[str] = Counter()
    for printed in read_runs_table(path):
        row, is_filled = with_known_shape(printed, models)
        reason = reason_to_leave_out(row, chips)
        if reason:
            left_out[reason] += 1
            continue
        numbers, told = run_inputs(row, chips, models, ["shape"] if is_filled else [])
        inputs.append(numbers)
        about.append(told)
    names = inputs[0] if inputs else {}
    columns = {name: np.array([each[name] for each in inputs]) for name in names}
    return Runs(columns=columns, about=about_frame(about), left_out=dict(left_out))


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
        "aside": set_aside(row),
        "flags": tuple(flags),
        "has_known_memory": has_known_memory(row, flags),
    }


def group_of(transformer: Mapping[str, float], precision: str) -> str:
    """Return the group that a run is scored in."""
    if transformer["expert_count"] > 0.0:
        return "moe"
    return {"fp8": "dense_fp8", "int8": "dense_fp8", "fp4": "dense_fp4"}.get(precision, "dense_16bit")


def measured_step_s(row: Row, batch: float, transformer: Mapping[str, float], flags: list[str]) -> float | None:
    """Return the measured time of a step: printed, or from tokens/s, or from NeMo's printed model FLOP/s; None if none.

    Runs that ended out of memory have none.
    """
    if row["status"] != "ok":
        return None
    token = batch * row["seq_len"]
    rate = row["measured_tokens_per_s_per_gpu"] or row["calc_tokens_per_s_per_gpu"]
    tflop = row["measured_model_tflops_per_gpu"]
    if row["measured_step_time_s"]:
        return row["measured_step_time_s"]
    if rate:
        return token / (rate * row["num_gpus"])
    is_complete = all(row[name] for name in ("n_heads", "n_kv_heads", "head_dim", "vocab"))
    if tflop and "NeMo model FLOPs" in row["mfu_definition_note"] and is_complete:
        flags.append("from_tflops")
        return token * nemo_flop_per_token(transformer) / (tflop * TFLOP * row["num_gpus"])
    return None


def nemo_flop_per_token(m: Mapping[str, float]) -> float:
    """Return model FLOP a token by NeMo's formula: 6 for each weight of layers and logits, full attention 12 L s h."""
    attention = 2.0 * m["hidden_width"] * (m["query_width"] + m["key_value_width"])
    layer = attention + m["ffn_matrix_count"] * m["hidden_width"] * m["ffn_width"]
    weights = m["layer_count"] * layer + m["vocabulary_size"] * m["hidden_width"]
    return 6.0 * weights + 12.0 * m["layer_count"] * m["sequence_token"] * m["query_width"]


def measured_byte(row: Row, stack: Stack) -> float | None:
    """Return the measured peak memory. A stack that prints GiB as GB is read so; others are taken at their word."""
    value = row["measured_peak_mem_gb"]
    return value * (GIB_BYTE if stack.prints_gib else GB_BYTE) if value else None


def set_aside(row: Row) -> str:
    """Return the rule by which a row contradicts itself ("" for none); such rows are neither fitted nor scored."""
    note = row["notes"]
    if "TP*PP*DP*CP" in row["check_note"] or "does not multiply" in note or contradicts_itself(row):
        return "layout"
    if row["family"] == "bigscience_v100" and re.search("variance|CPU offload", note):
        return "network"
    if "2nd-iteration" in note and "after PCIe" not in note:
        return "repair"
    return ""


def contradicts_itself(row: Row) -> bool:
    """Return whether printed degrees do not multiply to the accelerators, or leave a data rank without a sequence."""
    split = (row["tp"] or 1.0) * (row["pp"] or 1.0) * (row["cp"] or 1.0)
    is_whole = row["num_gpus"] % split == 0.0 and row["num_gpus"] >= split
    data = row["dp"] if row["tp"] else None
    batch = row["global_batch_sequences"]
    return not is_whole or bool(data and (data * split != row["num_gpus"] or (batch and batch < data)))


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
        dict.fromkeys((*texts, "aside"), pl.String)
        | kinds
        | {"flags": pl.List(pl.String), "has_known_memory": pl.Boolean}
    )
    return pl.DataFrame([{name: each[name] for name in schema} for each in about], schema=schema)


def with_least_memory(runs: Runs) -> Columns:
    """Return the columns with the least memory that the runs may have had, where what decides it is unpublished.

    All recomputed where the share is unknown, microbatches of one sequence where their size is, and the optimiser
    sharded where its sharding is.
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
    return runs.columns | least | {"microbatch_sequence": smallest, "microbatch_count": count * size / smallest}
