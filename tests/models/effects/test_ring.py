"""Rings and their placement: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.ring import (
    distinct_destination_count,
    expert_dispatch_time_s,
    group_byte_per_s,
    group_rank_per_domain,
    ring_time_s,
)

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def near(group: float, inner: float, domain: float) -> float:
    return float(
        group_rank_per_domain(group_ranks=number(group), inner_ranks=number(inner), domain_ranks=number(domain))
    )


def bandwidth(group: float, per_domain: float, up: float = 400.0, out: float = 50.0) -> float:
    return float(
        group_byte_per_s(
            group_ranks=number(group),
            rank_per_domain=number(per_domain),
            scale_up_byte_per_s=number(up),
            scale_out_byte_per_s=number(out),
        )
    )


def ring(byte: float, ranks: float, bandwidth_byte_per_s: float, latency: float = 0.0) -> float:
    return float(
        ring_time_s(
            byte=number(byte),
            group_ranks=number(ranks),
            group_bandwidth_byte_per_s=number(bandwidth_byte_per_s),
            latency_s=number(latency),
        )
    )


@pytest.mark.parametrize(
    ("group", "inner", "domain", "expected"),
    [
        (8, 1, 8, 8),  # tensor ranks fill a server
        (16, 1, 8, 8),  # twice a server: eight of sixteen share one
        (32, 4, 8, 2),  # data ranks behind four tensor ranks: two in a server
        (32, 8, 8, 1),  # behind eight: one
        (3, 2, 8, 3),  # neither a power of two nor a whole domain: three neighbours two apart need six
        (6, 3, 8, 8 / 3),  # a group that straddles the domain: the mean number of its ranks in one
        (4, 100, 8, 1),
    ],
)
def test_placement_by_hand(group: float, inner: float, domain: float, expected: float) -> None:
    assert near(group, inner, domain) == pytest.approx(expected, rel=ROUNDING)


def test_bandwidth_by_hand() -> None:
    assert bandwidth(8, 8) == 400  # inside
    assert bandwidth(32, 2) == 100  # two ports out of the server
    assert bandwidth(64, 8) == 400  # eight ports, as fast as the links inside
    assert bandwidth(32, 1) == 50


def test_ring_by_hand() -> None:
    # Reduce-scatter of 8 GB over 4 ranks at 2 GB/s: 3/4 x 8 / 2 = 3 s (Thakur 2005, section 4), and one latency.
    assert ring(8e9, 4, 2e9, 0.5) == pytest.approx(3.5, rel=ROUNDING)


def test_one_rank_sends_nothing() -> None:
    assert ring(8e9, 1, 2e9, 0.5) == 0.0


def test_infinite_network_equals_no_network() -> None:
    assert ring(8e9, 64, 1e300) == pytest.approx(0.0, abs=1e-200)


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
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 1024), st.floats(1, 100))
def test_a_larger_domain_is_never_slower(group: int, inner: int, domain: int, factor: float) -> None:
    small, large = near(group, inner, domain), near(group, inner, domain * factor)
    assert 1 <= small <= large <= group
    assert bandwidth(group, large) >= bandwidth(group, small)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10**8), st.floats(1, 1e12), st.floats(1, 100))
def test_more_bandwidth_is_never_slower(ranks: int, speed: float, factor: float) -> None:
    assert ring(1e9, ranks, speed * factor) <= ring(1e9, ranks, speed)
    assert dispatch(8, 4, up=speed * factor) <= dispatch(8, 4, up=speed)
    assert dispatch(8, 4, out=speed * factor) <= dispatch(8, 4, out=speed)
