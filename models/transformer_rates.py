"""What a point reaches in practice: the rates of its accelerator and links, and the two kernels all else is made of."""

from dataclasses import dataclass

import jax.numpy as jnp

from models.effects.roofline import linear_rate_flop_per_s, matmul_padding_ratio, matmul_time_s
from models.quantities import Quantity, Scalar
from models.transformer_point import Accelerator, Constants, Links, Software, Transformer, TransformerLayout


@dataclass(frozen=True)
class Point:
    """All that a step depends on, in one hand."""

    accelerator: Accelerator
    links: Links
    transformer: Transformer
    layout: TransformerLayout
    software: Software
    constants: Constants


@dataclass(frozen=True)
class Rates:
    """What the accelerator and its links reach in practice."""

    linear_flop_per_s: Scalar
    sixteen_bit_flop_per_s: Scalar
    flash_flop_per_s: Scalar
    exponential_per_s: Scalar
    hbm_byte_per_s: Scalar
    scale_up_byte_per_s: Scalar
    scale_out_byte_per_s: Scalar
    top_byte_per_s: Scalar


def rates(point: Point) -> Rates:
    """Return the rates: nominal ones times what is achievable, sustained and allowed by the power limit."""
    a, c, links = point.accelerator, point.constants, point.links
    powered = a.power_ratio**c.power_exponent
    sixteen = a.achievable_matmul_fraction * a.peak_16bit_flop_per_s * powered
    return Rates(
        linear_flop_per_s=linear_rate_flop_per_s(
            peak_16bit_flop_per_s=a.peak_16bit_flop_per_s * powered,
            peak_linear_flop_per_s=a.peak_linear_flop_per_s * powered,
            achievable_fraction=a.achievable_matmul_fraction,
            sustained_fraction=c.sustained_matmul_fraction,
            low_precision_gain_fraction=1.0 - point.software.is_4bit * (1.0 - c.four_bit_gain_fraction),
        ),
        sixteen_bit_flop_per_s=c.sustained_matmul_fraction * sixteen,
        flash_flop_per_s=c.flash_attention_fraction * sixteen,
        exponential_per_s=a.exponential_per_s * powered,
        hbm_byte_per_s=a.hbm_byte_per_s * c.hbm_achieved_fraction,
        scale_up_byte_per_s=links.scale_up_byte_per_s * c.scale_up_achieved_fraction,
        scale_out_byte_per_s=links.scale_out_byte_per_s * c.scale_out_achieved_fraction,
        top_byte_per_s=links.top_byte_per_s * c.scale_out_achieved_fraction,
    )


def tiled_matmul_s(
    point: Point,
    rate: Rates,
    *,
    rows: Quantity,
    inner: Quantity,
    columns: Quantity,
    groups: Quantity | None = None,
    is_16bit: bool = False,
) -> Scalar:
    """Return the time of a matmul (or of equal groups of them that share the accelerator) with its tile losses."""
    a, c = point.accelerator, point.constants
    count = jnp.ones(()) if groups is None else groups
    ratio = matmul_padding_ratio(
        row_count=rows,
        column_count=columns,
        tile_width=c.matmul_tile_width,
        processor_count=a.processor_count / jnp.minimum(count, a.processor_count),
        wave_loss_fraction=c.wave_loss_fraction,
    )
    return matmul_time_s(
        row_count=rows,
        inner_count=inner,
        column_count=columns,
        group_count=count,
        padding_ratio=ratio,
        flop_per_s=rate.sixteen_bit_flop_per_s if is_16bit else rate.linear_flop_per_s,
        hbm_byte_per_s=rate.hbm_byte_per_s,
        input_byte=c.activation_byte if is_16bit else point.software.operand_byte,
        output_byte=c.activation_byte,
    )
