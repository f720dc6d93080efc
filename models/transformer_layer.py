"""Time of one transformer layer on one microbatch: forward, backward, what is recomputed and what traffic shows."""

from dataclasses import dataclass

import jax.numpy as jnp

from models.effects.attention import (
    attended_token_mean,
    attention_forward_flop,
    fused_attention_time_s,
    unfused_attention_time_s,
)
from models.effects.elementwise import (
    cast_time_s,
    elementwise_time_s,
    expert_permutation_time_s,
    gradient_accumulation_time_s,
)
from models.effects.overlap import host_bound_time_s
from models.quantities import Scalar
from models.transformer_parts import Weights, dense_width, output_width, tokens_per_rank
from models.transformer_rates import Point, Rates, tiled_matmul_s
from models.transformer_traffic import context_s, expert_forward_s, tensor_forward_s


@dataclass(frozen=True)
class Layer:
    """Seconds of one layer and one microbatch."""

    forward: Scalar
    backward: Scalar
    linear_forward: Scalar
    attention_forward: Scalar
    attention_backward: Scalar
    other_forward: Scalar
    accumulate: Scalar
    recomputed: Scalar
    tensor_forward: Scalar
    context_forward: Scalar
    context_backward: Scalar
    expert_forward: Scalar


def linear_forward_s(point: Point, rate: Rates, held: Weights) -> Scalar:
    """Return the time of a layer's linear maps forward: attention's projections, dense and routed feed-forward."""
    m, layout = point.transformer, point.layout
    token, tensor = tokens_per_rank(m, layout), layout.tensor_ranks
    attention_out = output_width(m)
    projected = held.attention / m.hidden_width - attention_out
    attention = tiled_matmul_s(point, rate, rows=token, inner=m.hidden_width, columns=projected / tensor)
    attention = attention + tiled_matmul_s(
        point, rate, rows=token, inner=attention_out / tensor, columns=m.hidden_width
    )
    # a model without dense layers or without experts has width 0 there: 1 keeps the division finite, 0 times it
    into = m.ffn_matrix_count - 1.0
    width = jnp.maximum(dense_width(m), 1.0)
    dense = tiled_matmul_s(point, rate, rows=token, inner=m.hidden_width, columns=into * width / tensor)
    dense = dense + tiled_matmul_s(point, rate, rows=token, inner=width / tensor, columns=m.hidden_width)
    experts = jnp.maximum(m.expert_count / layout.expert_ranks, 1.0)
    rows = jnp.maximum(routed_tokens(point) / experts, 1.0)
    narrow = jnp.maximum(m.expert_ffn_width, 1.0)
    routed = tiled_matmul_s(
        point, rate, rows=rows, inner=m.hidden_width, columns=into * narrow, groups=experts
    ) + tiled_matmul_s(point, rate, rows=rows, inner=narrow, columns=m.hidden_width, groups=experts)
    return attention + jnp.where(dense_width(m) > 0.0, dense, 0.0) + m.moe_layer_fraction * routed


def routed_tokens(point: Point) -> Scalar:
    """Return the token copies that the experts of the busiest rank meet in one microbatch."""
    m, layout = point.transformer, point.layout
    token = tokens_per_rank(m, layout)
    return token * m.experts_per_token / layout.tensor_ranks * point.software.expert_load_ratio


def attention_times_s(point: Point, rate: Rates) -> tuple[Scalar, Scalar]:
    """Return (forward, backward) time of attention's kernels in one layer."""
    m, w, c = point.transformer, point.software, point.constants
    token, tensor = tokens_per_rank(m, point.layout), point.layout.tensor_ranks
    attended = attended_token_mean(
        sequence_token=m.sequence_token,
        window_token=m.window_token,
        windowed_layer_fraction=m.windowed_layer_fraction,
        is_causal=jnp.ones(()),
    )
    widths = {"query_width": m.query_width / tensor, "value_width": output_width(m) / tensor}
    flop = attention_forward_flop(token=token, attended_token=attended, **widths)
    score = token * attended * m.score_head_count / tensor
    kernel = {
        "score_count": score,
        "flop_per_s": rate.flash_flop_per_s,
        "exponential_per_s": rate.exponential_per_s,
        "exponential_work_ratio": c.exponential_work_ratio,
    }
    foreign = 1.0 + w.is_foreign_attention * (c.foreign_attention_time_ratio - 1.0)
    slower = foreign * (1.0 + w.is_early_attention * (c.early_attention_time_ratio - 1.0))
    fused_forward = slower * fused_attention_time_s(flop=flop, **kernel)
    fused_backward = slower * fused_attention_time_s(flop=flop * c.fused_backward_ratio, **kernel)
    full_ratio = m.sequence_token / attended
    unfused = unfused_attention_time_s(
        flop=flop * full_ratio,
        score_count=score * full_ratio,
        flop_per_s=rate.sixteen_bit_flop_per_s * c.unfused_matmul_fraction,
        hbm_byte_per_s=rate.hbm_byte_per_s,
        score_pass_count=c.score_pass_count,
        score_byte=c.activation_byte,
    )
    forward = fused_forward + w.is_unfused_attention * (unfused - fused_forward)
    return forward, fused_backward + w.is_unfused_attention * (2.0 * unfused - fused_backward)


