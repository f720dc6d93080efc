"""The transformer and the layout of a published run; what was not published follows written rules, each with a flag.

heads: d_model / 128. kv: as many as heads. vocab: 50,000. top_k: 2. moe_d_ff: d_ff. ffn: without a gate where d_ff is
four times the width, or unpublished. d_ff: 4 d_model, gated 8/3 of it to the next 256. batch: microbatch x data ranks.
layout: no tensor degree published, all degrees 1. dp: accelerators / (tp pp cp).
microbatch: the largest of at most 8,192 tokens that divides the batch of a data rank; torchtitan with a pipeline as
many microbatches as stages. vpp: 1; called interleaved 2; vendor stacks, Megatron since 2024 and stacks without a rule
chunks of 4 layers where that divides. zero: stage 1 for DeepSpeed, vendor stacks and Megatron since 2024, else 0. sp:
where tp > 1, on for those, torchtitan and XLA. cp: 1; full sharding with fewer sequences than ranks, as many as share
one; a ring; framework or notes say Ulysses, an all-to-all. ep: as many as experts, data ranks and domain allow.
recompute: `runs_recompute`.
(L + 2) divisible by pp x vpp while L is not: embedding and logits count as a layer each.
"""

import re
from collections.abc import Mapping

from pipeline.catalogue import ModelShape
from pipeline.runs_recompute import RECOMPUTE_FIELDS, matmul_parts, recomputation
from pipeline.runs_stack import Stack
from pipeline.runs_table import Row

HEAD_WIDTH, FFN_RATIO, GATED_FFN_RATIO, FFN_MULTIPLE = 128.0, 4.0, 8.0 / 3.0, 256
MICROBATCH_TOKEN = 8192.0
DEFAULT_VOCABULARY, DEFAULT_TOP_K = 50000.0, 2.0


def run_transformer(row: Row, stack: Stack, known: ModelShape | None, flags: list[str]) -> dict[str, float]:
    """Return the fields of `Transformer` for a run."""
    layers, hidden, sequence = row["n_layers"], row["d_model"], row["seq_len"]
    is_gated = is_gated_ffn(row, flags)
    is_gelu = row["ffn_type"].lower() == "gelu"
    experts = row["n_experts"] if (row["n_experts"] or 0.0) > 1.0 else 0.0
    window, windowed = attention_window(row)
    dense_layers = min((known.dense_layer_count if known and experts else None) or 0.0, layers)
    width = row["d_ff"] or default_ffn_width(hidden, is_gated, flags)
    flags += [name for name in ("vocab",) if not row[name]]
    flags += [name for name in ("top_k", "moe_d_ff") if experts and not row[name]]
    return {
        "layer_count": layers,
        "moe_layer_fraction": (layers - dense_layers) / layers if experts else 0.0,
        "hidden_width": hidden,
        "ffn_width": (known.d_ff if known and dense_layers else None) or width,
        "ffn_matrix_count": 3.0 if is_gated else 2.0,
        **attention_fields(row, known, flags),
        "sequence_token": sequence,
        "window_token": min(window, sequence),
        "windowed_layer_fraction": windowed,
        "vocabulary_size": row["vocab"] or DEFAULT_VOCABULARY,
        "embedding_is_tied": float(is_gelu and stack.id != "xla"),
        "learned_position_count": sequence if is_gelu else 0.0,
        "expert_count": experts,
        "experts_per_token": (row["top_k"] or DEFAULT_TOP_K) if experts else 0.0,
        "shared_expert_count": (row["n_shared_experts"] or 0.0) if experts else 0.0,
        "expert_ffn_width": (row["moe_d_ff"] or width) if experts else 0.0,
    }


def is_gated_ffn(row: Row, flags: list[str]) -> bool:
    """Return whether the feed-forward has a gate: GLU by any name, or SiLU, which comes with one (Llama's `silu`).

    Unpublished: it has none where it is four times as wide as the model, the width of those before gates.
    """
    given = row["ffn_type"].lower()
    if given:
        return any(each in given for each in ("glu", "silu", "swish", "gated"))
    flags.append("ffn")
    return bool(row["d_ff"]) and row["d_ff"] != FFN_RATIO * row["d_model"]


def default_ffn_width(hidden: float, is_gated: bool, flags: list[str]) -> float:
    """Return the feed-forward width that is usual for a model width."""
    flags.append("d_ff")
    return FFN_MULTIPLE * round(GATED_FFN_RATIO * hidden / FFN_MULTIPLE) if is_gated else FFN_RATIO * hidden


