"""Peak memory of one accelerator under the calibrated model: the fullest of first, last and middle stage."""

from dataclasses import dataclass

import jax.numpy as jnp

from models.effects.activation import (
    expert_activation_byte,
    gathered_layer_byte,
    layer_activation_byte,
    logit_byte,
    score_activation_byte,
    state_byte,
)
from models.effects.stages import inflight_microbatch_count, later_microbatch_counts
from models.quantities import Quantity, Scalar
from models.transformer_parts import (
    Stages,
    Weights,
    dense_width,
    expert_replicas,
    is_fully_sharded,
    output_width,
    tokens_per_rank,
)
from models.transformer_point import Constants, Software, Transformer, TransformerLayout


@dataclass(frozen=True)
class Memory:
    """Bytes of the fullest accelerator and of the first stage's parts."""

    peak: Scalar
    first_state: Scalar
    first_activation: Scalar
    logits: Scalar


def stage_state_byte(
    *,
    shared: Quantity,
    routed: Quantity,
    held: Weights,
    stage: Stages,
    layout: TransformerLayout,
    software: Software,
    constants: Constants,
) -> Scalar:
    """Return the state of a stage with so many shared and routed weights: sharded, plus what full sharding gathers.

    Full sharding keeps two unsharded layers, or half of one where a compiler gathers matrix by matrix; with a pipeline
    it keeps the stage's weights and gradients whole. Experts that no other rank holds are never gathered.
    """
    full = is_fully_sharded(layout)
    data_ranks, replicas = layout.data_ranks * layout.context_ranks, expert_replicas(layout)
    shard_ranks = full * layout.shard_ranks + (1.0 - full) * data_ranks
    per_weight = {
        "sharding_stage": layout.sharding_stage,
        "weight_byte": software.weight_byte,
        "gradient_byte": software.gradient_byte,
        "optimizer_byte": software.optimizer_byte,
    }
    sharded = state_byte(parameter_count=shared, shard_ranks=shard_ranks, **per_weight)
    sharded = sharded + state_byte(parameter_count=routed, shard_ranks=replicas, **per_weight)
    gathered = gathered_layer_byte(
        layer_parameter_count=held.shared_layer + jnp.where(replicas > 1.0, held.routed_layer, 0.0),
        gathered_layer_count=2.0 - 1.5 * software.is_static_allocation,
        element_byte=constants.activation_byte,
    )
    split = jnp.where(shard_ranks > 1.0, shared, 0.0) + jnp.where(replicas > 1.0, routed, 0.0)
    whole = stage.is_piped * (constants.activation_byte + software.gradient_byte) * split
    return sharded + full * (gathered + whole)


def layer_bytes(
    transformer: Transformer, layout: TransformerLayout, software: Software, constants: Constants
) -> tuple[Scalar, Scalar]:
    """Return (stored, working) activations of one layer for one microbatch, by what is recomputed."""
    m, token = transformer, tokens_per_rank(transformer, layout)
    element = {"element_byte": constants.activation_byte}
    layer = layer_activation_byte(
        token=token,
        hidden_width=m.hidden_width,
        query_width=(m.query_width + output_width(m)) / 2.0,
        key_value_width=m.key_value_width,
        ffn_width=dense_width(m),
        ffn_matrix_count=m.ffn_matrix_count,
        tensor_ranks=layout.tensor_ranks,
        sequence_ranks=layout.sequence_ranks,
        has_dropout=software.has_dropout,
        **element,
    )
    layer = layer + m.moe_layer_fraction * expert_activation_byte(
        routed_token=token * m.experts_per_token / layout.tensor_ranks,
        hidden_width=m.hidden_width,
        expert_ffn_width=m.expert_ffn_width,
        ffn_matrix_count=m.ffn_matrix_count,
        **element,
    )
    keeps_scores = software.is_unfused_attention * (1.0 - software.is_static_allocation)
    scores = keeps_scores * score_activation_byte(
        score_count=token * m.sequence_token * m.score_head_count / layout.tensor_ranks,
        has_dropout=software.has_dropout,
        dropout_byte=constants.score_dropout_byte,
        **element,
    )
    again = layout.recompute_attention_fraction
    checkpoint = constants.activation_byte * token * m.hidden_width / layout.sequence_ranks
    kept = layout.stored_activation_fraction * (layer + (1.0 - again) * scores)
    dropped, redone = 1.0 - layout.stored_activation_fraction, layout.recompute_elementwise_fraction
    stored = checkpoint * jnp.minimum(redone, dropped) + kept
    is_whole = (layout.recompute_matmul_fraction == redone) & (again == redone)  # some layers, each from its input
    rebuilt = jnp.where(is_whole, layer + scores, dropped * layer + again * scores)
    recomputes = layout.recompute_elementwise_fraction + again > 0.0
    return stored, jnp.where(recomputes, constants.working_layer_count * rebuilt, 0.0)


