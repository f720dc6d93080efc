"""Collectives: worked by hand, and at their limits."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.collectives import (
    allreduce_latency_s,
    allreduce_time_s,
    point_to_point_time_s,
    ranks_above,
)
from models.effects.data_parallel import gradient_allreduce_latency_s, gradient_allreduce_time_s
from models.point import NetworkLevel

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def level(bandwidth: float = 1e9, latency: float = 1e-6, ranks: float = 8.0) -> NetworkLevel:
    return NetworkLevel(group_ranks=number(ranks), one_way_byte_per_s=number(bandwidth), latency_s=number(latency))


def test_allreduce_by_hand() -> None:
    # Four ranks, 1 GB on each, 1 GB/s one way: 2 x 3/4 x 1 GB = 1.5 s. total_byte counts one copy a group.
    time_s = allreduce_time_s(
        ranks=number(4.0), total_byte=number(1e9), accelerator_count=number(4.0), level=level(1e9)
    )
    assert float(time_s) == pytest.approx(1.5, rel=ROUNDING)


def test_point_to_point_by_hand() -> None:
    time_s = point_to_point_time_s(total_byte=number(6e9), accelerator_count=number(3.0), level=level(2e9))
    assert float(time_s) == pytest.approx(1.0, rel=ROUNDING)


def test_one_rank_moves_nothing() -> None:
    one = number(1.0)
    assert float(allreduce_time_s(ranks=one, total_byte=number(1e9), accelerator_count=one, level=level())) == 0.0
    assert float(allreduce_latency_s(ranks=one, repeats=number(10.0), level=level())) == 0.0


def test_infinite_bandwidth_takes_no_time() -> None:
    wide = level(float("inf"))
    time_s = allreduce_time_s(ranks=number(64.0), total_byte=number(1e12), accelerator_count=number(64.0), level=wide)
    assert float(time_s) == 0.0


def test_ranks_above_by_hand() -> None:
    ranks = (number(2.0), number(3.0), number(5.0))
    assert [float(ranks_above(ranks, k)) for k in range(3)] == [15.0, 5.0, 1.0]


def test_gradient_allreduce_takes_the_slowest_level() -> None:
    # 2 ranks below (100 B/s), 4 above (10 B/s), 8 accelerators, 8 bytes of parameters
    # below: 2 (2-1) x 8 x 4 / (8 x 100) = 0.08 s; above: 2 (4-1) x 8 / (8 x 10) = 0.6 s
    network = (level(100.0), level(10.0))
    time_s = gradient_allreduce_time_s(
        parameter_byte=number(8.0),
        data_ranks=(number(2.0), number(4.0)),
        accelerator_count=number(8.0),
        network=network,
    )
    assert float(time_s) == pytest.approx(0.6, rel=ROUNDING)
    latency_s = gradient_allreduce_latency_s(data_ranks=(number(2.0), number(4.0)), network=network)
    assert float(latency_s) == pytest.approx(4e-6, rel=ROUNDING)  # two traversals on each of two levels


@settings(deadline=None, max_examples=30)
@given(ranks=st.integers(2, 4096), faster=st.floats(1.0, 100.0))
def test_more_bandwidth_is_never_slower(ranks: int, faster: float) -> None:
    arguments = {"ranks": number(ranks), "total_byte": number(1e9), "accelerator_count": number(ranks)}
    slow = allreduce_time_s(**arguments, level=level(1e9))
    fast = allreduce_time_s(**arguments, level=level(1e9 * faster))
    assert float(fast) <= float(slow)
