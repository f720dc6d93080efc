"""Attention: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.attention import (
    attended_token_mean,
    attention_forward_flop,
    fused_attention_time_s,
    unfused_attention_time_s,
)

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def attended(sequence: float, window: float, share: float, causal: float) -> float:
    return float(
        attended_token_mean(
            sequence_token=number(sequence),
            window_token=number(window),
            windowed_layer_fraction=number(share),
            is_causal=number(causal),
        )
    )


def test_full_attention_meets_every_key_and_causal_half() -> None:
    assert attended(4096, 4096, 0, 0) == 4096
    assert attended(4096, 4096, 0, 1) == 2048


def test_window_by_hand() -> None:
    # Window 128 of 1024, causal: the first 128 queries meet 64 on average, the other 896 meet 128.
    exact = (128 * 64 + 896 * 128) / 1024
    assert attended(1024, 128, 1, 1) == pytest.approx(exact, rel=ROUNDING)
    # Alternating layers (gpt-oss): the mean of windowed and full.
    assert attended(1024, 128, 0.5, 1) == pytest.approx((exact + 512) / 2, rel=ROUNDING)


def test_window_longer_than_the_sequence_changes_nothing() -> None:
    assert attended(1024, 1e6, 1, 1) == attended(1024, 1024, 0, 1) == 512


def test_flop_by_hand() -> None:
    # Korthikanti 2022, section 3: scores and values take 4 b s^2 h forward. GPT-3: s 2048, h 12288, b 1.
    flop = attention_forward_flop(
        token=number(2048), attended_token=number(2048), query_width=number(12288), value_width=number(12288)
    )
    assert float(flop) == 4 * 2048**2 * 12288


def fused(flop_per_s: float = 1e12, exponential_per_s: float = 1e10, work: float = 2.0) -> float:
    return float(
        fused_attention_time_s(
            flop=number(3e12),
            score_count=number(5e9),
            flop_per_s=number(flop_per_s),
            exponential_per_s=number(exponential_per_s),
            exponential_work_ratio=number(work),
        )
    )


def test_fused_by_hand() -> None:
    # 3e12 / 1e12 = 3 s of products, 2 x 5e9 / 1e10 = 1 s of exponentials.
    assert fused() == pytest.approx(4.0, rel=ROUNDING)
    assert fused(work=0.0) == pytest.approx(3.0, rel=ROUNDING)


def test_unfused_by_hand() -> None:
    # 3e12 / 1e12 = 3 s, and 4 passes x 2 B x 1e9 scores / 2e9 B/s = 4 s (Dao 2022, section 2: passes over s x s).
    time_s = unfused_attention_time_s(
        flop=number(3e12),
        score_count=number(1e9),
        flop_per_s=number(1e12),
        hbm_byte_per_s=number(2e9),
        score_pass_count=number(4),
        score_byte=number(2),
    )
    assert float(time_s) == pytest.approx(7.0, rel=ROUNDING)


@settings(deadline=None, max_examples=30)
@given(st.floats(1, 1e5), st.floats(1, 1e5), st.floats(0, 1), st.sampled_from([0.0, 1.0]))
def test_never_more_keys_than_the_sequence_and_a_wider_window_never_fewer(
    sequence: float, window: float, share: float, causal: float
) -> None:
    narrow, wide = attended(sequence, window, share, causal), attended(sequence, 2 * window, share, causal)
    assert 0 < narrow <= wide * (1 + ROUNDING)
    assert wide <= sequence * (1 + ROUNDING)


@settings(deadline=None, max_examples=30)
@given(st.floats(1e9, 1e16), st.floats(1e6, 1e14), st.floats(1, 100))
def test_faster_units_are_never_slower(rate: float, exponentials: float, factor: float) -> None:
    assert fused(rate * factor, exponentials) <= fused(rate, exponentials)
    assert fused(rate, exponentials * factor) <= fused(rate, exponentials)
