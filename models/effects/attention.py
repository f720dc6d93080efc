"""Attention: how many keys a query meets, the work, and the kernels that do it."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def attended_token_mean(
    *, sequence_token: Quantity, window_token: Quantity, windowed_layer_fraction: Quantity, is_causal: Quantity
) -> Scalar:
    """Return the mean number of keys that one query meets.

    Full s, causal s/2, window w (causal: w - w^2/(2s), with w <= s).

    Mean over layers: (1 - f) full + f windowed. Source: counting. Ignores: block rounding of the mask.
    """
    window = jnp.minimum(window_token, sequence_token)
    full = sequence_token * (1 - is_causal / 2)
    windowed = window - is_causal * window * window / (2 * sequence_token)
    return full + windowed_layer_fraction * (windowed - full)


def attention_forward_flop(
    *, token: Quantity, attended_token: Quantity, query_width: Quantity, value_width: Quantity
) -> Scalar:
    """Return the FLOP of the score and value products of one layer forward: 2 T a (q + v), a = keys met per query.

    Source: Korthikanti 2022 sec. 3 (4 s^2 h for full attention). Ignores: softmax (see attention_time_s).
    """
    return 2 * token * attended_token * (query_width + value_width)


def fused_attention_time_s(
    *,
    flop: Quantity,
    score_count: Quantity,
    flop_per_s: Quantity,
    exponential_per_s: Quantity,
    exponential_work_ratio: Quantity,
) -> Scalar:
    """Return the time of flash-style attention: tensor work plus the exponentials of the special-function units.

    t = F / R + x S / X, S = scores computed, X = exponentials per second of the chip, x = work per score over one exp.
    Source: Shah 2024 (FlashAttention-3) sec. 1: exp throughput limits Hopper; Dao 2022/2023. Ignores: short sequences.
    """
    return flop / flop_per_s + exponential_work_ratio * score_count / exponential_per_s


def unfused_attention_time_s(
    *,
    flop: Quantity,
    score_count: Quantity,
    flop_per_s: Quantity,
    hbm_byte_per_s: Quantity,
    score_pass_count: Quantity,
    score_byte: Quantity,
) -> Scalar:
    """Return the time of attention by separate kernels: two batched matmuls and passes over the score matrix.

    t = F / R + passes x bytes x S / B; S counts the full matrix (a causal mask is not skipped).
    Valid when: before FlashAttention (2022), or shapes it refused. Source: Dao 2022 sec. 2. Ignores: dropout variants.
    """
    return flop / flop_per_s + score_pass_count * score_byte * score_count / hbm_byte_per_s
