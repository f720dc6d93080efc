"""Bubble and memory of the reference physics, worked by hand."""

import jax.numpy as jnp
import pytest

from models.effects.memory import state_byte_per_accelerator
from models.effects.schedule import bubble_fraction
from models.packing import field_names
from models.point import Layout, Physics, Workload

ROUNDING = 1e-12


def bundle(cls: type, **given: float):
    return cls(**{name: jnp.asarray(given.get(name, 1.0), dtype=jnp.float64) for name in field_names(cls)})


@pytest.mark.parametrize(
    ("ranks", "microbatches", "interleave", "zero_bubble", "expected"),
    [
        (4, 12, 1, 0, 3 / 15),  # (p - 1) / (m + p - 1)
        (4, 12, 2, 0, 3 / 27),  # interleaving halves it: (p - 1) / (v m + p - 1)
        (8, 4, 2, 0, (4 + 7) / (4 + 7 + 8)),  # fewer microbatches than ranks: z = (2 - 1)(8 - 4)
        (1, 7, 1, 0, 0.0),
        (64, 128, 1, 1, 0.0),
    ],
)
def test_bubble(ranks: int, microbatches: int, interleave: int, zero_bubble: int, expected: float) -> None:
    layout = bundle(
        Layout,
        pipeline_ranks=ranks,
        microbatch_count=microbatches,
        interleave_count=interleave,
        is_zero_bubble=zero_bubble,
    )
    assert float(bubble_fraction(layout)) == pytest.approx(expected, rel=ROUNDING)


def test_state_by_hand() -> None:
    # 1e9 weights of 2 bytes on 8 accelerators, 2 data ranks: each holds 1e9 x 2 x (2 + 4) / 8 = 1.5e9 bytes
    byte = state_byte_per_accelerator(
        parameters=jnp.asarray(1e9),
        accelerator_count=jnp.asarray(8.0),
        layout=bundle(Layout, data_ranks=2.0),
        workload=bundle(Workload, word_byte=2.0),
        physics=bundle(Physics, optimizer_weight_copies=4.0),
    )
    assert float(byte) == pytest.approx(1.5e9, rel=ROUNDING)
