"""Overlap: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.overlap import host_bound_time_s, overlapped_time_s, partly_hidden_time_s

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def host(device: float, launch: float) -> float:
    return float(host_bound_time_s(device_s=number(device), host_s=number(launch)))


def overlapped(compute: float, transfer: float, exposed: float) -> float:
    return float(
        overlapped_time_s(compute_s=number(compute), transfer_s=number(transfer), exposed_fraction=number(exposed))
    )


def hidden(transfer: float, cover: float, exposed: float) -> float:
    return float(
        partly_hidden_time_s(transfer_s=number(transfer), cover_s=number(cover), exposed_fraction=number(exposed))
    )


def test_host_by_hand() -> None:
    assert host(3, 0) == pytest.approx(3, rel=ROUNDING)
    assert host(1, 2) == pytest.approx(17**0.25, rel=ROUNDING)
    assert host(1, 1) == pytest.approx(2**0.25, rel=ROUNDING)


def test_overlap_by_hand() -> None:
    # (1^4 + 2^4)^(1/4) + 0.25 x 1
    assert overlapped(1, 2, 0.25) == pytest.approx(17**0.25 + 0.25, rel=ROUNDING)
    assert overlapped(5, 0, 0.25) == pytest.approx(5, rel=ROUNDING)


def test_partly_hidden_by_hand() -> None:
    # Of 10 s, 40% always show; of the other 6 s what 4 s of backward pass do not cover.
    assert hidden(10, 4, 0.4) == pytest.approx(4 + 2, rel=ROUNDING)
    assert hidden(10, 100, 0.4) == pytest.approx(4, rel=ROUNDING)
    assert hidden(10, 100, 1.0) == pytest.approx(10, rel=ROUNDING)  # reduced after the backward pass: all of it
    assert hidden(0, 4, 0.4) == 0


@settings(deadline=None, max_examples=40)
@given(st.floats(1e-9, 1e3), st.floats(1e-9, 1e3), st.floats(0, 1), st.floats(1, 10))
def test_never_below_the_larger_never_above_the_sum(a: float, b: float, exposed: float, factor: float) -> None:
    assert max(a, b) * (1 - 1e-9) <= host(a, b) <= (a + b) * (1 + 1e-9)
    assert overlapped(a, b, exposed) >= max(a, b) * (1 - 1e-9)
    assert overlapped(a, b * factor, exposed) >= overlapped(a, b, exposed) * (1 - 1e-9)
    assert 0 <= hidden(a, b, exposed) <= a * (1 + 1e-9)
    assert hidden(a, b * factor, exposed) <= hidden(a, b, exposed) * (1 + 1e-9)
