"""The reference model's layouts against brute force: the rules written out once more, one candidate at a time."""

from itertools import product
from math import gcd, isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.layouts import (
    SearchRules,
    Shape,
    divisors,
    layouts,
    ordered_factorisations,
    prime_powers,
    used_group_ranks,
)

RULES = SearchRules(tensor_ff_ratio_maximum=4, interleaved_microbatch_choices=4, zero_bubble_microbatch_choices=1)
SHAPES = [
    Shape(layer_count=12, d_model=96, d_ff=384, expert_count=1, global_batch_token=4608, sequence_token=32),
    Shape(layer_count=10, d_model=64, d_ff=256, expert_count=6, global_batch_token=3072, sequence_token=64),
    Shape(layer_count=7, d_model=50, d_ff=70, expert_count=1, global_batch_token=900, sequence_token=10),
]


def all_divisors(number: int) -> list[int]:
    return [k for k in range(1, number + 1) if number % k == 0]


def brute_force(shape: Shape, accelerators: int) -> set[tuple[int, ...]]:
    experts = gcd(accelerators, shape.expert_count)
    rest = accelerators // experts
    found = set()
    for pipeline, data in product(all_divisors(rest), repeat=2):
        if rest % (pipeline * data) or shape.layer_count % pipeline or shape.global_batch_token % data:
            continue
        tensor = rest // (pipeline * data)
        if (shape.d_model * shape.d_ff) % tensor:
            continue
        token = shape.global_batch_token // (shape.expert_count * data)
        choices = all_divisors(token)
        interleave = 1 if pipeline == 1 else shape.layer_count // pipeline
        schedules = [(m, interleave, 0) for m in [m for m in choices if m >= pipeline][:4]]
        schedules += [(m, 1, 1) for m in [m for m in choices if m >= 2 * pipeline][:1]]
        for over_ff in all_divisors(tensor):
            over_model = tensor // over_ff
            root = isqrt(tensor)
            if not root <= over_ff <= 4 * root or shape.d_ff % over_ff or shape.d_model % over_model:
                continue
            for microbatches, chunks, zero in schedules:
                found.add((data, over_model, over_ff, pipeline, experts, microbatches, chunks, zero))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("accelerators", [1, 2, 6, 12, 24, 36, 48, 60, 96])
def test_all_layouts_are_there(shape: Shape, accelerators: int) -> None:
    columns = layouts(shape, accelerators, RULES)
    names = ("data_ranks", "tensor_model_ranks", "tensor_ff_ranks", "pipeline_ranks", "expert_ranks")
    names += ("microbatch_count", "interleave_count", "is_zero_bubble")
    got = [tuple(int(value) for value in row) for row in zip(*(columns[name] for name in names), strict=True)]
    assert len(got) == len(set(got))
    assert set(got) == brute_force(shape, accelerators)


@given(st.integers(1, 200_000))
def test_divisors(number: int) -> None:
    found = divisors(number)
    assert (number % found == 0).all()
    assert (np.diff(found) > 0).all()
    count = 1
    product_of_powers = 1
    for prime, exponent in prime_powers(number):
        count *= exponent + 1
        product_of_powers *= prime**exponent
    assert product_of_powers == number
    assert len(found) == count


@given(number=st.sampled_from([1, 2, 6, 8, 12, 72]), parts=st.integers(1, 4))
def test_ordered_factorisations(number: int, parts: int) -> None:
    rows = ordered_factorisations(number, parts)
    assert (rows.prod(axis=1) == number).all()
    brute = [ways for ways in product(all_divisors(number), repeat=parts) if np.prod(ways) == number]
    assert sorted(map(tuple, rows.tolist())) == sorted(brute)


def test_levels_are_filled_as_far_as_the_count_allows() -> None:
    assert used_group_ranks(1024, (8,)) == (8,)
    assert used_group_ranks(4, (8,)) == (4,)
    assert used_group_ranks(1 << 20, (72,)) == (64,)  # an NVL72 rack holds 64 of a power of two
    assert used_group_ranks(72 * 5, (72,)) == (72,)
    assert used_group_ranks(6144, (8, 32)) == (8, 32)
