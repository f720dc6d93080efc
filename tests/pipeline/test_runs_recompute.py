"""The words that sources use for recomputation, each read as what it means."""

from typing import Any

import pytest

from pipeline.runs_recompute import FULL, NONE, OFFLOADED, PYTORCH_SELECTIVE, SELECTIVE, matmul_parts, recomputation

PARTS = {"qkv": 0.2, "up": 0.1, "out": 0.1, "ffn": 0.7, "last": 0.25}
PARTS |= {"norm_kept": 0.2, "act_kept": 0.15, "ffn_kept": 0.5, "qkv_kept": 0.1, "up_kept": 0.1, "context_kept": 0.05}


def read(words: str, stage: float = 1.0, **options: Any) -> tuple[tuple[float, ...], list[str]]:
    flags: list[str] = []
    return recomputation({"recompute": words}, stage, PARTS, flags, **options), flags


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
        ("norm, act", (0.0, 0.0, pytest.approx(2 / 3), pytest.approx(0.65))),
        ("layernorm moe", (0.7, 0.0, pytest.approx(2 / 3), pytest.approx(0.3))),
        ("mla_up_proj, mlp", (pytest.approx(0.8), 0.0, pytest.approx(1 / 3), pytest.approx(0.4))),
        ("mla_up_proj", (pytest.approx(0.1), 0.0, 0.0, pytest.approx(0.9))),
        ("moe_act", (0.0, 0.0, pytest.approx(1 / 3), pytest.approx(0.85))),
        ("qkv_offload", (pytest.approx(0.8), 1.0, 1.0, 0.0)),
        ("query_proj, key_proj, value_proj, out_proj offload", (pytest.approx(0.7), 1.0, 1.0, 0.0)),
        ("decoder_layer_input: offload", FULL),
        ("device: decoder_layer_input, context, query_proj", (pytest.approx(0.8), 0.0, 1.0, pytest.approx(0.15))),
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
    """What the stack does by default: nothing, all of it, or all but the projections into attention."""
    assert read(words) == (NONE, ["recompute"])
    assert read(words, unsaid="full") == (FULL, ["recompute"])
    assert read(words, unsaid="all but qkv") == ((pytest.approx(0.8), 1.0, 1.0, 0.0), ["recompute"])


def test_a_compiler_spares_the_last_matmul() -> None:
    """Of a layer recomputed whole; not where nothing is, nor where what is recomputed is named."""
    assert read("full", is_traced=True) == ((0.75, *FULL[1:]), [])
    assert read("device: context", is_traced=True)[0] == (0.75, 0.0, 1.0, 0.05)
    assert read("none", is_traced=True) == (NONE, [])
    assert read("moe", is_traced=True)[0][0] == 0.7


def test_parts_of_a_layer_by_hand() -> None:
    """Width 8, queries 8, keys and values 2; half the layers feed forward at 16, half through 2 + 1 experts of 4."""
    transformer = {"hidden_width": 8.0, "query_width": 8.0, "key_value_width": 2.0, "ffn_matrix_count": 3.0}
    transformer |= {"experts_per_token": 2.0, "shared_expert_count": 1.0, "moe_layer_fraction": 0.5}
    transformer |= {"ffn_width": 16.0, "expert_ffn_width": 4.0, "value_width": 8.0}
    transformer |= {"query_rank_width": 0.0, "key_value_rank_width": 0.0, "rope_width": 0.0}
    whole = 96.0 + 64.0 + 3.0 * 8.0 * 14.0
    kept = 4.0 * 8.0 + 2.0 * (8.0 + 2.0) + 3.0 * 10.0 + 8.0 + 12.0  # dense 8 + 2 wide, and one copy of a token routed
    parts = {"qkv": 96 / whole, "up": 0.0, "out": 64 / whole, "ffn": 336 / whole, "last": 112 / whole}
    parts |= {"norm_kept": 16 / kept, "act_kept": 14 / kept, "ffn_kept": 50 / kept}
    parts |= {"qkv_kept": 12 / kept, "up_kept": 0.0, "context_kept": 8 / kept}
    assert matmul_parts(transformer) == pytest.approx(parts)


def test_latent_attention_projects_down_and_up() -> None:
    """Width 8, ranks 4 and 2, 1 of rotation; queries 6, keys 4, values 4: down 8 x 7, up 4 x 6 + 2 x 8, out 4 x 8."""
    transformer = {"hidden_width": 8.0, "query_width": 6.0, "key_value_width": 4.0, "value_width": 4.0}
    transformer |= {"query_rank_width": 4.0, "key_value_rank_width": 2.0, "rope_width": 1.0, "ffn_width": 10.0}
    transformer |= {"experts_per_token": 0.0, "shared_expert_count": 0.0, "moe_layer_fraction": 0.0}
    parts = matmul_parts(transformer | {"expert_ffn_width": 0.0, "ffn_matrix_count": 2.0})
    whole = 8 * 7 + 40 + 32 + 160
    wanted = {"qkv": 96 / whole, "up": 40 / whole, "out": 32 / whole, "ffn": 160 / whole}
    assert {name: parts[name] for name in wanted} == pytest.approx(wanted)
    assert parts["up_kept"] == parts["qkv_kept"] > 0.0
