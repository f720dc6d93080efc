"""The words that sources use for recomputation, each read as what it means."""

import pytest

from pipeline.runs_recompute import FULL, NONE, OFFLOADED, PYTORCH_SELECTIVE, SELECTIVE, matmul_parts, recomputation

PARTS = {"qkv": 0.2, "out": 0.1, "ffn": 0.7}


def read(words: str, stage: float = 1.0, framework: str = "NeMo") -> tuple[tuple[float, ...], list[str]]:
    flags: list[str] = []
    return recomputation({"recompute": words, "framework": framework}, stage, PARTS, flags), flags


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("full", FULL),
        ("Uniform, 1 layer", FULL),
        ("TRUE", FULL),
        ("gradient checkpointing", FULL),
        ("activation-checkpointing", FULL),
        ("none", NONE),
        ("no", NONE),
        ("False", NONE),
        ("no checkpointing", NONE),
        ("selective", SELECTIVE),
        ("core_attn", SELECTIVE),
        ("norm, act", (0.0, 0.0, pytest.approx(2 / 3), 1.0)),
        ("layernorm moe", (0.7, 0.0, pytest.approx(2 / 3), pytest.approx(0.3))),
        ("qkv_offload", (pytest.approx(0.8), 1.0, 1.0, 0.0)),
        ("query_proj, key_proj, value_proj, out_proj offload", (pytest.approx(0.7), 1.0, 1.0, 0.0)),
        ("decoder_layer_input: offload", FULL),
        ("offload", OFFLOADED),
    ],
)
def test_words_mean_what_their_sources_mean(words: str, expected: tuple[float, ...]) -> None:
    """`norm` is no `no`, and what is offloaded is neither recomputed nor stored."""
    assert read(words) == (expected, [])


def test_selective_under_full_sharding_is_pytorch_s() -> None:
    assert read("selective op", stage=3.0) == (PYTORCH_SELECTIVE, [])


@pytest.mark.parametrize("words", ["", "as usual"])
def test_unknown_words_are_a_guess(words: str) -> None:
    assert read(words) == (NONE, ["recompute"])
    assert read(words, framework="MaxText (JAX)") == (FULL, ["recompute"])


def test_parts_of_a_layer_by_hand() -> None:
    """Width 8, queries 8, keys and values 2; half the layers feed forward at 16, half through 2 + 1 experts of 4."""
    transformer = {"hidden_width": 8.0, "query_width": 8.0, "key_value_width": 2.0, "ffn_matrix_count": 3.0}
    transformer |= {"experts_per_token": 2.0, "shared_expert_count": 1.0, "moe_layer_fraction": 0.5}
    transformer |= {"ffn_width": 16.0, "expert_ffn_width": 4.0}
    whole = 96.0 + 64.0 + 3.0 * 8.0 * 14.0
    assert matmul_parts(transformer) == pytest.approx({"qkv": 96 / whole, "out": 64 / whole, "ffn": 336 / whole})