def transformer_memory(
    *,
    transformer: Transformer,
    layout: TransformerLayout,
    software: Software,
    constants: Constants,
    held: Weights,
    stage: Stages,
) -> Memory:
    """Return the peak memory of the fullest accelerator.

    First stage: its layers, the input embedding, activations of all microbatches in flight; last stage: output
    embedding and logits; a middle stage where it is larger. Times the allocator's overhead, plus a fixed context.
    Source: Korthikanti et al. 2022 (arXiv 2205.05198), sections 4 and 5; Rajbhandari et al. 2020, section 5.
    """
    m, piped = transformer, stage.is_piped
    stored, working = layer_bytes(m, layout, software, constants)
    share = {"held": held, "stage": stage, "layout": layout, "software": software, "constants": constants}
    end_layers = stage.largest - layout.end_stage_layer_credit / 2.0
    first_layers = piped * end_layers + (1.0 - piped) * m.layer_count

    # Microbatches in flight
    in_first = inflight_microbatch_count(
        pipeline_ranks=layout.pipeline_ranks,
        interleave_ratio=layout.interleave_ratio,
        microbatch_count=layout.microbatch_count,
        is_gpipe=layout.is_gpipe,
    )
    in_middle, in_last = later_microbatch_counts(
        first=in_first,
        pipeline_ranks=layout.pipeline_ranks,
        interleave_ratio=layout.interleave_ratio,
        microbatch_count=layout.microbatch_count,
        is_gpipe=layout.is_gpipe,
    )

    # The three kinds of stage
    lone_output = (1.0 - piped) * (1.0 - m.embedding_is_tied) * held.output_embedding
    first_shared = first_layers * held.shared_layer + held.input_embedding + lone_output
    first_state = stage_state_byte(shared=first_shared, routed=first_layers * held.routed_layer, **share)
    last_shared = stage.last * held.shared_layer + held.output_embedding
    last_state = stage_state_byte(shared=last_shared, routed=stage.last * held.routed_layer, **share)
    middle_shared, middle_routed = stage.largest * held.shared_layer, stage.largest * held.routed_layer
    middle_state = stage_state_byte(shared=middle_shared, routed=middle_routed, **share)
    logits = logit_byte(
        token=tokens_per_rank(m, layout),
        vocabulary_size=m.vocabulary_size,
        tensor_ranks=layout.tensor_ranks,
        byte_per_logit=software.byte_per_logit,
    )
    sent = software.stage_output_count * piped * constants.activation_byte
    sent = sent * tokens_per_rank(m, layout) * m.hidden_width * in_first
    first_activation = first_layers * stored * in_first + working + sent
    first = first_state + first_activation + (1.0 - piped) * logits
    last = last_state + stage.last * stored * in_last + working + logits
    middle = middle_state + stage.largest * stored * in_middle + working + sent

    # What the allocator and the libraries add
    peak = jnp.maximum(first, piped * jnp.maximum(last, middle)) + software.bucket_byte
    overhead = (constants.allocator_ratio - 1.0) * peak + constants.context_byte
    total = peak + (1.0 - software.is_static_allocation) * overhead
    return Memory(peak=total, first_state=first_state, first_activation=first_activation, logits=logits)
