"""Parameter counts: worked by hand, and in the limits where one law becomes another."""

from typing import Any

import jax.numpy as jnp
from hypothesis import given
from hypothesis import strategies as st

from models.effects import parameters

WIDTHS = st.integers(min_value=1, max_value=128).map(lambda n: 64.0 * n)
HEADS = {"head_count": 4.0, "head_dim": 8.0, "kv_head_count": 2.0}
NO_LATENT = {"is_latent": 0.0, "query_rank": 0.0, "kv_rank": 0.0, "rope_head_dim": 0.0, "value_head_dim": 0.0}


def count(name: str, **arguments: float) -> Any:
    """Return what the function of that name says of plain numbers."""
    return getattr(parameters, f"{name}_parameter_count")(**{key: jnp.asarray(x) for key, x in arguments.items()})


def test_grouped_attention_by_hand() -> None:
    # query 32 x 32, key and value 32 x 16 each, output 32 x 32
    found = count("attention", d_model=32.0, **HEADS, **NO_LATENT)
    assert float(found) == 1024 + 512 + 512 + 1024


def test_latent_attention_by_hand() -> None:
    # DeepSeek-V3 layer: 7168 x 1536 + 1536 x 128 x 192, 7168 x 576 + 512 x 128 x 256, 128 x 128 x 7168
    found = count(
        "attention",
        d_model=7168.0,
        head_count=128.0,
        head_dim=192.0,
        kv_head_count=128.0,
        is_latent=1.0,
        query_rank=1536.0,
        kv_rank=512.0,
        rope_head_dim=64.0,
        value_head_dim=128.0,
    )
    assert float(found) == 11010048 + 37748736 + 4128768 + 16777216 + 117440512


@given(d_model=WIDTHS, d_ff=WIDTHS)
def test_a_gate_adds_half(d_model: float, d_ff: float) -> None:
    plain = count("feed_forward", d_model=d_model, d_ff=d_ff, matrix_count=2.0)
    gated = count("feed_forward", d_model=d_model, d_ff=d_ff, matrix_count=3.0)
    assert float(gated) == 1.5 * float(plain)


@given(d_model=WIDTHS)
def test_tying_saves_one_embedding(d_model: float) -> None:
    shape = {"d_model": d_model, "vocabulary": 1000.0, "position_count": 0.0}
    tied = count("embedding", **shape, has_tied_embeddings=1.0)
    untied = count("embedding", **shape, has_tied_embeddings=0.0)
    assert float(untied) == 2.0 * float(tied)


@given(d_model=WIDTHS)
def test_one_expert_is_a_dense_model_with_a_router(d_model: float) -> None:
    common = {"layer_count": 6.0, "attention": 4 * d_model**2, "dense_feed_forward": 8 * d_model**2}
    common |= {"embedding": 100 * d_model, "small": 13 * d_model, "shared_expert_count": 0.0}
    dense = count("transformer", **common, dense_layer_count=6.0, expert=0.0, router=0.0, expert_count=1.0)
    mixture = count(
        "transformer", **common, dense_layer_count=0.0, expert=8 * d_model**2, router=d_model, expert_count=1.0
    )
    assert float(mixture) == float(dense) + 6.0 * d_model


def test_counts_are_scalars_in_float64() -> None:
    found = count("attention", d_model=32.0, **HEADS, **NO_LATENT)
    assert found.shape == () and found.dtype == jnp.float64
