"""Matmul roofline: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.roofline import linear_rate_flop_per_s, matmul_padding_ratio, matmul_time_s

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def padding(rows: float, columns: float, processors: float = 100.0, loss: float = 0.5) -> float:
    return float(
        matmul_padding_ratio(
            row_count=number(rows),
            column_count=number(columns),
            tile_width=number(128),
            processor_count=number(processors),
            wave_loss_fraction=number(loss),
        )
    )


def test_whole_tiles_and_whole_waves_lose_nothing() -> None:
    # 1280 x 1280 in tiles of 128: 10 x 10 = 100 tiles on 100 processors, one full wave.
    assert padding(1280, 1280) == pytest.approx(1.0, rel=ROUNDING)


def test_padded_tiles_by_hand() -> None:
    # 130 rows need 2 tiles of 128 (256 rows): 256 x 12800 / (130 x 12800); 2 x 100 tiles are two full waves.
    assert padding(130, 12800) == pytest.approx(256 / 130, rel=ROUNDING)


def test_last_wave_by_hand() -> None:
    # 11 x 10 = 110 tiles on 100 processors: 2 waves for 1.1; half of the loss is paid: 1 + (2/1.1 - 1) / 2.
    # NVIDIA, Matrix Multiplication Background guide, section on wave quantisation.
    assert padding(1408, 1280) == pytest.approx(1 + (2 / 1.1 - 1) / 2, rel=ROUNDING)
    assert padding(1408, 1280, loss=0.0) == pytest.approx(1.0, rel=ROUNDING)


def time_s(m: float, k: float, n: float, groups: float = 1.0, hbm: float = 1e12, rate: float = 1e14) -> float:
    return float(
        matmul_time_s(
            row_count=number(m),
            inner_count=number(k),
            column_count=number(n),
            group_count=number(groups),
            padding_ratio=number(1),
            flop_per_s=number(rate),
            hbm_byte_per_s=number(hbm),
            input_byte=number(1),
            output_byte=number(2),
        )
    )


def test_compute_bound_by_hand() -> None:
    # 2 x 1000^3 / 1e14 = 20 us; traffic (2 x 1e6 x 1 B + 1e6 x 2 B) / 1e12 = 4 us is hidden.
    assert time_s(1000, 1000, 1000) == pytest.approx(2e-5, rel=ROUNDING)


def test_memory_bound_by_hand() -> None:
    # One row: (1000 + 1e6) x 1 B + 1000 x 2 B = 1.003e6 B at 1e12 B/s; the work takes 0.02 us.
    assert time_s(1, 1000, 1000) == pytest.approx(1.003e-6, rel=ROUNDING)


def test_groups_follow_one_another() -> None:
    assert time_s(64, 512, 256, groups=8) == pytest.approx(8 * time_s(64, 512, 256), rel=ROUNDING)


def test_infinite_memory_bandwidth_leaves_the_arithmetic() -> None:
    assert time_s(1, 1000, 1000, hbm=1e300) == pytest.approx(2e6 / 1e14, rel=ROUNDING)


def test_rate_by_hand() -> None:
    # e u [P16 + g (Pq - P16)] = 0.9 x 0.8 x [1e15 + 0.5 x (3e15 - 1e15)] = 1.44e15.
    rate = linear_rate_flop_per_s(
        peak_16bit_flop_per_s=number(1e15),
        peak_linear_flop_per_s=number(3e15),
        achievable_fraction=number(0.8),
        sustained_fraction=number(0.9),
        low_precision_gain_fraction=number(0.5),
    )
    assert float(rate) == pytest.approx(1.44e15, rel=ROUNDING)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 1000))
def test_padding_never_speeds_up(rows: int, columns: int, processors: int) -> None:
    assert padding(rows, columns, processors) >= 1 - ROUNDING


@settings(deadline=None, max_examples=30)
@given(st.floats(1, 1e5), st.floats(1, 1e5), st.floats(1e9, 1e14), st.floats(1e10, 1e17), st.floats(1, 100))
def test_more_bandwidth_or_rate_is_never_slower(m: float, n: float, hbm: float, rate: float, factor: float) -> None:
    base = time_s(m, 777, n, hbm=hbm, rate=rate)
    assert time_s(m, 777, n, hbm=hbm * factor, rate=rate) <= base
    assert time_s(m, 777, n, hbm=hbm, rate=rate * factor) <= base
