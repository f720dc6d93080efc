"""From catalogue model entries and families to the columns of `models.transformer_point.Transformer`."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from pipeline.catalogue import ModelShape
from pipeline.catalogue_load import fail

Float64 = NDArray[np.float64]
GATED = ("swiglu", "geglu")
NEEDED = ("layer_count", "d_model", "head_count", "vocabulary", "sequence_token")


def transformer_fields(model: ModelShape) -> dict[str, float]:
    """Return one named model as fields of `Transformer`. Raises UserError where the entry lacks its shape.

    MLA: head_dim holds its rotary part; keys are as many as queries but lack it, values have their own width.
    """
    for name in NEEDED:
        if not getattr(model, name):
            kind = "has no transformer shape" if model.kind != "shape" else "is needed"
            raise fail(model.file, name, getattr(model, name), kind, "choose a model whose kind is shape")
    heads, d_model = number(model.head_count), number(model.d_model)
    head = number(model.head_dim) or d_model / heads
    is_latent = model.attention_kind == "mla"
    rotary = number(model.mla_rope_head_dim) if is_latent else 0.0
    experts = number(model.expert_count) if number(model.expert_count) > 1 else 0.0
    layers, dense_layers = number(model.layer_count), number(model.dense_layer_count)
    query_heads = heads if is_latent else number(model.kv_head_count) or heads
    value_head = number(model.mla_value_head_dim) or head if is_latent else head
    return {
        "layer_count": layers,
        "moe_layer_fraction": (layers - dense_layers) / layers if experts else 0.0,
        "hidden_width": d_model,
        "ffn_width": number(model.d_ff),
        "ffn_matrix_count": 3.0 if model.ffn_kind in GATED else 2.0,
        "query_width": heads * head,
        "key_value_width": query_heads * (head - rotary),
        "value_width": heads * value_head,
        "query_rank_width": number(model.mla_query_rank) if is_latent else 0.0,
        "key_value_rank_width": number(model.mla_kv_rank) if is_latent else 0.0,
        "rope_width": rotary,
        "score_head_count": heads,
        "sequence_token": number(model.sequence_token),
        "window_token": number(model.sequence_token),
        "windowed_layer_fraction": 0.0,
        "vocabulary_size": number(model.vocabulary),
        "embedding_is_tied": number(model.tied_embeddings),
        "learned_position_count": number(model.position_embedding_count),
        "expert_count": experts,
        "experts_per_token": number(model.expert_top_k) if experts else 0.0,
        "shared_expert_count": number(model.shared_expert_count) if experts else 0.0,
        "expert_ffn_width": number(model.expert_d_ff) if experts else 0.0,
    }


def number(value: float | None) -> float:
    """Return a number, 0 where the entry leaves it out."""
    return float(value or 0.0)


def family_transformer(points: Mapping[str, Float64], *, head_dim: float, vocabulary: float) -> dict[str, Float64]:
    """Return a family's points as transformers: multi-head attention beside its two feed-forward matrices.

    Experts are routed one a token, as the family's rule has it.
    """
    width = points["d_model"]
    same = np.ones_like(width)
    experts = np.where(points["expert_count"] > 1, points["expert_count"], 0.0)
    is_mixture = np.where(experts > 0, 1.0, 0.0)
    return {
        "layer_count": points["layer_count"],
        "moe_layer_fraction": is_mixture,
        "hidden_width": width,
        "ffn_width": points["d_ff"],
        "ffn_matrix_count": 2.0 * same,
        "query_width": width,
        "key_value_width": width,
        "value_width": width,
        "query_rank_width": 0.0 * same,
        "key_value_rank_width": 0.0 * same,
        "rope_width": 0.0 * same,
        "score_head_count": width / head_dim,
        "sequence_token": points["sequence_token"],
        "window_token": points["sequence_token"],
        "windowed_layer_fraction": 0.0 * same,
        "vocabulary_size": vocabulary * same,
        "embedding_is_tied": 0.0 * same,
        "learned_position_count": 0.0 * same,
        "expert_count": experts,
        "experts_per_token": is_mixture,
        "shared_expert_count": 0.0 * same,
        "expert_ffn_width": points["d_ff"] * is_mixture,
    }