def attention_window(row: Row) -> tuple[float, float]:
    """Return (window in tokens, share of the layers that have it), from the notes.

    `alternating 128-token sliding window` is half, `5 of 6 layers 1024-token sliding window` five sixths.
    """
    share = r"(alternating |(\d+) (?:of|in) (?:every )?(\d+) layers )?"
    stated = re.search(share + r"(\d+)-token sliding window", f"{row['shape_note']} {row['notes']}")
    if not stated:
        return row["seq_len"], 0.0
    windowed = float(stated[2]) / float(stated[3]) if stated[2] else 0.5 if stated[1] else 1.0
    return float(stated[4]), min(1.0, windowed)


def attention_fields(row: Row, known: ModelShape | None, flags: list[str]) -> dict[str, float]:
    """Return the attention's widths; a model the catalogue knows as MLA has its ranks from there."""
    hidden, heads = row["d_model"], row["n_heads"]
    if not heads:
        flags.append("heads")
        heads = float(max(1, round(hidden / HEAD_WIDTH)))
    if known and known.attention_kind == "mla":
        head, rope = known.head_dim or HEAD_WIDTH, known.mla_rope_head_dim or 0.0
        return {
            "query_width": heads * head,
            "key_value_width": heads * (head - rope),
            "value_width": heads * (known.mla_value_head_dim or HEAD_WIDTH),
            "query_rank_width": known.mla_query_rank or 0.0,
            "key_value_rank_width": known.mla_kv_rank or 0.0,
            "rope_width": rope,
            "score_head_count": heads,
        }
    width = row["head_dim"] or hidden / heads
    if not row["n_kv_heads"] and row["n_heads"]:
        flags.append("kv")
    return {
        "query_width": heads * width,
        "key_value_width": (row["n_kv_heads"] or heads) * width,
        "value_width": heads * width,
        "query_rank_width": 0.0,
        "key_value_rank_width": 0.0,
        "rope_width": 0.0,
        "score_head_count": heads,
    }


def run_layout(
    row: Row, stack: Stack, transformer: Mapping[str, float], domain_ranks: float, batch: float, flags: list[str]
) -> dict[str, float]:
    """Return the fields of `TransformerLayout` for a run of so many sequences a step."""
    if not row["tp"]:
        flags.append("layout")
    tensor, pipeline = row["tp"] or 1.0, row["pp"] or 1.0
    data, context = data_and_context_ranks(row, stack, batch, flags)
    share = max(1.0, batch / data)
    microbatch = microbatch_sequences(row, stack, share, flags)
    chunks = interleave(row, stack, flags) if pipeline > 1.0 else 1.0
    uneven = row["n_layers"] % (pipeline * chunks) and (row["n_layers"] + 2) % (pipeline * chunks) == 0
    stage, shard = sharding(row, stack, data * context, flags)
    notes, parts = row["notes"].lower(), matmul_parts(transformer)
    again = recomputation(row, stage, parts, flags, unsaid=stack.recomputes, is_traced=stack.is_traced)
    return {
        "tensor_ranks": tensor,
        "sequence_ranks": sequence_ranks(row, stack, flags),
        "context_ranks": context,
        "context_all_to_all_ranks": context if "ulysses" in f"{row['framework']} {row['notes']}".lower() else 1.0,
        "expert_ranks": expert_ranks(row, data, domain_ranks, flags),
        "pipeline_ranks": pipeline,
        "data_ranks": data,
        "microbatch_sequence": microbatch,
        "microbatch_count": max(1.0, share / microbatch),
        "interleave_ratio": chunks,
        "end_stage_layer_credit": 2.0 if pipeline > 1.0 and uneven else 0.0,
        "sharding_stage": stage,
        "shard_ranks": shard,
        "is_gpipe": float("gpipe" in notes),
        "bubble_ratio": 1.0 / 3.0 if "zero bubble" in notes or "zero-bubble" in notes else 1.0,
        **dict(zip(RECOMPUTE_FIELDS, again, strict=True)),
    }


def data_and_context_ranks(row: Row, stack: Stack, batch: float, flags: list[str]) -> tuple[float, float]:
    """Return (data-parallel degree, context-parallel degree).

    Data ranks are what the accelerators leave, or the published degree where that is no integer. A rank of full
    sharding has a sequence at least: where the batch has fewer and no context degree is published, ranks share one.
    """
    data, context = data_ranks(row, flags), row["cp"] or 1.0
    shared = data / batch
    if row["cp"] or shared <= 1.0 or shared != int(shared) or sharding(row, stack, data, [])[0] < 3.0:
        return data, context
    flags.append("cp")
    return batch, shared


