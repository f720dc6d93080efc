"""What a run recomputes in its backward pass, from the words that sources use for it.

full, uniform, block, true, [gradient or activation] checkpointing: all of a layer. none, no, off, false: nothing.
selective: attention (Megatron); under full sharding about 0.4 of the matmuls (PyTorch). Named modules (norm, act,
attn, mlp, moe, as Megatron's --recompute-modules names them): those, and their results are not kept. offload or device
with names (qkv, out, context, layer input): what is named is kept on the host or the device and all else is recomputed,
as MaxText's policies do; offload alone: nothing is recomputed or stored. Blank or unknown words: what the stack does by
default (`runs_stacks`), and flagged. Compiled stacks never redo a layer's last matmul: no gradient needs its result.
"""

import re
from collections.abc import Callable, Mapping

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
UNSAID: Mapping[str, Callable[[Mapping[str, float]], tuple[float, ...]]] = {
    "none": lambda parts: NONE,
    "full": lambda parts: FULL,
    "latent": lambda parts: by_modules(LATENT_WORDS, parts),
    "all but qkv": lambda parts: (1.0 - parts["qkv"], *FULL[1:]),
}
"""What is recomputed where a row does not say, by what its stack is known to do."""
FFN_WORDS = {"mlp", "ffn", "moe", "experts", "shared_experts", "shared_expert"}
QKV_WORDS = {"qkv", "qkv_proj", "query", "key", "value", "query_proj", "key_proj", "value_proj"}
OUT_WORDS = {"out", "out_proj"}
LATENT_WORDS = {"mla_up_proj"}
CONTEXT_WORDS = {"context"}
INPUT_WORDS = {"layer", "decoder_layer_input", "input"}


def recomputation(
    row: Row,
    stage: float,
    parts: Mapping[str, float],
    flags: list[str],
    *,
    unsaid: str = "none",
    is_traced: bool = False,
) -> tuple[float, ...]:
    """Return the shares recomputed (matmuls, attention, memory-bound kernels) and the share of activations kept.

    `parts` are the shares of a layer's matmuls that are qkv, out, ffn and the last of ffn. A compiler that traces the
    backward pass leaves out the layer's last matmul, whose result no gradient needs.
    """
    found = by_words(row, stage, parts, flags, UNSAID[unsaid](parts))
    spared = parts["last"] if is_traced and found[0] > parts["last"] and found[2] == 1.0 else 0.0
    return (found[0] - spared, *found[1:])


