"""Memory of an accelerator: worked by hand, at limits, and in the right direction."""

import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.effects.activation import (
    expert_activation_byte,
    gathered_layer_byte,
    layer_activation_byte,
    logit_byte,
    score_activation_byte,
    state_byte,
)

ROUNDING = 1e-12


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def state(stage: float, ranks: float = 8.0, parameters: float = 1e9) -> float:
    return float(
        state_byte(
            parameter_count=number(parameters),
            shard_ranks=number(ranks),
            sharding_stage=number(stage),
            weight_byte=number(2),
            gradient_byte=number(2),
            optimizer_byte=number(12),
        )
    )


def test_zero_stages_by_hand() -> None:
    # Rajbhandari 2020, figure 1: 7.5e9 weights, K = 12, 64 ranks: 120, 31.4, 16.6, 1.9 GB.
    assert state(0, 64, 7.5e9) == pytest.approx(120e9, rel=ROUNDING)
    for stage, printed_gb in ((1, 31.4), (2, 16.6), (3, 1.9)):
        assert state(stage, 64, 7.5e9) / 1e9 == pytest.approx(printed_gb, abs=0.05)


def activation(tensor: float = 1.0, sequence: float = 1.0, dropout: float = 1.0) -> float:
    return float(
        layer_activation_byte(
            token=number(2048),
            hidden_width=number(12288),
            query_width=number(12288),
            key_value_width=number(12288),
            ffn_width=number(4 * 12288),
            ffn_matrix_count=number(2),
            tensor_ranks=number(tensor),
            sequence_ranks=number(sequence),
            has_dropout=number(dropout),
            element_byte=number(2),
        )
    )


def test_layer_by_hand() -> None:
    # Korthikanti 2022, equations 1 and 2, without the 5 a s / h of the scores: s b h (10 + 24 / t).
    assert activation() == pytest.approx(2048 * 12288 * 34, rel=ROUNDING)
    assert activation(tensor=8) == pytest.approx(2048 * 12288 * (10 + 24 / 8), rel=ROUNDING)
    assert activation(tensor=8, sequence=8) == pytest.approx(2048 * 12288 * 34 / 8, rel=ROUNDING)
    assert activation(dropout=0.0) == pytest.approx(2048 * 12288 * 32, rel=ROUNDING)


def test_scores_by_hand() -> None:
    # 5 bytes a score with dropout (the same paper), 2 without; 96 heads of 2048 x 2048.
    scores = {"score_count": number(96 * 2048**2), "element_byte": number(2), "dropout_byte": number(3)}
    assert float(score_activation_byte(has_dropout=number(1), **scores)) == 5 * 96 * 2048**2
    assert float(score_activation_byte(has_dropout=number(0), **scores)) == 2 * 96 * 2048**2


def test_experts_by_hand() -> None:
    # 2 B x 8000 routed tokens x (2048 + 3 x 768).
    byte = expert_activation_byte(
        routed_token=number(8000),
        hidden_width=number(2048),
        expert_ffn_width=number(768),
        ffn_matrix_count=number(3),
        element_byte=number(2),
    )
    assert float(byte) == 2 * 8000 * (2048 + 2304)


def test_gathered_layers_and_logits_by_hand() -> None:
    gathered = gathered_layer_byte(
        layer_parameter_count=number(1e8), gathered_layer_count=number(2), element_byte=number(2)
    )
    assert float(gathered) == 8e8  # two layers, weights and gradients, 2 bytes each
    logits = logit_byte(
        token=number(2048), vocabulary_size=number(51200), tensor_ranks=number(8), byte_per_logit=number(8)
    )
    assert float(logits) == 8 * 2048 * 6400


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2), st.integers(1, 10**6), st.integers(1, 64), st.floats(1, 64))
def test_more_sharding_never_holds_more(stage: int, ranks: int, tensor: int, factor: float) -> None:
    assert state(stage + 1, ranks) <= state(stage, ranks)
    assert state(stage, ranks * factor) <= state(stage, ranks)
    assert activation(tensor * factor) <= activation(tensor)
    assert activation(tensor, tensor) <= activation(tensor)
