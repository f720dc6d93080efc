"""Pipeline stages: how many layers, how long they wait, what they hold and send."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def stage_layer_count(
    *, layer_count: Quantity, pipeline_ranks: Quantity, interleave_ratio: Quantity, end_stage_layer_credit: Quantity
) -> Scalar:
    """Return the layers of the largest pipeline stage.

    The embedding and the logits may count as a layer each (credit = 2 when (L + 2) divides evenly, else 0).
    largest = ceil((L + credit) / (pp v)) v for pp > 1, never above L.
    Source: Megatron-Core, its account-for-embedding flags.
    """
    chunk_count = pipeline_ranks * interleave_ratio
    largest = jnp.ceil((layer_count + end_stage_layer_credit) / chunk_count) * interleave_ratio
    return jnp.minimum(layer_count, largest)


def last_stage_layer_count(
    *, layer_count: Quantity, largest_layer_count: Quantity, pipeline_ranks: Quantity, end_stage_layer_credit: Quantity
) -> Scalar:
    """Return the layers of the last stage.

    largest - credit/2 when the ends are balanced as layers, else what the others leave.

    L - (pp - 1) x largest, never below 0; pp = 1 gives L. Source: Megatron-Core pipeline layout.
    """
    remainder = jnp.maximum(0, layer_count - (pipeline_ranks - 1) * largest_layer_count)
    return jnp.where(end_stage_layer_credit > 0, largest_layer_count - end_stage_layer_credit / 2, remainder)


def pipeline_bubble_microbatch_count(
    *, pipeline_ranks: Quantity, interleave_ratio: Quantity, bubble_ratio: Quantity
) -> Scalar:
    """Return a pipeline's idle time in units of one microbatch's forward and backward on one stage.

    c (pp - 1) / v.

    c = 1 for GPipe and 1F1B, 1/3 for zero bubble H1 (weight gradients fill it), 0 for the ideal; v = interleaving.
    Source: Huang 2019; Narayanan 2021 sec. 2.2; Qi 2024 table 2.
    """
    return bubble_ratio * (pipeline_ranks - 1) / interleave_ratio


def pipeline_hop_time_s(
    *,
    token: Quantity,
    hidden_width: Quantity,
    tensor_ranks: Quantity,
    is_split: Quantity,
    element_byte: Quantity,
    link_byte_per_s: Quantity,
    latency_s: Quantity,
) -> Scalar:
    """Return the time of sending one microbatch's activations to the next stage.

    bytes T h / (tp if split) / link + latency.

    is_split: each tensor rank sends its share (Megatron scatter-gather, DeepSpeed pipe_partitioned), else all of it.
    Source: Narayanan 2021 sec. 4.1. Ignores: contention of stages for one port.
    """
    return element_byte * token * hidden_width / (1 + is_split * (tensor_ranks - 1)) / link_byte_per_s + latency_s


def inflight_microbatch_count(
    *, pipeline_ranks: Quantity, interleave_ratio: Quantity, microbatch_count: Quantity, is_gpipe: Quantity
) -> Scalar:
    """Return how many microbatches the first stage holds activations of.

    1F1B min(pp, m), GPipe m, interleaved + (pp - 1) / (pp v) of pp.

    Source: Korthikanti 2022 sec. 4.2.3 (1 + (p-1)/(p v)); Narayanan 2021.
    """
    extra = jnp.where(interleave_ratio > 1, (pipeline_ranks - 1) / (pipeline_ranks * interleave_ratio), 0)
    held = jnp.minimum(microbatch_count, pipeline_ranks * (1 + extra))
    return held + is_gpipe * (microbatch_count - held)


def later_microbatch_counts(
    *,
    first: Quantity,
    pipeline_ranks: Quantity,
    interleave_ratio: Quantity,
    microbatch_count: Quantity,
    is_gpipe: Quantity,
) -> tuple[Scalar, Scalar]:
    """Return how many microbatches (the second, the last) stage holds activations of, where the first holds `first`.

    1F1B: one fewer, and 1. Interleaved: 2/v fewer, and ((v - 1) pp + 1)/v. GPipe: as many. One stage: as many.
    Source: Narayanan 2021 sec. 2.2; Megatron-Core, interleaved schedule: warm-up of 2 (pp - r - 1) + (v - 1) pp chunks.
    """
    chunks = interleave_ratio
    last = jnp.minimum(microbatch_count, ((chunks - 1) * pipeline_ranks + 1) / chunks)
    second = jnp.maximum(first - jnp.where(chunks > 1, 2 / chunks, 1), last)
    is_all = jnp.where(pipeline_ranks > 1, is_gpipe, 1)
    return second + is_all * (first - second), last + is_all * (first - last)
