"""A second opinion: FLOP, weights, state and traffic that calculon counts for the same transformers.

Not a target: times are not compared (its chips and efficiencies are its own). `FLOPSCAPE_ORACLES` names another folder.
Where the definitions differ:
- forward FLOP: ours are 0.02 to 0.3% lower, it adds element-wise operations (softmax, norms, dropout, GELU);
- weights: ours are 0.01 to 0.1% lower, it adds biases and norms; at float8 it holds one byte a weight, we two;
- gradients and optimiser: equal, 4 and 12 bytes a weight;
- tensor traffic: it counts an all-reduce once (`ar`, `p2p_rs_ag`), we as the two rings that it takes (its `rs_ag`);
- pipeline traffic: equal; with sequence parallelism each tensor rank sends its share (our `pipeline_is_split`).
"""

import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from models.effects.activation import state_byte
from models.effects.attention import attended_token_mean, attention_forward_flop
from models.effects.parameters import attention_parameter_count, feed_forward_parameter_count
from models.effects.ring import gather_time_s
from models.effects.stages import pipeline_hop_time_s

OWN = Path(__file__).parent.parent / "data" / "oracles" / "calculon_executions.csv"
GIVEN = Path(os.environ.get("FLOPSCAPE_ORACLES", OWN.parent)) / OWN.name
TABLE = GIVEN if GIVEN.is_file() else OWN  # a folder may hold some of the tables alone
DEFINITIONS_AGREE = 0.01
EXACT = 1e-12
# d_model, heads, head width, d_ff, tokens of a sequence: calculon's own model files
SHAPES = {
    "gpt3-175B": (12288, 96, 128, 49152, 2048),
    "megatron-22B": (6144, 64, 96, 24576, 2048),
    "turing-530B": (20480, 128, 160, 81920, 2048),
    "megatron-1T": (25600, 160, 160, 102400, 2048),
    "chinchilla": (8192, 64, 128, 32768, 2048),
}


def number(value: float):
    return jnp.asarray(value, dtype=jnp.float64)


def rows() -> list[dict[str, float]]:
    frame = pl.read_csv(TABLE, infer_schema_length=None)
    kept = frame.filter(pl.col("feasible") & pl.col("model").is_in(list(SHAPES)))
    assert kept.height > 0
    return kept.to_dicts()


def block_weights(model: str) -> float:
    width, heads, head, inner, _ = SHAPES[model]
    zero = number(0)
    attention = attention_parameter_count(
        d_model=number(width),
        head_count=number(heads),
        head_dim=number(head),
        kv_head_count=number(heads),
        is_latent=zero,
        query_rank=zero,
        kv_rank=zero,
        rope_head_dim=zero,
        value_head_dim=zero,
    )
    feed_forward = feed_forward_parameter_count(d_model=number(width), d_ff=number(inner), matrix_count=number(2))
    return float(attention + feed_forward)


def block_token(row: dict[str, float]) -> float:
    return row["microbatch_size"] * SHAPES[str(row["model"])][4]


def forward_flop(row: dict[str, float]) -> float:
    width, heads, head, _, sequence = SHAPES[str(row["model"])]
    attended = attended_token_mean(
        sequence_token=number(sequence),
        window_token=number(sequence),
        windowed_layer_fraction=number(0),
        is_causal=number(0),  # it counts the whole score matrix
    )
    products = attention_forward_flop(
        token=number(block_token(row)),
        attended_token=attended,
        query_width=number(heads * head),
        value_width=number(heads * head),
    )
    del width
    return (2 * block_token(row) * block_weights(str(row["model"])) + float(products)) / row["tensor_par"]


def test_forward_flop_of_a_block() -> None:
    ratio = np.array([forward_flop(row) / row["out_block_fw_flops"] for row in rows()])
    assert (np.abs(ratio - 1) < DEFINITIONS_AGREE).all()
    assert (ratio < 1).all()  # the element-wise work, which we time by its bytes


def test_flop_of_a_block_forward_and_backward() -> None:
    for row in rows():
        theirs = row["out_block_fw_flops"] + row["out_block_agrad_flops"] + row["out_block_wgrad_flops"]
        assert 3 * forward_flop(row) == pytest.approx(theirs, rel=DEFINITIONS_AGREE)


def test_weights_of_a_block() -> None:
    for row in rows():
        byte_per_weight = 1 if row["datatype"] == "float8" else 2
        ours = byte_per_weight * block_weights(str(row["model"])) / row["tensor_par"]
        assert ours == pytest.approx(row["out_block_weight_space"], rel=DEFINITIONS_AGREE)


def test_gradient_and_optimizer_state_of_a_block() -> None:
    for row in rows():
        parameters = number(block_weights(str(row["model"])) / row["tensor_par"])
        sharing = {
            "parameter_count": parameters,
            "shard_ranks": number(row["data_par"]),
            "sharding_stage": number(1.0 if row["optimizer_sharding"] else 0.0),
            "weight_byte": number(0),
        }
        gradient = state_byte(gradient_byte=number(4), optimizer_byte=number(0), **sharing)
        optimizer = state_byte(gradient_byte=number(0), optimizer_byte=number(12), **sharing)
        theirs = row["out_block_weight_grad_space_no_sharding"], row["out_block_optimizer_space"]
        assert float(gradient) == pytest.approx(theirs[0], rel=DEFINITIONS_AGREE)
        assert float(optimizer) == pytest.approx(theirs[1], rel=DEFINITIONS_AGREE)


def element_byte(row: dict[str, float]) -> float:
    return 1.0 if row["datatype"] == "float8" else 2.0


def test_tensor_traffic_of_a_block() -> None:
    """Four rings of 2 b s h bytes forward: its size at `rs_ag`; the steps (t - 1) / t of a ring are in its time."""
    for row in rows():
        if row["tensor_par"] > 1:
            byte = element_byte(row) * block_token(row) * SHAPES[str(row["model"])][0]
            whole = gather_time_s(
                byte=number(byte),
                group_ranks=number(row["tensor_par"]),
                group_bandwidth_byte_per_s=number(1),
                latency_s=number(0),
            ) / (1 - 1 / row["tensor_par"])
            counted = 4 if row["tensor_par_comm_type"] == "rs_ag" else 2
            assert counted * float(whole) == pytest.approx(row["out_baseblock_fw_tp_size"], rel=EXACT)


def test_pipeline_traffic_of_a_block() -> None:
    for row in rows():
        if row["pipeline_par"] > 1:
            sent = pipeline_hop_time_s(
                token=number(block_token(row)),
                hidden_width=number(SHAPES[str(row["model"])][0]),
                tensor_ranks=number(row["tensor_par"]),
                is_split=number(0.0 if row["tensor_par_comm_type"] == "ar" else 1.0),
                element_byte=number(element_byte(row)),
                link_byte_per_s=number(1),
                latency_s=number(0),
            )
            assert float(sent) == pytest.approx(row["out_block_fw_pp_size"], rel=EXACT)
