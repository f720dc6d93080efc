"""All-to-alls: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.all_to_all import all_to_all_time_s, distinct_destination_count, expert_dispatch_time_s

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def exchange(byte: float, ranks: float, per_domain: float, up: float = 10.0, out: float = 1.0, latency: float = 0.0):
    return float(
        all_to_all_time_s(
            byte=number(byte),
            group_ranks=number(ranks),
            rank_per_domain=number(per_domain),
            scale_up_byte_per_s=number(up),
            scale_out_byte_per_s=number(out),
            latency_s=number(latency),
        )
    )


def test_exchange_by_hand() -> None:
    # Eight ranks of one server, 80 B each: 7/8 of it leaves, at 10 B/s; and one latency.
    assert exchange(80, 8, 8, latency=0.5) == pytest.approx(7.5, rel=ROUNDING)
    # Two servers of four: 3/8 stays inside at 10 B/s, 4/8 crosses at 1 B/s.
    assert exchange(80, 8, 4) == pytest.approx(3 + 40, rel=ROUNDING)


def test_alone_sends_nothing() -> None:
    assert exchange(80, 1, 1, latency=0.5) == 0.0


def test_distinct_destinations_by_hand() -> None:
    # One choice meets one target; eight choices of eight: 8 x 8 / 12, exact 8 (1 - (7/8)^8) = 5.251.
    one = distinct_destination_count(destination_count=number(64), choice_count=number(1))
    assert float(one) == pytest.approx(64 / 64.5, rel=ROUNDING)
    eight = distinct_destination_count(destination_count=number(8), choice_count=number(8))
    assert float(eight) == pytest.approx(8 * (1 - (7 / 8) ** 8), rel=0.06)  # the rational form is within 6%


def dispatch(ranks: float, per_domain: float, up: float = 1e9, out: float = 1e8, latency: float = 0.0) -> float:
    return float(
        expert_dispatch_time_s(
            token=number(1000),
            hidden_width=number(1000),
            element_byte=number(2),
            experts_per_token=number(4),
            expert_ranks=number(ranks),
            rank_per_domain=number(per_domain),
            scale_up_byte_per_s=number(up),
            scale_out_byte_per_s=number(out),
            latency_s=number(latency),
        )
    )


def test_dispatch_inside_a_domain_by_hand() -> None:
    # 2 B x 1e6 to d = 8 x 4 / 10 = 3.2 distinct ranks, 7 of 8 of them others: 2e6 x 3.2 x 7/8 / 1e9.
    assert dispatch(8, 8) == pytest.approx(2e6 * 3.2 * 7 / 8 / 1e9, rel=ROUNDING)


def test_dispatch_across_domains_by_hand() -> None:
    # 16 ranks, 8 in a domain: inside d(16) = 16 x 4 / 18, of which 7/16 in one's own; outside d(2) = min(2, 2 x 4 / 4)
    # = 2 domains, half of them foreign.
    inside = 16 * 4 / 18 * 7 / 16 / 1e9
    outside = 2 * 0.5 / 1e8
    assert dispatch(16, 8) == pytest.approx(2e6 * (inside + outside), rel=ROUNDING)


def test_one_expert_rank_sends_nothing() -> None:
    assert dispatch(1, 1, latency=1.0) == 0.0


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10**8), st.floats(1, 1e12), st.floats(1, 100))
def test_more_bandwidth_is_never_slower(ranks: int, speed: float, factor: float) -> None:
    near = min(ranks, 4)
    assert exchange(1e9, ranks, near, up=speed * factor) <= exchange(1e9, ranks, near, up=speed)
    assert exchange(1e9, ranks, near, out=speed * factor) <= exchange(1e9, ranks, near, out=speed)
    assert dispatch(8, 4, up=speed * factor) <= dispatch(8, 4, up=speed)
    assert dispatch(8, 4, out=speed * factor) <= dispatch(8, 4, out=speed)
