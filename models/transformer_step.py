"""One training step of a transformer under the calibrated model, in the order of a paper's methods section."""

import jax.numpy as jnp

from models.effects.attention import attended_token_mean
from models.effects.elementwise import logit_traffic_time_s, optimizer_time_s
from models.effects.overlap import overlapped_time_s, partly_hidden_time_s
from models.effects.reliability import goodput_fraction
from models.effects.stages import pipeline_bubble_microbatch_count, pipeline_hop_time_s
from models.quantities import Quantity, Scalar
from models.transformer_groups import gather_s, group
from models.transformer_layer import Layer, layer_times
from models.transformer_memory import transformer_memory
from models.transformer_outcome import TransformerOutcome
from models.transformer_parts import (
    Stages,
    Weights,
    accelerator_count,
    attention_weights,
    dense_width,
    expert_replicas,
    is_fully_sharded,
    output_width,
    stages,
    tokens_per_rank,
    weights,
)
from models.transformer_point import Transformer
from models.transformer_rates import Point, Rates, rates, tiled_matmul_s

FORWARD_AND_BACKWARD = 3.0  # a matmul forward, and one each for the gradients of its input and of its weights


def gathered_layer_s(point: Point, rate: Rates, layer: Layer, held: Weights) -> Scalar:
    """Return a layer's time, forward and backward, with sharded weights gathered beside the computation.

    Forward gathers the layer's weights; backward gathers them again and scatters the gradients. Experts are shared by
    their replicas alone, and stand whole where there is one.
    Source: Zhao et al. 2023 (arXiv 2304.11277), section 3.
    """
    layout, c, w = point.layout, point.constants, point.software
    shards = group(point, rate, ranks=layout.shard_ranks, inner=layout.tensor_ranks)
    copies = group(point, rate, ranks=expert_replicas(layout), inner=layout.expert_ranks)
    has_experts = jnp.where(point.transformer.expert_count > 0.0, 1.0, 0.0)
    gather = gather_s(point, shards, w.gather_byte * held.shared_layer)
    gather = gather + has_experts * gather_s(point, copies, w.gather_byte * held.routed_layer)
    scatter = gather_s(point, shards, w.gradient_byte * held.shared_layer)
    scatter = scatter + has_experts * gather_s(point, copies, w.gradient_byte * held.routed_layer)
    exposed = c.shard_exposed_fraction
    forward = overlapped_time_s(compute_s=layer.forward, transfer_s=gather, exposed_fraction=exposed)
    backward = overlapped_time_s(compute_s=layer.backward, transfer_s=gather + scatter, exposed_fraction=exposed)
    plain = layer.forward + layer.backward
    is_gathered = is_fully_sharded(layout) * jnp.where(layout.pipeline_ranks > 1.0, 0.0, 1.0)
    return plain + is_gathered * (forward + backward - plain)


def logit_time_s(point: Point, rate: Rates) -> Scalar:
    """Return the time of logits and loss of one microbatch, forward and backward: three matmuls and their traffic."""
    m, tensor = point.transformer, point.layout.tensor_ranks
    token = tokens_per_rank(m, point.layout)
    columns = m.vocabulary_size / tensor
    matmul = tiled_matmul_s(point, rate, rows=token, inner=m.hidden_width, columns=columns, is_16bit=True)
    return FORWARD_AND_BACKWARD * matmul + logit_traffic_time_s(
        token=token,
        vocabulary_size=m.vocabulary_size,
        tensor_ranks=tensor,
        traffic_byte=point.constants.logit_traffic_byte,
        hbm_byte_per_s=rate.hbm_byte_per_s,
    )


def pipeline_times_s(
    point: Point, rate: Rates, stage: Stages, layer_s: Quantity, logits_s: Quantity
) -> tuple[Scalar, Scalar]:
    """Return (waiting for the pipeline to fill and drain, exposed sends between stages) of one step."""
    m, layout, w, c = point.transformer, point.layout, point.software, point.constants
    whole = layout.tensor_ranks * layout.context_ranks * layout.data_ranks * layout.pipeline_ranks
    is_far = whole > point.links.pod_ranks
    beyond = jnp.where(is_far, jnp.minimum(rate.scale_out_byte_per_s, rate.top_byte_per_s), rate.scale_out_byte_per_s)
    is_near = whole <= point.links.domain_ranks
    hop = pipeline_hop_time_s(
        token=tokens_per_rank(m, layout),
        hidden_width=m.hidden_width,
        tensor_ranks=layout.tensor_ranks,
        is_split=w.pipeline_is_split,
        element_byte=c.activation_byte,
        link_byte_per_s=jnp.where(is_near, rate.scale_up_byte_per_s, beyond),
        latency_s=c.collective_latency_s + jnp.where(is_far, point.links.top_latency_s, 0.0),
    )
    waits = pipeline_bubble_microbatch_count(
        pipeline_ranks=layout.pipeline_ranks,
        interleave_ratio=layout.interleave_ratio,
        bubble_ratio=layout.bubble_ratio,
    )
    hops = stage.is_piped * 2.0 * layout.interleave_ratio * hop
    shown = c.pipeline_exposed_fraction * w.pipeline_exposed_ratio * layout.microbatch_count
    mean_stage_s = (m.layer_count * layer_s + logits_s) / layout.pipeline_ranks
    return waits * mean_stage_s, hops * (shown + waits)


