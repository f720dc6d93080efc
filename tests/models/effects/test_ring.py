"""Rings, trees and their placement: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.ring import (
    gather_time_s,
    group_byte_per_s,
    group_rank_per_domain,
    ring_latency_s,
    tree_latency_s,
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
        gather_time_s(
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


HOPS = {"near_hop_s": 1.0, "far_hop_s": 10.0, "pod_hop_s": 1000.0}


@pytest.mark.parametrize(
    ("group", "per_domain", "pods", "hops"),
    [
        (8, 8, 1, 7),  # one server: seven hops inside
        (32, 8, 1, 28 + 3 * 10),  # four servers of eight: 28 inside, 3 between
        (16, 1, 1, 15 * 10),
        (64, 8, 2, 56 + 6 * 10 + 1000),  # eight servers, four a pod: 6 between, one across
        (6, 3, 1, 4 + 10),  # no power of two
        (1, 1, 1, 0),
    ],
)
def test_hops_of_a_ring_by_hand(group: float, per_domain: float, pods: float, hops: float) -> None:
    place = {"group_ranks": group, "rank_per_domain": per_domain, "pod_count": pods, **HOPS}
    got = ring_latency_s(**{name: number(value) for name, value in place.items()})
    assert float(got) == pytest.approx(hops, rel=ROUNDING)


@pytest.mark.parametrize(("group", "pods", "hops"), [(16, 1, 4 * 10), (64, 2, 6 * 10 + 1000), (1, 1, 0)])
def test_hops_of_a_tree_by_hand(group: float, pods: float, hops: float) -> None:
    """Doublings between servers of one rank each."""
    place = {"group_ranks": group, "pod_count": pods, "far_hop_s": 10.0, "pod_hop_s": 1000.0}
    got = tree_latency_s(**{name: number(value) for name, value in place.items()})
    assert float(got) == pytest.approx(hops, rel=ROUNDING)


def test_small_messages_are_slow_by_hand() -> None:
    # A ring of four at 2 B/s with hops of 1 s: messages of m = V / 4 reach m / (m + 2 x 1) of the bandwidth.
    for whole in (0.8, 8.0, 800.0):
        message = whole / 4
        assert 0.75 * whole / ring(whole, 4, 2.0, 3.0) == pytest.approx(2 * message / (message + 2), rel=ROUNDING)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10**8), st.integers(1, 1024), st.integers(1, 64))
def test_hops_grow_with_the_group(group: int, per_domain: int, factor: int) -> None:
    def ways(ranks: int) -> tuple[float, float]:
        place = {
            "group_ranks": number(ranks),
            "pod_count": number(1),
            "far_hop_s": number(10),
            "pod_hop_s": number(1000),
        }
        ring_s = ring_latency_s(rank_per_domain=number(min(ranks, per_domain)), near_hop_s=number(1), **place)
        return float(ring_s), float(tree_latency_s(**place))

    assert all(0 <= few <= many * (1 + ROUNDING) for few, many in zip(ways(group), ways(group * factor), strict=True))


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
