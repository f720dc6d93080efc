"""Pipeline stages: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.stages import (
    inflight_microbatch_count,
    last_stage_layer_count,
    later_microbatch_counts,
    pipeline_bubble_microbatch_count,
    pipeline_hop_time_s,
    stage_layer_count,
)

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def largest(layers: float, ranks: float, chunks: float = 1.0, credit: float = 0.0) -> float:
    return float(
        stage_layer_count(
            layer_count=number(layers),
            pipeline_ranks=number(ranks),
            interleave_ratio=number(chunks),
            end_stage_layer_credit=number(credit),
        )
    )


def last(layers: float, ranks: float, biggest: float, credit: float = 0.0) -> float:
    return float(
        last_stage_layer_count(
            layer_count=number(layers),
            largest_layer_count=number(biggest),
            pipeline_ranks=number(ranks),
            end_stage_layer_credit=number(credit),
        )
    )


@pytest.mark.parametrize(
    ("layers", "ranks", "chunks", "credit", "big", "end"),
    [
        (96, 8, 1, 0, 12, 12),
        (96, 1, 1, 0, 96, 96),
        (61, 16, 1, 0, 4, 1),  # uneven: 15 stages of 4, the last has one
        (80, 7, 1, 0, 12, 8),  # neither divides nor is a power of two
        (126, 16, 1, 2, 8, 7),  # Llama 3 405B: 126 + 2 = 128 layers' worth, the ends have 7
        (96, 8, 3, 0, 12, 12),  # three chunks of four layers
        (3, 8, 1, 0, 1, 0),  # more stages than layers: some are empty
    ],
)
def test_layers_by_hand(layers: float, ranks: float, chunks: float, credit: float, big: float, end: float) -> None:
    assert largest(layers, ranks, chunks, credit) == big
    assert last(layers, ranks, big, credit) == end


def bubble(ranks: float, chunks: float = 1.0, ratio: float = 1.0) -> float:
    return float(
        pipeline_bubble_microbatch_count(
            pipeline_ranks=number(ranks), interleave_ratio=number(chunks), bubble_ratio=number(ratio)
        )
    )


def test_bubble_by_hand() -> None:
    # Narayanan 2021, section 2.2: (p - 1) / v microbatches; zero bubble H1 a third of that (Qi 2024, table 2).
    assert bubble(8) == 7
    assert bubble(8, 2) == 3.5
    assert bubble(8, 1, 1 / 3) == pytest.approx(7 / 3, rel=ROUNDING)
    assert bubble(8, 1, 0) == 0
    assert bubble(1) == 0


def hop(tensor: float, split: float, link: float = 1e9, latency: float = 0.0) -> float:
    return float(
        pipeline_hop_time_s(
            token=number(1000),
            hidden_width=number(1000),
            tensor_ranks=number(tensor),
            is_split=number(split),
            element_byte=number(2),
            link_byte_per_s=number(link),
            latency_s=number(latency),
        )
    )


def test_hop_by_hand() -> None:
    assert hop(4, 0) == pytest.approx(2e-3, rel=ROUNDING)
    assert hop(4, 1) == pytest.approx(0.5e-3, rel=ROUNDING)  # each of four tensor ranks sends a quarter
    assert hop(4, 1, 1e300, 1e-5) == pytest.approx(1e-5, rel=ROUNDING)


def held(ranks: float, chunks: float, microbatches: float, gpipe: float = 0.0) -> float:
    return float(
        inflight_microbatch_count(
            pipeline_ranks=number(ranks),
            interleave_ratio=number(chunks),
            microbatch_count=number(microbatches),
            is_gpipe=number(gpipe),
        )
    )


def test_in_flight_by_hand() -> None:
    assert held(8, 1, 64) == 8  # 1F1B: as many as stages
    assert held(8, 1, 4) == 4
    assert held(8, 1, 64, gpipe=1) == 64  # GPipe: all
    # Interleaved: p (1 + (p - 1) / (p v)) = 8 x (1 + 7/16) = 11.5 (Korthikanti 2022, section 4.2.3).
    assert held(8, 2, 64) == pytest.approx(11.5, rel=ROUNDING)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 200), st.integers(1, 64), st.integers(1, 4))
def test_stages_hold_all_layers(layers: int, ranks: int, chunks: int) -> None:
    biggest = largest(layers, ranks, chunks)
    assert biggest * ranks >= layers
    assert 0 <= last(layers, ranks, biggest) <= biggest


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 10**5), st.integers(1, 8), st.floats(1e3, 1e15), st.floats(1, 100))
def test_more_chunks_wait_less_and_faster_links_hop_faster(ranks: int, chunks: int, link: float, factor: float) -> None:
    assert bubble(ranks, chunks + 1) <= bubble(ranks, chunks)
    assert hop(4, 1, link * factor) <= hop(4, 1, link)


def test_what_later_stages_hold_by_hand() -> None:
    # 8 stages: 8, 7, 1 microbatches; 2 chunks each: 23 halves = 11.5, then 10.5, then (8 + 1)/2 = 4.5; GPipe all 20.
    place = {"pipeline_ranks": number(8), "microbatch_count": number(20)}
    plain = later_microbatch_counts(first=number(8), interleave_ratio=number(1), is_gpipe=number(0), **place)
    assert [float(each) for each in plain] == [7, 1]
    first = inflight_microbatch_count(interleave_ratio=number(2), is_gpipe=number(0), **place)
    chunks = later_microbatch_counts(first=first, interleave_ratio=number(2), is_gpipe=number(0), **place)
    assert [float(first), *(float(each) for each in chunks)] == [11.5, 10.5, 4.5]
    gpipe = later_microbatch_counts(first=number(20), interleave_ratio=number(1), is_gpipe=number(1), **place)
    assert [float(each) for each in gpipe] == [20, 20]
    alone = {"pipeline_ranks": number(1), "microbatch_count": number(20), "interleave_ratio": number(1)}
    only = later_microbatch_counts(first=number(1), is_gpipe=number(0), **alone)
    assert [float(each) for each in only] == [1, 1]
