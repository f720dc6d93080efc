"""Failures and long links, worked by hand and at their limits."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.reliability import checkpoint_interval_s, goodput_fraction
from models.effects.sites import multi_site_step_time_s, site_exchange_time_s, token_penalty_ratio

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def goodput(count: float, mtbf_s: float = 1.8e8, byte: float = 1e9, rate: float = 1e8, restart_s: float = 600.0):
    return float(
        goodput_fraction(
            accelerator_count=number(count),
            accelerator_mtbf_s=number(mtbf_s),
            checkpoint_byte=number(byte),
            checkpoint_byte_per_s=number(rate),
            restart_time_s=number(restart_s),
        )
    )


def test_interval_by_hand() -> None:
    # C = 8 s, M = 3,600 s: sqrt(2 x 8 x 3600) = 240 s
    assert float(checkpoint_interval_s(checkpoint_time_s=number(8), cluster_mtbf_s=number(3600))) == pytest.approx(240)


def test_goodput_by_hand() -> None:
    # M = 3.6e6 / 1000 = 3,600 s, C = 8 s, T = 240 s, R = 36 s: w = 8/240 + 240/7200 + 36/3600 = 0.0766...
    expected = 1 / (1 + 8 / 240 + 240 / 7200 + 36 / 3600)
    assert goodput(1000, mtbf_s=3.6e6, byte=8e8, rate=1e8, restart_s=36.0) == pytest.approx(expected, rel=ROUNDING)


def test_no_failures_no_loss() -> None:
    assert goodput(16384, mtbf_s=1e30, restart_s=0.0) == pytest.approx(1.0, abs=1e-9)
    assert goodput(16384, byte=0.0, restart_s=0.0) == 1.0


@settings(deadline=None, max_examples=30)
@given(count=st.floats(1, 1e7), more=st.floats(1, 100))
def test_more_accelerators_never_fail_less(count: float, more: float) -> None:
    assert goodput(count * more) <= goodput(count) * (1 + ROUNDING)


def test_exchange_by_hand() -> None:
    # 2 sites, 4e11 B, 1e10 B/s, 50 ms: each sends 2 x 1/2 x 4e11 = 40 s, and two hops 0.1 s
    time_s = site_exchange_time_s(
        parameter_byte=number(4e11),
        site_count=number(2),
        site_one_way_byte_per_s=number(1e10),
        site_latency_s=number(0.05),
        compression_ratio=number(1),
    )
    assert float(time_s) == pytest.approx(40.1, rel=ROUNDING)


def test_one_site_exchanges_nothing() -> None:
    time_s = site_exchange_time_s(
        parameter_byte=number(4e11),
        site_count=number(1),
        site_one_way_byte_per_s=number(1e3),
        site_latency_s=number(1),
        compression_ratio=number(1),
    )
    assert float(time_s) == 0.0


@pytest.mark.parametrize(
    ("exchange_s", "local_steps", "hidden", "expected"),
    [(40.0, 1, 0.0, 50.0), (40.0, 100, 0.0, 10.4), (40.0, 100, 1.0, 10.0), (40.0, 1, 1.0, 40.0)],
)
def test_step_by_hand(exchange_s: float, local_steps: float, hidden: float, expected: float) -> None:
    time_s = multi_site_step_time_s(
        site_step_time_s=number(10.0),
        exchange_time_s=number(exchange_s),
        local_step_count=number(local_steps),
        hidden_fraction=number(hidden),
    )
    assert float(time_s) == pytest.approx(expected, rel=ROUNDING)


def test_synchronous_training_pays_no_tokens() -> None:
    assert float(token_penalty_ratio(local_step_count=number(1), penalty_per_doubling=number(0.01))) == 1.0
    assert float(token_penalty_ratio(local_step_count=number(8), penalty_per_doubling=number(0.01))) == pytest.approx(
        1.03
    )
