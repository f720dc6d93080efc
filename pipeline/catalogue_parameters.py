"""The parameter counts of a model of the catalogue, by the same functions that the physics uses."""

import jax.numpy as jnp

from models.effects import parameters
from models.quantities import Scalar
from pipeline.catalogue_load import fail
from pipeline.catalogue_schema import ModelShape

GATED = ("swiglu", "geglu")
NEEDED = (
    "layer_count",
    "d_model",
    "head_count",
    "head_dim",
    "kv_head_count",
    "vocabulary",
    "ffn_kind",
    "attention_kind",
)


def parameter_counts(model: ModelShape) -> tuple[float, float]:
    """Return all weights and those on the path of one token, computed from the shape of a transformer."""
    for key in NEEDED:
        if getattr(model, key) is None:
            raise fail(model.file, key, None, "is needed to count parameters", "give it, or use a kind without a shape")

    def value(key: str, default: float = 0.0) -> Scalar:
        given = getattr(model, key)
        return jnp.asarray(default if given is None else given)

    d_model, layers = value("d_model"), value("layer_count")
    experts = value("expert_count", 1.0)
    dense_layers = layers if float(experts) == 1.0 else value("dense_layer_count")
    heads = {key: value(key) for key in ("head_count", "head_dim", "kv_head_count")}
    matrices = jnp.asarray(3.0 if model.ffn_kind in GATED else 2.0)
    dense_d_ff = value("d_ff")
    parts = {
        "layer_count": layers,
        "dense_layer_count": dense_layers,
        "attention": parameters.attention_parameter_count(
            d_model=d_model,
            **heads,
            is_latent=jnp.asarray(float(model.attention_kind == "mla")),
            query_rank=value("mla_query_rank"),
            kv_rank=value("mla_kv_rank"),
            rope_head_dim=value("mla_rope_head_dim"),
            value_head_dim=value("mla_value_head_dim"),
        ),
        "dense_feed_forward": parameters.feed_forward_parameter_count(
            d_model=d_model, d_ff=dense_d_ff, matrix_count=matrices
        ),
        "expert": parameters.feed_forward_parameter_count(
            d_model=d_model, d_ff=value("expert_d_ff"), matrix_count=matrices
        ),
        "router": d_model * experts,
        "shared_expert_count": value("shared_expert_count"),
        "embedding": parameters.embedding_parameter_count(
            d_model=d_model,
            vocabulary=value("vocabulary"),
            position_count=value("position_embedding_count"),
            has_tied_embeddings=value("tied_embeddings"),
        ),
        "small": parameters.small_parameter_count(
            layer_count=layers, d_model=d_model, dense_d_ff=dense_d_ff, **heads, has_bias=value("has_bias")
        ),
    }
    total = parameters.transformer_parameter_count(expert_count=experts, **parts)
    active = parameters.transformer_parameter_count(expert_count=value("expert_top_k", 1.0), **parts)
    return float(total), float(active)
