"""Transfers between layers: shares worked by hand."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.pipeline_expert import (
    expert_latency_shares,
    expert_transfer_shares,
    joint_transfer_shares,
    pipeline_transfer_shares,
)

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def ranks(*values: int):
    return tuple(number(value) for value in values)


def shares(pipeline: tuple[int, ...], interleave: int, layers: int):
    return pipeline_transfer_shares(
        pipeline_ranks=ranks(*pipeline), interleave_count=number(interleave), layer_count=number(layers)
    )


def test_pipeline_shares_by_hand() -> None:
    # 9 layers, 4 stages on one level: 8 interfaces, 3 of them between stages, 5 inside
    result = shares((4,), 1, 9)
    assert float(result.none) == pytest.approx(5 / 8, rel=ROUNDING)
    assert float(result.by_level[0]) == pytest.approx(3 / 8, rel=ROUNDING)


def test_pipeline_over_two_levels_by_hand() -> None:
    # 2 ranks below, 3 above, 13 layers: 12 interfaces; below 3 (2-1) = 3 crossings, above 3 - 1 = 2, inside 7
    result = shares((2, 3), 1, 13)
    assert [float(each) * 12 for each in result.by_level] == pytest.approx([3, 2], rel=ROUNDING)
    assert float(result.none) * 12 == pytest.approx(7, rel=ROUNDING)


def test_one_stage_moves_nothing() -> None:
    result = shares((1, 1), 1, 10)
    assert float(result.none) == 1.0
    assert [float(each) for each in result.by_level] == [0.0, 0.0]


def test_expert_shares_by_hand() -> None:
    # 2 experts below, 4 above: same rank 1/8, same group 1/4 - 1/8, elsewhere 1 - 1/4
    result = expert_transfer_shares(ranks(2, 4))
    assert float(result.none) == pytest.approx(1 / 8, rel=ROUNDING)
    assert [float(each) for each in result.by_level] == pytest.approx([1 / 8, 3 / 4], rel=ROUNDING)


def test_expert_latency_is_that_of_the_highest_level_used() -> None:
    assert [float(each) for each in expert_latency_shares(ranks(2, 4)).by_level] == [0.0, 1.0]
    assert [float(each) for each in expert_latency_shares(ranks(8, 1)).by_level] == [1.0, 0.0]
    assert float(expert_latency_shares(ranks(1, 1)).none) == 1.0


@settings(deadline=None, max_examples=50)
@given(
    pipeline=st.tuples(st.sampled_from([1, 2, 4]), st.sampled_from([1, 3, 8])),
    expert=st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 5])),
)
def test_joint_shares_add_up(pipeline: tuple[int, int], expert: tuple[int, int]) -> None:
    first, second = shares(pipeline, 1, 64), expert_transfer_shares(ranks(*expert))
    joint = sum(float(each) for each in joint_transfer_shares(first, second))
    assert joint + float(first.none) * float(second.none) == pytest.approx(1.0, rel=1e-9)