def data_times_s(point: Point, rate: Rates, held: Weights, stage: Stages, layer_s: Quantity) -> tuple[Scalar, Scalar]:
    """Return (exposed gradient reduction, optimiser) of one step.

    Shared weights reduce over data and context ranks, routed experts over their replicas; hybrid sharding over its
    replicas only. What is reduced during the backward pass of one microbatch hides in part.
    """
    layout, w, c = point.layout, point.software, point.constants
    tensor, data_ranks = layout.tensor_ranks, layout.data_ranks * layout.context_ranks
    replicas, full = expert_replicas(layout), is_fully_sharded(layout)
    ends = held.embedding / (1.0 + stage.is_piped * (1.0 - point.transformer.embedding_is_tied))
    shared, routed = stage.largest * held.shared_layer + ends, stage.largest * held.routed_layer

    # Reduce-scatter of gradients and all-gather of weights (of the gradients themselves where nothing is sharded), and
    # hybrid sharding's all-reduce between replicas
    shared_ranks = group(point, rate, ranks=data_ranks, inner=tensor)
    routed_ranks = group(point, rate, ranks=replicas, inner=layout.expert_ranks)
    reduce = gather_s(point, shared_ranks, w.gradient_byte * shared)
    sent_byte = jnp.where(layout.sharding_stage > 0.0, w.gather_byte, w.gradient_byte)  # weights, or summed gradients
    reduce = reduce + gather_s(point, shared_ranks, sent_byte * shared)
    routed_reduce = gather_s(point, routed_ranks, w.gradient_byte * routed)
    routed_reduce = routed_reduce + gather_s(point, routed_ranks, sent_byte * routed)
    reduce = reduce + jnp.where(point.transformer.expert_count > 0.0, routed_reduce, 0.0)
    apart = tensor * layout.shard_ranks
    kept = w.gradient_byte * shared / layout.shard_ranks  # experts are scattered over all their replicas
    copies = data_ranks / layout.shard_ranks
    replica = 2.0 * gather_s(point, group(point, rate, ranks=copies, inner=apart), kept)
    is_gathered = full * (1.0 - stage.is_piped)
    exposed = partly_hidden_time_s(
        transfer_s=reduce + is_gathered * (replica - reduce),
        cover_s=stage.largest * layer_s,
        exposed_fraction=1.0 - w.is_reduction_overlapped * (1.0 - c.data_exposed_fraction),
    )

    # The optimiser updates the weights that the rank owns
    shards = full * layout.shard_ranks + (1.0 - full) * data_ranks
    owned = jnp.where(layout.sharding_stage > 0.0, shared / shards + routed / replicas, shared + routed)
    update = optimizer_time_s(
        parameter_count=owned, step_byte=c.optimizer_step_byte, hbm_byte_per_s=rate.hbm_byte_per_s
    )
    return exposed, update + c.step_overhead_s


def step_model_flop(transformer: Transformer, sequences: Quantity) -> Scalar:
    """Return the model FLOP of so many sequences: 6 x weights met x tokens, and causal attention's products.

    Source: Kaplan et al. 2020 (arXiv 2001.08361), section 2.1; Korthikanti et al. 2022, section 3 (attention halved
    for the causal mask). Ignores: recomputation, norms.
    """
    m = transformer
    token = sequences * m.sequence_token
    routed = m.moe_layer_fraction * m.experts_per_token * m.expert_ffn_width
    ffn = m.ffn_matrix_count * m.hidden_width * (dense_width(m) + routed)
    weights_met = m.layer_count * (attention_weights(m) + ffn) + m.vocabulary_size * m.hidden_width
    attended = attended_token_mean(
        sequence_token=m.sequence_token,
        window_token=m.window_token,
        windowed_layer_fraction=m.windowed_layer_fraction,
        is_causal=jnp.ones(()),
    )
    products = 2.0 * m.layer_count * attended * (m.query_width + output_width(m))
    return FORWARD_AND_BACKWARD * token * (2.0 * weights_met + products)


