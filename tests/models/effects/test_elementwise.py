"""Memory-bound kernels: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.elementwise import (
    cast_time_s,
    elementwise_time_s,
    expert_permutation_time_s,
    gradient_accumulation_time_s,
    logit_traffic_time_s,
    optimizer_time_s,
)

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def elementwise(tensor: float = 1.0, sequence: float = 1.0, hbm: float = 1e12, passes: float = 10.0) -> float:
    return float(
        elementwise_time_s(
            token=number(1000),
            hidden_width=number(1024),
            ffn_width=number(4096),
            ffn_matrix_count=number(2),
            tensor_ranks=number(tensor),
            sequence_ranks=number(sequence),
            pass_count=number(passes),
            pass_replicated_fraction=number(0.75),
            pass_ffn_ratio=number(0.125),
            element_byte=number(2),
            hbm_byte_per_s=number(hbm),
        )
    )


def test_layer_by_hand() -> None:
    # 2 B x 10 passes x 1000 tokens x (1024 + 1/8 x 2 x 4096) / 1e12 B/s.
    assert elementwise() == pytest.approx(2 * 10 * 1000 * (1024 + 1024) / 1e12, rel=ROUNDING)


def test_tensor_ranks_split_a_part_and_sequence_parallelism_the_rest() -> None:
    # Korthikanti 2022, section 4.2: norms and dropout are replicated over tensor ranks unless sequence parallel.
    replicated = 2 * 10 * 1000 * (1024 * (0.75 + 0.25 / 4) + 1024 / 4) / 1e12
    assert elementwise(tensor=4) == pytest.approx(replicated, rel=ROUNDING)
    assert elementwise(tensor=4, sequence=4) == pytest.approx(elementwise() / 4, rel=ROUNDING)


def test_cast_by_hand() -> None:
    # FP8: read 2 bytes, write 1 (Micikevicius 2022): 3 B x 1000 x 5000 / 1e12.
    cast = {"token": number(1000), "operand_width": number(5000), "hbm_byte_per_s": number(1e12)}
    assert float(cast_time_s(cast_byte=number(3), **cast)) == pytest.approx(1.5e-5, rel=ROUNDING)
    assert float(cast_time_s(cast_byte=number(0), **cast)) == 0.0


def test_permutation_by_hand() -> None:
    # 12 passes x 2 B x 8000 routed tokens x (2048 + 768) / 1e12.
    time_s = expert_permutation_time_s(
        routed_token=number(8000),
        hidden_width=number(2048),
        expert_ffn_width=number(768),
        pass_count=number(12),
        element_byte=number(2),
        hbm_byte_per_s=number(1e12),
    )
    assert float(time_s) == pytest.approx(12 * 2 * 8000 * 2816 / 1e12, rel=ROUNDING)


def test_accumulation_by_hand() -> None:
    # Read and write 4 bytes a weight: 1e9 weights x 8 B / 2e12 B/s = 4 ms.
    time_s = gradient_accumulation_time_s(
        parameter_count=number(1e9), gradient_byte=number(4), hbm_byte_per_s=number(2e12)
    )
    assert float(time_s) == pytest.approx(4e-3, rel=ROUNDING)


def test_logits_by_hand() -> None:
    # 16 B x 2048 tokens x 51200 / 8 ranks / 1e12 B/s.
    time_s = logit_traffic_time_s(
        token=number(2048),
        vocabulary_size=number(51200),
        tensor_ranks=number(8),
        traffic_byte=number(16),
        hbm_byte_per_s=number(1e12),
    )
    assert float(time_s) == pytest.approx(16 * 2048 * 6400 / 1e12, rel=ROUNDING)


def test_optimizer_by_hand() -> None:
    # Adam moves 30 bytes a weight: gradient 4, master 4 + 4, moments 8 + 8, weight 2.
    time_s = optimizer_time_s(parameter_count=number(1e9), step_byte=number(30), hbm_byte_per_s=number(3e12))
    assert float(time_s) == pytest.approx(1e-2, rel=ROUNDING)


@settings(deadline=None, max_examples=30)
@given(st.floats(1, 64), st.floats(1, 64), st.floats(1e9, 1e14), st.floats(1, 100))
def test_more_ranks_or_bandwidth_are_never_slower(tensor: float, sequence: float, hbm: float, factor: float) -> None:
    base = elementwise(tensor, sequence, hbm)
    assert elementwise(tensor * factor, sequence, hbm) <= base
    assert elementwise(tensor, sequence * factor, hbm) <= base
    assert elementwise(tensor, sequence, hbm * factor) <= base
