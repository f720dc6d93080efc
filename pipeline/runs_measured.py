"""What was measured of a published run: its step time, its peak memory, and whether that can be true."""

import re
from collections.abc import Mapping

from pipeline.catalogue import Chip, peak_flop_per_s
from pipeline.runs_recompute import weights_met
from pipeline.runs_stack import Stack
from pipeline.runs_table import MEASUREMENTS, Row

GIB_BYTE, GB_BYTE, TFLOP = 2.0**30, 1e9, 1e12

ASIDE_RULES = {
    "layout": "S2: the printed layout does not multiply to the accelerators",
    "network": "S3: the source says that the network varied twofold, or state was offloaded to the host",
    "repair": "S4: measured on machines before the source repaired their PCIe and NUMA settings",
    "timing": "S5: the printed step time and the printed tokens per second differ by more than a tenth",
    "peak": "S6: faster than the chip's peak in its fastest format: a wrong unit or count",
}
"""Rules by which a row contradicts itself; such rows are neither fitted nor scored."""
TIMING_FRACTION = 0.1


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
    """Return whether printed degrees cannot be: they do not multiply to the accelerators, or leave ranks without work.

    Work are a sequence for a data rank, a layer for a model chunk (two for the ends), an expert for an expert rank.
    """
    split = (row["tp"] or 1.0) * (row["pp"] or 1.0) * (row["cp"] or 1.0)
    is_whole = row["num_gpus"] % split == 0.0 and row["num_gpus"] >= split
    data = row["dp"] if row["tp"] else None
    batch, experts = row["global_batch_sequences"], row["n_experts"] or 0.0
    has_no_layer = (row["pp"] or 1.0) * (row["vpp"] or 1.0) > row["n_layers"] + 2.0
    has_no_expert = experts > 1.0 and (row["ep"] or 1.0) > experts
    is_off = bool(data and (data * split != row["num_gpus"] or (batch and batch < data)))
    return not is_whole or is_off or has_no_layer or has_no_expert


def impossible_measurement(
    row: Row, step_s: float | None, batch: float, transformer: Mapping[str, float], chip: Chip
) -> str:
    """Return the rule by which what a row prints of its speed cannot be true, "" for none."""
    if step_s is None:
        return ""
    token = batch * row["seq_len"]
    rate = row["measured_tokens_per_s_per_gpu"]
    if rate and abs(token / (rate * row["num_gpus"]) / step_s - 1.0) > TIMING_FRACTION:
        return "timing"
    peaks = [peak_flop_per_s(chip, name) or 0.0 for name in ("fp4", "fp8", "int8", "bf16", "fp16", "tf32", "fp32")]
    flop_per_token = 6.0 * transformer["layer_count"] * weights_met(transformer)
    return "peak" if token * flop_per_token / step_s > max(peaks) * row["num_gpus"] else ""


def untimed_reason(row: Row) -> str:
    """Return why a row that the model can take has no step time to compare with."""
    if row["status"] == "oom":
        return "ended out of memory"
    if row["status"] != "ok":
        return f"status {row['status']!r} is not ok"
    wrong = [name for name in MEASUREMENTS if name in row["unreadable"]]
    if wrong:
        return f"{wrong[0]} is not a number above zero"
    if row["measured_model_tflops_per_gpu"] or row["measured_mfu"] or row["measured_hfu"]:
        return "FLOP/s or MFU alone: sources count them differently"
    return "peak memory alone" if row["measured_peak_mem_gb"] else "nothing measured is printed"
