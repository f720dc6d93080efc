"""Quantities that both the time and the memory of the calibrated model rest on."""

from dataclasses import dataclass

import jax.numpy as jnp

from models.effects.parameters import (
    attention_parameter_count,
    embedding_parameter_count,
    feed_forward_parameter_count,
)
from models.effects.stages import last_stage_layer_count, stage_layer_count
from models.quantities import Quantity, Scalar
from models.transformer_point import Transformer, TransformerLayout


@dataclass(frozen=True)
class Weights:
    """Weights of one layer and of the ends, in three buckets: split by tensor ranks, routed to experts, embeddings."""

    attention: Scalar
    shared_layer: Scalar  # held by one tensor rank: attention, dense feed-forward, shared experts
    routed_layer: Scalar  # held by one expert rank
    embedding: Scalar  # input and output embeddings of one tensor rank
    input_embedding: Scalar
    output_embedding: Scalar


@dataclass(frozen=True)
class Stages:
    """Layers of the pipeline's stages."""

    largest: Scalar
    last: Scalar
    is_piped: Scalar  # 0/1


def tokens_per_rank(transformer: Transformer, layout: TransformerLayout) -> Scalar:
    """Return the tokens of one microbatch on one context rank."""
    return layout.microbatch_sequence * transformer.sequence_token / layout.context_ranks


def output_width(transformer: Transformer) -> Scalar:
    """Return the width of attention's output before its projection: the values' for MLA, the queries' otherwise."""
    return jnp.where(transformer.key_value_rank_width > 0.0, transformer.value_width, transformer.query_width)


def dense_width(transformer: Transformer) -> Scalar:
    """Return the mean feed-forward width that every token passes: dense layers and shared experts."""
    m = transformer
    shared = m.moe_layer_fraction * m.shared_expert_count * m.expert_ffn_width
    return (1.0 - m.moe_layer_fraction) * m.ffn_width + shared


def attention_weights(transformer: Transformer) -> Scalar:
    """Return the weights of one attention layer, from widths over all heads."""
    m = transformer
    is_latent = jnp.where(m.key_value_rank_width > 0.0, 1.0, 0.0)
    head_dim = m.query_width / m.score_head_count
    return attention_parameter_count(
        d_model=m.hidden_width,
        head_count=m.score_head_count,
        head_dim=head_dim,
        kv_head_count=m.key_value_width / head_dim,
        is_latent=is_latent,
        query_rank=m.query_rank_width,
        kv_rank=m.key_value_rank_width,
        rope_head_dim=m.rope_width,
        value_head_dim=m.value_width / m.score_head_count,
    )


def weights(transformer: Transformer, layout: TransformerLayout) -> Weights:
    """Return the weights that ranks hold, by bucket.

    Attention, dense layers and shared experts split over tensor ranks; routed experts over expert ranks.
    """
    m, tensor = transformer, layout.tensor_ranks
    attention = attention_weights(m)
    ffn = {"d_model": m.hidden_width, "matrix_count": m.ffn_matrix_count}
    dense = feed_forward_parameter_count(d_ff=dense_width(m), **ffn)
    expert = feed_forward_parameter_count(d_ff=m.expert_ffn_width, **ffn)
    embedding = embedding_parameter_count(
        d_model=m.hidden_width,
        vocabulary=m.vocabulary_size,
        position_count=m.learned_position_count,
        has_tied_embeddings=m.embedding_is_tied,
    )
    output = m.vocabulary_size * m.hidden_width
    return Weights(
        attention=attention,
        shared_layer=(attention + dense) / tensor,
        routed_layer=m.moe_layer_fraction * m.expert_count / layout.expert_ranks * expert,
        embedding=embedding / tensor,
        input_embedding=(output + m.learned_position_count * m.hidden_width) / tensor,
        output_embedding=output / tensor,
    )


def stages(transformer: Transformer, layout: TransformerLayout) -> Stages:
    """Return how many layers the fullest and the last stage hold."""
    common = {"layer_count": transformer.layer_count, "pipeline_ranks": layout.pipeline_ranks}
    credit = layout.end_stage_layer_credit
    largest = stage_layer_count(**common, interleave_ratio=layout.interleave_ratio, end_stage_layer_credit=credit)
    last = last_stage_layer_count(**common, largest_layer_count=largest, end_stage_layer_credit=credit)
    return Stages(largest=largest, last=last, is_piped=jnp.where(layout.pipeline_ranks > 1.0, 1.0, 0.0))


def is_fully_sharded(layout: TransformerLayout) -> Scalar:
    """Return 1 where weights are sharded too (ZeRO-3, FSDP), else 0."""
    return jnp.where(layout.sharding_stage > 2.0, 1.0, 0.0)


def expert_replicas(layout: TransformerLayout) -> Scalar:
    """Return over how many ranks the same routed experts are replicated: tensor x context x data / expert ranks."""
    return jnp.maximum(1.0, layout.data_ranks * layout.context_ranks * layout.tensor_ranks / layout.expert_ranks)


def accelerator_count(layout: TransformerLayout) -> Quantity:
    """Return the accelerators of the run."""
    return layout.tensor_ranks * layout.context_ranks * layout.pipeline_ranks * layout.data_ranks