def by_words(
    row: Row, stage: float, parts: Mapping[str, float], flags: list[str], default: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the same for a framework that runs the forward pass again whole."""
    given = row["recompute"].lower()
    words = set(re.findall(r"[a-z0-9_]+", re.sub(r"(qkv)_(offload)", r"\1 \2", given)))
    if "offload" in given or "device" in words:
        return by_policy(words, parts)
    if "selective" in given:
        return PYTORCH_SELECTIVE if stage == 3.0 else SELECTIVE
    named = words & (ATTENTION_WORDS | NORM_WORDS | ACTIVATION_WORDS | FFN_WORDS | LATENT_WORDS)
    if words & NONE_WORDS:
        return NONE
    if words & ALL_WORDS:
        return FULL
    if named:
        return by_modules(words, parts)
    flags.append("recompute")
    return default


def by_modules(words: set[str], parts: Mapping[str, float]) -> tuple[float, ...]:
    """Return the same where modules are named: what they make is made again, and is not kept."""
    is_ffn, is_norm = bool(words & FFN_WORDS), bool(words & NORM_WORDS)
    is_activation, is_up = bool(words & ACTIVATION_WORDS), bool(words & LATENT_WORDS)
    kinds = is_norm + (is_activation or is_ffn)
    spared = (
        parts["norm_kept"] * is_norm
        + parts["up_kept"] * is_up
        + (parts["ffn_kept"] if is_ffn else parts["act_kept"] * is_activation)
    )
    attention = float(bool(words & ATTENTION_WORDS))
    matmuls = parts["ffn"] * is_ffn + parts["up"] * is_up
    return (matmuls, attention, kinds * MODULE_ELEMENTWISE_FRACTION, 1.0 - spared)


def by_policy(words: set[str], parts: Mapping[str, float]) -> tuple[float, ...]:
    """Return the same where a policy names what is kept, on the host or on the device: all else is done again.

    A matmul whose result is kept is not done again; attention is not where its output (context) is kept.
    Memory-bound kernels are: their results are what the next matmul's gradient takes, and are not kept.
    """
    is_qkv, is_out, is_context = (bool(words & each) for each in (QKV_WORDS, OUT_WORDS, CONTEXT_WORDS))
    if not (is_qkv or is_out or is_context or words & INPUT_WORDS):
        return OFFLOADED
    again = 1.0 - parts["qkv"] * is_qkv - parts["out"] * is_out
    stored = parts["qkv_kept"] * is_qkv + parts["context_kept"] * is_context
    return (again, float(not is_context), 1.0, stored * ("offload" not in words))


def matmul_parts(transformer: Mapping[str, float]) -> dict[str, float]:
    """Return shares of a layer by part: of the weights that one token meets, and of the activations that it keeps."""
    met, kept = met_weights(transformer), kept_parts(transformer)
    whole = met["qkv"] + met["out"] + met["ffn"]
    kept["up_kept"] = kept["qkv_kept"] * (transformer["key_value_rank_width"] > 0.0)
    return {name: value / whole for name, value in met.items()} | kept


def met_weights(transformer: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of a mean layer that one token meets, by part.

    Attention in (and, of it, latent attention's up-projections), attention out, feed-forward and its last matrix.
    """
    m, hidden = transformer, transformer["hidden_width"]
    is_latent = m["key_value_rank_width"] > 0.0
    up = m["query_rank_width"] * m["query_width"]
    up += m["key_value_rank_width"] * (m["key_value_width"] + m["value_width"])
    down = hidden * (m["query_rank_width"] + m["key_value_rank_width"] + m["rope_width"])
    into = up + down if is_latent else hidden * (m["query_width"] + 2.0 * m["key_value_width"])
    routed = m["experts_per_token"] + m["shared_expert_count"]
    width = (1.0 - m["moe_layer_fraction"]) * m["ffn_width"] + m["moe_layer_fraction"] * routed * m["expert_ffn_width"]
    ffn = m["ffn_matrix_count"] * hidden * width
    out = hidden * (m["value_width"] if is_latent else m["query_width"])
    return {"qkv": into, "up": up, "out": out, "ffn": ffn, "last": hidden * width}


def weights_met(transformer: Mapping[str, float]) -> float:
    """Return all weights of a mean layer that one token meets."""
    met = met_weights(transformer)
    return met["qkv"] + met["out"] + met["ffn"]


def kept_parts(transformer: Mapping[str, float]) -> dict[str, float]:
    """Return what share of a layer's stored activations its norms, activations, feed-forward, qkv and context are.

    Of 4 h + 2 q + 2 kv + m f and, routed, k (h + m f_e): 2 h, f + k f_e, m f + k (h + m f_e), q + 2 kv, and q
    (`models.effects.activation`).
    """
    m = transformer
    routed = m["moe_layer_fraction"] * m["experts_per_token"]
    dense = (1.0 - m["moe_layer_fraction"]) * m["ffn_width"]
    dense += m["moe_layer_fraction"] * m["shared_expert_count"] * m["expert_ffn_width"]
    hidden, matrices = m["hidden_width"], m["ffn_matrix_count"]
    ffn = matrices * dense + routed * (hidden + matrices * m["expert_ffn_width"])
    whole = 4.0 * hidden + 2.0 * (m["query_width"] + m["key_value_width"]) + ffn
    activation = dense + routed * m["expert_ffn_width"]
    attention = {"qkv_kept": m["query_width"] + 2.0 * m["key_value_width"], "context_kept": m["query_width"]}
    parts = {"norm_kept": 2.0 * hidden, "act_kept": activation, "ffn_kept": ffn, **attention}
    return {name: value / whole for name, value in parts.items()}
