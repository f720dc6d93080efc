"""Memory of an accelerator beyond the reference model: sharded state, activations, logits."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def state_byte(
    *,
    parameter_count: Quantity,
    shard_ranks: Quantity,
    sharding_stage: Quantity,
    weight_byte: Quantity,
    gradient_byte: Quantity,
    optimizer_byte: Quantity,
) -> Scalar:
    """Return the bytes of weights, gradients and optimizer states of the parameters one rank holds, by ZeRO stage.

    M = P [ w / s(3) + g / s(2) + o / s(1) ], s(k) = shard_ranks when stage >= k else 1.
    Source: Rajbhandari 2020 (ZeRO) sec. 5. Ignores: buckets (see constants), gathered layers (see gathered_layer_byte).
    """
    return parameter_count * (
        weight_byte / jnp.where(sharding_stage >= 3, shard_ranks, 1)
        + gradient_byte / jnp.where(sharding_stage >= 2, shard_ranks, 1)
        + optimizer_byte / jnp.where(sharding_stage >= 1, shard_ranks, 1)
    )


def layer_activation_byte(
    *,
    token: Quantity,
    hidden_width: Quantity,
    query_width: Quantity,
    key_value_width: Quantity,
    ffn_width: Quantity,
    ffn_matrix_count: Quantity,
    tensor_ranks: Quantity,
    sequence_ranks: Quantity,
    has_dropout: Quantity,
    element_byte: Quantity,
) -> Scalar:
    """Return the bytes of stored activations of one layer without recompute and without the score matrix.

    bytes = 2 T [ 4 h/sp + (2 q + 2 kv + matrices x f)/tp ] + dropout: 2 T h/sp.
    With GELU, q = kv = h and f = 4h: s b h (8 + 2 + 24/t).
    4 h: two norm inputs, two block inputs; 2 q + 2 kv: q, k, v, output; 2 f: GELU input and output (3 f SwiGLU: gate,
    up, product). Dropout keeps two 1-byte masks. Source: Korthikanti 2022 eq. 1-4. Ignores: log-sum-exp rows.
    """
    replicated = (4 * element_byte + 2 * has_dropout) * hidden_width / sequence_ranks
    split = element_byte * (2 * query_width + 2 * key_value_width + ffn_matrix_count * ffn_width) / tensor_ranks
    return token * (replicated + split)


def score_activation_byte(
    *, score_count: Quantity, element_byte: Quantity, has_dropout: Quantity, dropout_byte: Quantity
) -> Scalar:
    """Return the bytes of stored score matrices of unfused attention.

    Softmax output, and with dropout its mask (1) and output (2).

    5 bytes per score with dropout (Korthikanti 2022 eq. 1: 5 a s / h), 2 without. The caller multiplies by is_unfused.
    """
    return (element_byte + has_dropout * dropout_byte) * score_count


def expert_activation_byte(
    *,
    routed_token: Quantity,
    hidden_width: Quantity,
    expert_ffn_width: Quantity,
    ffn_matrix_count: Quantity,
    element_byte: Quantity,
) -> Scalar:
    """Return the bytes of stored activations of routed experts in one layer.

    Dispatched input h, gate, up, product 3 f.

    bytes = element R (h + matrices f), R = tokens x experts per token. Source: counting; Megatron-Core MoE.
    Valid when: probabilities are applied before the last matmul (Megatron-Core since 2025), so that its output is not
    kept. Ignores: routing maps and probabilities.
    """
    return element_byte * routed_token * (hidden_width + ffn_matrix_count * expert_ffn_width)


def gathered_layer_byte(
    *, layer_parameter_count: Quantity, gathered_layer_count: Quantity, element_byte: Quantity
) -> Scalar:
    """Return the bytes of unsharded weights and gradients alive under full sharding: layers x 2 x bytes x P_layer.

    Two layers when the next is prefetched, half of one when a compiler gathers each matrix as it is needed (XLA).
    Source: FSDP paper (Zhao 2023) sec. 4.2, backward prefetch.
    """
    return gathered_layer_count * 2 * element_byte * layer_parameter_count


def logit_byte(
    *, token: Quantity, vocabulary_size: Quantity, tensor_ranks: Quantity, byte_per_logit: Quantity
) -> Scalar:
    """Return the bytes of the logits and their gradient at the peak: bytes x T V / tp.

    Source: counting; byte_per_logit by software (fused 4).
    """
    return byte_per_logit * token * vocabulary_size / tensor_ranks