def data_ranks(row: Row, flags: list[str]) -> float:
    """Return the data-parallel degree: what the accelerators leave, or the published one where that is no integer."""
    left = row["num_gpus"] / ((row["tp"] or 1.0) * (row["pp"] or 1.0) * (row["cp"] or 1.0))
    if row["dp"] and row["dp"] != left:
        flags.append("dp")
    left = max(left, 1.0)
    return left if left == int(left) else row["dp"] or left


def microbatch_sequences(row: Row, stack: Stack, share: float, flags: list[str]) -> float:
    """Return the sequences of a microbatch, at most a data rank's share of the batch."""
    given = row["microbatch_sequences"]
    if given:
        return min(given, share)
    flags.append("microbatch")
    if stack.fills_pipeline_once and (row["pp"] or 1.0) > 1.0:
        return max(1.0, share / (row["pp"] * (2.0 if "nterleaved" in row["notes"] else 1.0)))
    most = int(max(1.0, min(share, MICROBATCH_TOKEN // row["seq_len"])))
    return min(share, float(next(each for each in range(most, 0, -1) if share % each == 0 or each == 1)))


def interleave(row: Row, stack: Stack, flags: list[str]) -> float:
    """Return the model chunks of a stage."""
    layers, pipeline = row["n_layers"], row["pp"]
    if row["vpp"]:
        return row["vpp"]
    flags.append("vpp")
    if "nterleaved" in row["notes"] and layers % (pipeline * 2) in (0, 2 * pipeline - 2):
        return 2.0
    per_chunk = pipeline * stack.chunk_layer_count
    if per_chunk and any((layers + more) % per_chunk == 0 for more in (0, 2)):
        return max(1.0, (layers + (2.0 if layers % per_chunk else 0.0)) // per_chunk)
    return 1.0


def sharding(row: Row, stack: Stack, replicas: float, flags: list[str]) -> tuple[float, float]:
    """Return (ZeRO stage, ranks that share the weights): FSDP is stage 3, hybrid sharding shares inside a server.

    `fsdp 128` shares between 128 ranks. Words that name no stage are as if unpublished.
    """
    given = row["zero_stage_or_fsdp"].lower()
    node = row["gpus_per_node"] or replicas
    stated = re.search(r"(?:fsdp|hsdp|shard)[^0-9a-z]{1,3}(\d+)", given)
    is_hybrid = any(each in given for each in ("hsdp", "hybrid", "inside slice"))
    shard = min(float(stated[1]) if stated else node, replicas) if is_hybrid or stated else replicas
    digit = re.search(r"(?:zero|stage|\bo)\D{0,8}([0-3])\b|^([0-3])(?:\.0)?$", given)
    if "shard_grad_op" in given:
        return 2.0, replicas
    if any(each in given for each in ("fsdp", "hsdp", "full_shard", "hybrid_shard", "fully")):
        return 3.0, shard
    if digit:
        return float(digit[1] or digit[2]), shard
    if re.search("distributed[ _-]?optim", given):
        return 1.0, shard
    if not re.search(r"\b(none|no|ddp|false|off|dp)\b", given):
        flags.append("zero")
        return stack.sharding_stage, shard
    return 0.0, shard


def sequence_ranks(row: Row, stack: Stack, flags: list[str]) -> float:
    """Return the tensor degree with sequence parallelism, else 1. It came with Megatron's selective recomputation."""
    tensor, given = row["tp"] or 1.0, row["sequence_parallel"].lower()
    is_off = given in ("false", "0", "0.0", "no", "off", "none", "disabled")
    is_said = is_off or given in ("true", "1", "1.0", "yes", "on", "enabled", "sp")
    if not is_said and tensor > 1.0:
        flags.append("sp")
    came_together = stack.id.startswith("megatron_lm") and row["recompute"].lower() == "selective"
    is_on = not is_off if is_said else stack.has_sequence_parallel
    return tensor if is_on or came_together else 1.0


def expert_ranks(row: Row, data: float, domain_ranks: float, flags: list[str]) -> float:
    """Return the ranks that share one set of experts; experts that tensor ranks split (`ETP 4`) are on so many more."""
    if (row["n_experts"] or 0.0) <= 1.0:
        return 1.0
    split = re.search(r"\b(?:etp|expert[ -]tensor[ -]parallel\w*)\W{0,3}(\d+)", row["notes"].lower())
    if row["ep"]:
        return row["ep"] * (max(1.0, float(split[1])) if split else 1.0)
    flags.append("ep")
    return min(row["n_experts"], data, domain_ranks)
