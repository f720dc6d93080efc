"""Matmuls as a roofline of sustained rate and memory traffic, with the losses of tiles and waves."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def matmul_padding_ratio(
    *,
    row_count: Quantity,
    column_count: Quantity,
    tile_width: Quantity,
    processor_count: Quantity,
    wave_loss_fraction: Quantity,
) -> Scalar:
    """Return executed over useful work of a tiled matmul: padded edge tiles, a part-empty last wave.

    ratio = tiles/(M N/t^2) x [1 + x (ceil(w)/w - 1)], tiles = ceil(M/t) ceil(N/t), w = tiles / processors.
    x (wave_loss_fraction) < 1 because stream-K and smaller tail tiles recover part of the loss.
    Source: NVIDIA, Matrix Multiplication Background guide. Ignores: tile shape choice per size.
    """
    tile_count = jnp.ceil(row_count / tile_width) * jnp.ceil(column_count / tile_width)
    wave_count = tile_count / processor_count
    padded = tile_count * tile_width * tile_width / (row_count * column_count)
    return padded * (1 + wave_loss_fraction * (jnp.ceil(wave_count) / wave_count - 1))


def matmul_time_s(
    *,
    row_count: Quantity,
    inner_count: Quantity,
    column_count: Quantity,
    group_count: Quantity,
    padding_ratio: Quantity,
    flop_per_s: Quantity,
    hbm_byte_per_s: Quantity,
    input_byte: Quantity,
    output_byte: Quantity,
) -> Scalar:
    """Return the time of `group_count` equal matmuls (M x K)(K x N): roofline of tensor rate and HBM traffic.

    t = g max(2 M K N q / R, [input_byte (M K + K N) + output_byte M N] / B). q = padding ratio.
    Valid when: operands are read once (L2 large enough for one tile column). Source: Williams 2009 (roofline).
    Ignores: launch (see layer_host_bound_time_s).
    """
    compute_s = 2 * row_count * inner_count * column_count * padding_ratio / flop_per_s
    traffic_byte = input_byte * (row_count + column_count) * inner_count + output_byte * row_count * column_count
    return group_count * jnp.maximum(compute_s, traffic_byte / hbm_byte_per_s)


def linear_rate_flop_per_s(
    *,
    peak_16bit_flop_per_s: Quantity,
    peak_linear_flop_per_s: Quantity,
    achievable_fraction: Quantity,
    sustained_fraction: Quantity,
    low_precision_gain_fraction: Quantity,
) -> Scalar:
    """Return the rate that large matmuls reach in training: e u [P16 + g (Pq - P16)].

    u = published achievable fraction of the chip, e = fraction of that kept inside a training step (clocks under load,
    shapes, interference), Pq = dense peak of the precision of the linear layers, g = share of the gap to Pq realised
    (1 for 8 bit). Source: stas00 MAMF table for u; e, g fitted.
    """
    return (
        sustained_fraction
        * achievable_fraction
        * (peak_16bit_flop_per_s + low_precision_gain_fraction * (peak_linear_flop_per_s - peak_16bit_flop_per_s))
    )
