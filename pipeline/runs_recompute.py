"""What a run recomputes in its backward pass, from the words that sources use for it.

full, uniform, block, true, [gradient or activation] checkpointing: all of a layer. none, no, off, false: nothing.
selective: attention (Megatron); under full sharding about 0.4 of the matmuls (PyTorch). Named modules (norm, act,
attn, mlp, moe, as Megatron's --recompute-modules names them): those. offload with names (qkv, out): what is named is
kept on the host and all else is recomputed, as MaxText's policies do; offload alone: nothing is recomputed or stored.
Blank or unknown words: nothing (MaxText: all of it, its documented default), and flagged.
"""

import re
from collections.abc import Mapping

from pipeline.runs_table import Row

FULL, SELECTIVE, NONE = (1.0, 1.0, 1.0, 0.0), (0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)
PYTORCH_SELECTIVE = (0.4, 0.0, 0.4, 0.35)  # every second matmul is kept: about 0.4 of the forward again
OFFLOADED = (0.0, 0.0, 0.0, 0.0)
RECOMPUTE_FIELDS = (
    "recompute_matmul_fraction",
    "recompute_attention_fraction",
    "recompute_elementwise_fraction",
    "stored_activation_fraction",
)
ALL_WORDS = {"full", "uniform", "block", "true", "yes", "on", "1", "all", "checkpointing", "checkpoint", "ac", "remat"}
NONE_WORDS = {"none", "no", "off", "false", "0", "disabled", "without"}
ATTENTION_WORDS = {"attn", "attention", "core_attn"}
NORM_WORDS = {"norm", "norms", "layernorm", "rmsnorm"}
ACTIVATION_WORDS = {"act", "moe_act", "activation", "swiglu", "gelu"}
MODULE_ELEMENTWISE_FRACTION = 1.0 / 3.0  # of the memory-bound work: norms a third, activation functions a third
FFN_WORDS = {"mlp", "ffn", "moe", "experts", "shared_experts", "shared_expert"}
QKV_WORDS = {"qkv", "qkv_proj", "query", "key", "value", "query_proj", "key_proj", "value_proj"}
OUT_WORDS = {"out", "out_proj"}


def recomputation(row: Row, stage: float, parts: Mapping[str, float], flags: list[str]) -> tuple[float, ...]:
    """Return the shares recomputed (matmuls, attention, memory-bound kernels) and the share of activations kept.

    `parts` are the shares of a layer's matmuls that are qkv, out and ffn.
    """
    given = row["recompute"].lower()
    words = set(re.findall(r"[a-z0-9_]+", re.sub(r"(qkv)_(offload)", r"\1 \2", given)))
    if "offload" in given:
        return offloaded(words, parts)
    if "selective" in given:
        return PYTORCH_SELECTIVE if stage == 3.0 else SELECTIVE
    named = words & (ATTENTION_WORDS | NORM_WORDS | ACTIVATION_WORDS | FFN_WORDS)
    if words & NONE_WORDS:
        return NONE
    if words & ALL_WORDS:
        return FULL
    if named:
        ffn = parts["ffn"] if words & FFN_WORDS else 0.0
        kinds = sum(bool(words & each) for each in (NORM_WORDS, ACTIVATION_WORDS | FFN_WORDS))
        return (ffn, float(bool(words & ATTENTION_WORDS)), kinds * MODULE_ELEMENTWISE_FRACTION, 1.0 - ffn)
    flags.append("recompute")
    return FULL if "maxtext" in row["framework"].lower() else NONE


def offloaded(words: set[str], parts: Mapping[str, float]) -> tuple[float, ...]:
    """Return the same where activations go to the host: matmuls whose result is kept there are not done again.

    Attention and memory-bound kernels are: their results are what the next matmul's gradient takes, and are not kept.
    """
    kept = parts["qkv"] * bool(words & QKV_WORDS) + parts["out"] * bool(words & OUT_WORDS)
    return (1.0 - kept, 1.0, 1.0, 0.0) if kept or words & {"layer", "decoder_layer_input", "input"} else OFFLOADED


def matmul_parts(transformer: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of the weights of a layer that one token meets: attention in, attention out, feed-forward."""
    m, whole = transformer, weights_met(transformer)
    into = m["hidden_width"] * (m["query_width"] + 2.0 * m["key_value_width"])
    out = m["hidden_width"] * m["query_width"]
    return {"qkv": into / whole, "out": out / whole, "ffn": 1.0 - (into + out) / whole}


def weights_met(transformer: Mapping[str, float]) -> float:
    """Return the weights of a mean layer that one token meets (latent attention as if its widths were full)."""
    m = transformer
    attention = 2.0 * m["hidden_width"] * (m["query_width"] + m["key_value_width"])
    routed = m["experts_per_token"] + m["shared_expert_count"]
    width = (1.0 - m["moe_layer_fraction"]) * m["ffn_width"] + m["moe_layer_fraction"] * routed * m["expert_ffn_width"]
    return attention + m["ffn_matrix_count"] * m["hidden_width"] * width