def whole_parameter_count(held: Weights, point: Point) -> Scalar:
    """Return all weights of the model from what ranks hold of it."""
    m, layout = point.transformer, point.layout
    layer = held.shared_layer * layout.tensor_ranks + held.routed_layer * layout.expert_ranks
    return m.layer_count * layer + held.embedding * layout.tensor_ranks


def run_goodput_fraction(point: Point, held: Weights) -> Scalar:
    """Return the share of wall time that is progress: every accelerator may fail, all write their part of the state."""
    c, accelerators = point.constants, accelerator_count(point.layout)
    state_byte = point.software.weight_byte + point.software.optimizer_byte
    return goodput_fraction(
        accelerator_count=accelerators,
        accelerator_mtbf_s=c.accelerator_mtbf_s,
        checkpoint_byte=whole_parameter_count(held, point) * state_byte / accelerators,
        checkpoint_byte_per_s=c.checkpoint_byte_per_s,
        restart_time_s=c.restart_time_s,
    )


def transformer_step(point: Point) -> TransformerOutcome:
    """Return the outcome of one step: what it takes in time, by part, and in memory."""
    m, layout, a = point.transformer, point.layout, point.accelerator
    rate, held, stage = rates(point), weights(m, layout), stages(m, layout)

    # One layer, one microbatch; then the slowest stage
    layer = layer_times(point, rate, held)
    layer_s = gathered_layer_s(point, rate, layer, held)
    logits_s = logit_time_s(point, rate)
    stage_s = jnp.maximum(stage.largest * layer_s, stage.last * layer_s + logits_s)

    # All microbatches through the pipeline, then what happens once a step
    bubble_s, hops_s = pipeline_times_s(point, rate, stage, layer_s, logits_s)
    data_s, optimizer_s = data_times_s(point, rate, held, stage, layer_s)
    step_s = layout.microbatch_count * stage_s + bubble_s + hops_s + data_s + optimizer_s

    # Memory, and the yardsticks
    memory = transformer_memory(
        transformer=m, layout=layout, software=point.software, constants=point.constants, held=held, stage=stage
    )
    flop = step_model_flop(m, layout.data_ranks * layout.microbatch_count * layout.microbatch_sequence)
    peak = a.peak_16bit_flop_per_s * accelerator_count(layout) * step_s
    again = layout.recompute_matmul_fraction / FORWARD_AND_BACKWARD
    passes = layout.microbatch_count * stage.largest
    work_s = (
        FORWARD_AND_BACKWARD * (layer.linear_forward + layer.other_forward)
        + layer.attention_forward
        + layer.attention_backward
        + layer.accumulate
        + layer.recomputed
        + 2.0 * (layer.tensor_forward + layer.expert_forward)
        + layer.context_forward
        + layer.context_backward
    )
    return TransformerOutcome(
        step_time_s=step_s,
        model_flop_utilisation_fraction=flop / peak,
        hardware_flop_utilisation_fraction=flop * (1.0 + again) / peak,
        step_model_flop=flop,
        matmul_time_s=passes * FORWARD_AND_BACKWARD * layer.linear_forward,
        attention_time_s=passes * (layer.attention_forward + layer.attention_backward),
        elementwise_time_s=passes * (FORWARD_AND_BACKWARD * layer.other_forward + layer.accumulate),
        recompute_time_s=passes * layer.recomputed,
        tensor_time_s=passes * 2.0 * layer.tensor_forward,
        context_time_s=passes * (layer.context_forward + layer.context_backward),
        expert_time_s=passes * 2.0 * layer.expert_forward,
        host_time_s=passes * (layer.forward + layer.backward - work_s),
        gather_time_s=passes * (layer_s - layer.forward - layer.backward),
        logit_time_s=layout.microbatch_count * (stage_s - stage.largest * layer_s),
        bubble_time_s=bubble_s,
        layer_transfer_time_s=hops_s,
        data_time_s=data_s,
        optimizer_time_s=optimizer_s,
        goodput_fraction=run_goodput_fraction(point, held),
        memory_byte=memory.peak,
        state_byte=memory.first_state,
        activation_byte=memory.first_activation,
        logit_byte=memory.logits,
    )
