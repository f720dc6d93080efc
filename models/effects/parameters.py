"""How many weights a transformer has, in all and on the path of one token."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def attention_parameter_count(
    *,
    d_model: Quantity,
    head_count: Quantity,
    head_dim: Quantity,
    kv_head_count: Quantity,
    is_latent: Quantity,
    query_rank: Quantity,
    kv_rank: Quantity,
    rope_head_dim: Quantity,
    value_head_dim: Quantity,
) -> Scalar:
    """Return the weights of one attention layer.

    Grouped: d h k (query) + 2 d g k (key, value) + h k d (output); g = h is multi-head, g = 1 multi-query.
    Latent: query d r_q + r_q h k (or d h k where r_q = 0), key and value d (r_kv + k_rope) + r_kv h (k - k_rope + v),
    output h v d.
    h heads of width k, g key-value heads, r ranks of the compressions, v the value width.
    Source: Ainslie et al. 2023 (arXiv 2305.13245); DeepSeek-V2 (arXiv 2405.04434), section 2.1.
    Ignores: biases, norms inside attention (below 0.1%).
    """
    width = head_count * head_dim
    grouped = 2.0 * d_model * width + 2.0 * d_model * kv_head_count * head_dim
    query = jnp.where(query_rank > 0.0, query_rank * (d_model + width), d_model * width)
    key_value = d_model * (kv_rank + rope_head_dim)
    key_value = key_value + kv_rank * head_count * (head_dim - rope_head_dim + value_head_dim)
    latent = query + key_value + head_count * value_head_dim * d_model
    return jnp.where(is_latent > 0.0, latent, grouped)


def feed_forward_parameter_count(*, d_model: Quantity, d_ff: Quantity, matrix_count: Quantity) -> Scalar:
    """Return the weights of one feed-forward block: d_model d_ff for each matrix; 3 with a gate, else 2.

    Source: Shazeer 2020 (arXiv 2002.05202).
    """
    return jnp.asarray(matrix_count * d_model * d_ff)


def embedding_parameter_count(
    *, d_model: Quantity, vocabulary: Quantity, position_count: Quantity, has_tied_embeddings: Quantity
) -> Scalar:
    """Return the weights of token and position embeddings and of the output projection (one matrix if tied)."""
    return jnp.asarray(d_model * (vocabulary * (2.0 - has_tied_embeddings) + position_count))


def small_parameter_count(
    *,
    layer_count: Quantity,
    d_model: Quantity,
    dense_d_ff: Quantity,
    head_count: Quantity,
    head_dim: Quantity,
    kv_head_count: Quantity,
    has_bias: Quantity,
) -> Scalar:
    """Return norm gains and, with biases, those of norms and linear layers.

    (2 L + 1) d gains; with biases again as many, and L (h k + 2 g k + d + d_ff + d).
    Valid when: two norms a layer and one at the end.
    """
    gains = (2.0 * layer_count + 1.0) * d_model
    linear = layer_count * ((head_count + 2.0 * kv_head_count) * head_dim + 2.0 * d_model + dense_d_ff)
    return jnp.asarray(gains + has_bias * (gains + linear))


def transformer_parameter_count(
    *,
    layer_count: Quantity,
    dense_layer_count: Quantity,
    attention: Quantity,
    dense_feed_forward: Quantity,
    expert: Quantity,
    router: Quantity,
    expert_count: Quantity,
    shared_expert_count: Quantity,
    embedding: Quantity,
    small: Quantity,
) -> Scalar:
    """Return the weights of a transformer from those of its parts.

    L attention + L_dense feed_forward + (L - L_dense) (router + (E + E_shared) expert) + embedding + small.
    The weights on the path of one token: the same with E = the experts one token is sent to.
    Source: DeepSeek-V3 (arXiv 2412.19437), section 2.1 for shared experts; Kaplan et al. 2020 for the dense case.
    """
    mixture = router + (expert_count + shared_expert_count) * expert
    layers = layer_count * attention + dense_layer_count * dense_feed_forward
    return jnp.asarray(layers + (layer_count - dense_layer_count) * mixture + embedding + small)
