"""Matmul time: worked by hand for a chip with round numbers, and at its limits."""

import dataclasses

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.matmul import hierarchy_matmul_time_s, padded_matmul_flop, tile_grid
from models.point import Hardware, Physics

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


CHIP = Hardware(
    peak_flop_per_s=number(1e12),
    sustained_fraction=number(0.5),
    multiprocessor_count=number(10.0),
    register_blocks_per_multiprocessor=number(4.0),
    register_block_byte=number(65536.0),
    shared_memory_byte_per_s=number(1e13),
    has_distributed_shared_memory=number(0.0),
    l2_byte=number(4e6),
    l2_byte_per_s=number(1e12),
    hbm_byte=number(1e9),
    hbm_byte_per_s=number(1e11),
    matmul_latency_s=number(1e-6),
)
PHYSICS = Physics(
    usable_cache_fraction=number(0.75),
    matmul_quantum=number(8.0),
    overlaps_tensor=number(1.0),
    overlaps_data=number(0.0),
    overlaps_pipeline=number(1.0),
    optimizer_weight_copies=number(4.0),
)


def time_s(rows: float, columns: float, batch: float, chip: Hardware = CHIP, is_weight_gradient: bool = False) -> float:
    return float(
        hierarchy_matmul_time_s(
            rows=number(rows),
            columns=number(columns),
            batch=number(batch),
            word_byte=number(2.0),
            hardware=chip,
            physics=PHYSICS,
            is_weight_gradient=is_weight_gradient,
        )
    )


def test_tiles_by_hand() -> None:
    # 100 x 100 words of 2 bytes in 5,000 bytes: 4 tiles of 2,500 words, 50 x 50 each: 2 along each side
    grid = tile_grid(rows=number(100), columns=number(100), word_byte=number(2), capacity_byte=number(5000))
    assert [float(each) for each in grid] == pytest.approx([2.0, 2.0], rel=ROUNDING)


def test_padding_by_hand() -> None:
    flop = padded_matmul_flop(rows=number(9), columns=number(16), batch=number(1), quantum=number(8))
    assert float(flop) == 2 * 16 * 16 * 8


def test_arithmetic_bound_by_hand() -> None:
    # Caches without limit of bandwidth: 2 x 1024^3 / (1e12 x 0.5) + 1 us
    fast = dataclasses.replace(
        CHIP, hbm_byte_per_s=number(1e18), l2_byte_per_s=number(1e18), shared_memory_byte_per_s=number(1e18)
    )
    assert time_s(1024, 1024, 1024, fast) == pytest.approx(2 * 1024**3 / 5e11 + 1e-6, rel=ROUNDING)


def test_memory_bound_by_hand() -> None:
    # One column: the weights (64 x 64 x 2 B fit L2 twice over) stay; inputs and outputs 2 x 64 x 8 x 2 B cross HBM
    slow = dataclasses.replace(CHIP, hbm_byte_per_s=number(1e3))
    assert time_s(64, 64, 8, slow) == pytest.approx(2 * 64 * 8 * 2 / 1e3 + 1e-6, rel=ROUNDING)


@settings(deadline=None, max_examples=25)
@given(
    rows=st.integers(1, 20000),
    columns=st.integers(1, 20000),
    batch=st.integers(1, 20000),
    name=st.sampled_from(["peak_flop_per_s", "hbm_byte_per_s", "l2_byte_per_s", "shared_memory_byte_per_s"]),
    factor=st.floats(1.0, 50.0),
    is_weight_gradient=st.booleans(),
)
def test_a_faster_part_is_never_slower(
    rows: int, columns: int, batch: int, name: str, factor: float, is_weight_gradient: bool
) -> None:
    faster = dataclasses.replace(CHIP, **{name: getattr(CHIP, name) * factor})
    before = time_s(rows, columns, batch, is_weight_gradient=is_weight_gradient)
    assert time_s(rows, columns, batch, faster, is_weight_gradient) <= before


@settings(deadline=None, max_examples=25)
@given(rows=st.integers(1, 5000), columns=st.integers(1, 5000), batch=st.integers(1, 5000), k=st.floats(0.1, 10.0))
def test_times_scale_with_the_clock_of_the_world(rows: int, columns: int, batch: int, k: float) -> None:
    """Seconds that are k times as long leave every rate k times as small: no hidden unit of time."""
    rates = ("peak_flop_per_s", "hbm_byte_per_s", "l2_byte_per_s", "shared_memory_byte_per_s")
    slower = dataclasses.replace(
        CHIP, matmul_latency_s=CHIP.matmul_latency_s * k, **{name: getattr(CHIP, name) / k for name in rates}
    )
    assert time_s(rows, columns, batch, slower) == pytest.approx(k * time_s(rows, columns, batch), rel=1e-9)