def memory_bound_forward_s(point: Point, rate: Rates) -> Scalar:
    """Return the time of a layer's memory-bound kernels forward: norms, activations, casts, expert permutation."""
    m, layout, w, c = point.transformer, point.layout, point.software, point.constants
    token, tensor, wide = tokens_per_rank(m, layout), layout.tensor_ranks, dense_width(m)
    elementwise = elementwise_time_s(
        token=token,
        hidden_width=m.hidden_width,
        ffn_width=wide,
        ffn_matrix_count=m.ffn_matrix_count,
        tensor_ranks=tensor,
        sequence_ranks=layout.sequence_ranks,
        pass_count=c.fused_pass_count + w.is_eager * (c.eager_pass_count - c.fused_pass_count),
        pass_replicated_fraction=c.pass_replicated_fraction,
        pass_ffn_ratio=c.pass_ffn_ratio,
        element_byte=c.activation_byte,
        hbm_byte_per_s=rate.hbm_byte_per_s,
    )
    unfused = 1.0 + w.is_eager_expert * (c.eager_pass_count / c.fused_pass_count - 1.0)
    permutation = expert_permutation_time_s(
        routed_token=routed_tokens(point),
        hidden_width=m.hidden_width,
        expert_ffn_width=m.expert_ffn_width,
        pass_count=c.expert_pass_count * w.expert_pass_ratio * unfused,
        element_byte=c.activation_byte,
        hbm_byte_per_s=rate.hbm_byte_per_s,
    )
    routed_width = m.moe_layer_fraction * m.experts_per_token / tensor * (m.hidden_width + m.expert_ffn_width)
    cast = cast_time_s(
        token=token,
        operand_width=2.0 * m.hidden_width + (output_width(m) + wide) / tensor + routed_width,
        cast_byte=w.cast_byte,
        hbm_byte_per_s=rate.hbm_byte_per_s,
    )
    return elementwise + m.moe_layer_fraction * permutation + cast


def layer_times(point: Point, rate: Rates, held: Weights) -> Layer:
    """Return the seconds of one layer: matmuls, attention, memory-bound kernels, traffic, waiting for the host."""
    layout, w, c = point.layout, point.software, point.constants

    # The work forward
    linear = linear_forward_s(point, rate, held)
    attention, attention_backward = attention_times_s(point, rate)
    other = memory_bound_forward_s(point, rate)
    tensor, expert = tensor_forward_s(point, rate), expert_forward_s(point, rate)
    context, context_backward = context_s(point, rate, attention, attention_backward)
    traffic = tensor + context + expert

    # What the backward pass adds: twice the matmuls, gradient accumulation, and what was not kept
    accumulate = gradient_accumulation_time_s(
        parameter_count=held.shared_layer + held.routed_layer,
        gradient_byte=w.gradient_byte,
        hbm_byte_per_s=rate.hbm_byte_per_s,
    )
    recomputed = (
        layout.recompute_matmul_fraction * (linear + traffic)
        + layout.recompute_attention_fraction * attention
        + layout.recompute_elementwise_fraction * other
    )

    # The device waits where launching takes longer than the work
    host = c.host_layer_s * w.host_ratio
    launches = point.transformer.expert_count / layout.expert_ranks * c.expert_launch_s * w.expert_launch_ratio
    host = host + point.transformer.moe_layer_fraction * (c.expert_host_s * w.expert_host_ratio + launches)
    backward = 2.0 * linear + accumulate + attention_backward + 2.0 * other + recomputed
    backward = backward + tensor + context_backward + expert
    backward_host = host * (c.backward_host_ratio + layout.recompute_elementwise_fraction)
    return Layer(
        forward=host_bound_time_s(device_s=linear + attention + other + traffic, host_s=host),
        backward=host_bound_time_s(device_s=backward, host_s=backward_host),
        linear_forward=linear,
        attention_forward=attention,
        attention_backward=attention_backward,
        other_forward=other,
        accumulate=accumulate,
        recomputed=recomputed,
        tensor_forward=tensor,
        context_forward=context,
        context_backward=context_backward,
        expert_forward=expert,
    )
