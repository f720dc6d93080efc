"""One step of a transformer: parts add up, batching changes nothing, every input matters, limits hold."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.evaluate_layouts import transformer_outcomes
from models.packed import outcome_of_transformer
from models.packing import field_names, pack, transformer_names
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import Accelerator, Constants
from pipeline.calibrate import load_preset

SAME_ARITHMETIC = 1e-12  # the same operations, fused differently
ADDED_UP = 1e-9  # parts are differences of larger numbers
CONSTANTS = dict(load_preset().constants)
TRAFFIC = (
    "tensor_time_s",
    "context_time_s",
    "expert_time_s",
    "gather_time_s",
    "bubble_time_s",
    "layer_transfer_time_s",
)
TRAFFIC += ("data_time_s",)
LATENCIES = [name for name in field_names(Constants) if name.endswith(("_latency_s", "_hop_s"))]
NOT_PARTS = ("step_time_s",)
PARTS = [name for name in field_names(TransformerOutcome) if name.endswith("_time_s") and name not in NOT_PARTS]

# GPT-3 175B on A100, tensor 8, pipeline 8, 1F1B, everything on
BASE = {
    **{"peak_16bit_flop_per_s": 312e12, "peak_linear_flop_per_s": 312e12, "achievable_matmul_fraction": 0.87},
    **{"exponential_per_s": 2.4e12, "hbm_byte_per_s": 2.0e12, "processor_count": 108, "power_ratio": 1.0},
    **{"scale_up_byte_per_s": 300e9, "scale_out_byte_per_s": 25e9, "domain_ranks": 8},
    **{"pod_ranks": 1e15, "top_byte_per_s": 1.0, "top_latency_s": 0.0},
    **{"layer_count": 96, "moe_layer_fraction": 0, "hidden_width": 12288, "ffn_width": 49152, "ffn_matrix_count": 2},
    **{"query_width": 12288, "key_value_width": 12288, "value_width": 12288, "query_rank_width": 0},
    **{"key_value_rank_width": 0, "rope_width": 0, "score_head_count": 96, "sequence_token": 2048},
    **{"window_token": 2048, "windowed_layer_fraction": 0, "vocabulary_size": 51200, "embedding_is_tied": 1},
    **{"learned_position_count": 2048, "expert_count": 0, "experts_per_token": 0, "shared_expert_count": 0},
    **{"expert_ffn_width": 0, "tensor_ranks": 8, "sequence_ranks": 1, "context_ranks": 1, "expert_ranks": 1},
    **{"context_all_to_all_ranks": 1},
    **{"pipeline_ranks": 8, "data_ranks": 8, "microbatch_sequence": 1, "microbatch_count": 64, "interleave_ratio": 1},
    **{"end_stage_layer_credit": 0, "sharding_stage": 1, "shard_ranks": 8, "is_gpipe": 0, "bubble_ratio": 1},
    **{"recompute_matmul_fraction": 0, "recompute_attention_fraction": 0, "recompute_elementwise_fraction": 0},
    **{"stored_activation_fraction": 1, "is_unfused_attention": 0, "is_foreign_attention": 0},
    **{"is_early_attention": 0, "is_eager": 0, "host_ratio": 1, "expert_host_ratio": 1, "expert_pass_ratio": 1},
    **{"expert_launch_ratio": 1},
    **{"is_eager_expert": 0, "operand_byte": 2, "cast_byte": 0, "is_4bit": 0, "gradient_byte": 4, "gather_byte": 2},
    **{"optimizer_byte": 12, "weight_byte": 2, "byte_per_logit": 8, "stage_output_count": 0, "bucket_byte": 0},
    **{"is_static_allocation": 0, "has_dropout": 1, "pipeline_exposed_ratio": 1, "pipeline_is_split": 1},
    **{"tensor_exposed_ratio": 1, "is_reduction_overlapped": 1, "expert_load_ratio": 1},
}
MIXTURE = {
    **{"moe_layer_fraction": 0.9, "expert_count": 64, "experts_per_token": 6, "shared_expert_count": 1},
    **{"expert_ffn_width": 2048, "expert_ranks": 16, "ffn_width": 8192, "ffn_matrix_count": 3, "hidden_width": 4096},
    **{"tensor_ranks": 2, "pipeline_ranks": 2, "data_ranks": 64, "query_width": 4096, "key_value_width": 1024},
    **{"value_width": 4096, "score_head_count": 32, "shard_ranks": 64},
}
LATENT = {
    **MIXTURE,
    **{"query_width": 128 * 192, "key_value_width": 128 * 128, "value_width": 128 * 128, "query_rank_width": 1536},
    **{"key_value_rank_width": 512, "rope_width": 64, "score_head_count": 128},
}
FULL = dict.fromkeys(("recompute_matmul_fraction", "recompute_attention_fraction", "recompute_elementwise_fraction"), 1)
SHARDED = {
    **{"sharding_stage": 3, "tensor_ranks": 1, "pipeline_ranks": 1, "data_ranks": 64, "shard_ranks": 8},
    **{"weight_byte": 4, "optimizer_byte": 8, "microbatch_count": 2, "layer_count": 48, "hidden_width": 4096},
    **{"query_width": 4096, "key_value_width": 4096, "ffn_width": 16384, "score_head_count": 32},
}
CONTEXT = {"context_ranks": 4, "sequence_token": 65536, "window_token": 65536, "data_ranks": 2, "shard_ranks": 8}
CASES = {
    "dense": {},
    "sequence parallel, interleaved": {"sequence_ranks": 8, "interleave_ratio": 3, "end_stage_layer_credit": 0},
    "unfused, eager, selective": {"is_unfused_attention": 1, "is_eager": 1, "recompute_attention_fraction": 1},
    "full recomputation": {**FULL, "stored_activation_fraction": 0},
    "8 bit, foreign kernel": {
        "operand_byte": 1,
        "cast_byte": 3,
        "peak_linear_flop_per_s": 624e12,
        "is_foreign_attention": 1,
    },
    "4 bit, windowed": {"operand_byte": 0.5, "cast_byte": 3, "is_4bit": 1, "peak_linear_flop_per_s": 1.2e15}
    | {"window_token": 512, "windowed_layer_fraction": 0.5, "power_ratio": 0.8},
    "mixture": MIXTURE,
    "few tokens an expert": {**MIXTURE, "sequence_token": 128, "window_token": 128, "expert_count": 256},
    "mixture, eager": {**MIXTURE, "is_eager_expert": 1, "is_eager": 1, "expert_load_ratio": 1.3},
    "latent attention": LATENT,
    "sharded": SHARDED,
    "sharded, early kernel": {**SHARDED, "is_early_attention": 1},
    "context": CONTEXT,
    "context, heads exchanged": {**CONTEXT, "context_all_to_all_ranks": 4},
    "context, a grid": {**CONTEXT, "context_ranks": 8, "data_ranks": 1, "context_all_to_all_ranks": 2},
    "context, few key/value heads": {**CONTEXT, "context_all_to_all_ranks": 4, "key_value_width": 1024},
    "GPipe": {"is_gpipe": 1},
    "zero bubble": {"bubble_ratio": 1 / 3},
    "late reduction": {
        "is_reduction_overlapped": 0,
        "pipeline_is_split": 0,
        "stage_output_count": 1,
        "bucket_byte": 2e9,
    },
    "static": {"is_static_allocation": 1, "host_ratio": 0},
    "small and host-bound": {"layer_count": 24, "hidden_width": 512, "query_width": 512, "key_value_width": 512}
    | {"ffn_width": 2048, "score_head_count": 8, "tensor_ranks": 1, "pipeline_ranks": 1, "data_ranks": 8},
    "degrees of 3, 5, 7": {
        "tensor_ranks": 3,
        "pipeline_ranks": 7,
        "data_ranks": 5,
        "layer_count": 61,
        "shard_ranks": 5,
    },
    "tensor ranks straddle a server": {"tensor_ranks": 12, "domain_ranks": 8},
    "pods": {"pod_ranks": 256, "top_byte_per_s": 1e9, "top_latency_s": 1e-3, "data_ranks": 16, "shard_ranks": 16},
    "pods, experts and pipeline across": {**MIXTURE, "pod_ranks": 8, "top_byte_per_s": 1e9, "top_latency_s": 1e-3},
}
POINTS = [{**BASE, **case} for case in CASES.values()]


def outcomes(points: list[dict[str, float]], constants: dict[str, float] | None = None) -> dict[str, np.ndarray]:
    columns = {name: np.array([float(point[name]) for point in points]) for name in transformer_names()}
    values = {name: jnp.float64(value) for name, value in {**CONSTANTS, **(constants or {})}.items()}
    return transformer_outcomes(pack(columns, transformer_names()), Constants(**values))


def outcome(constants: dict[str, float] | None = None, **changes: float) -> dict[str, float]:
    return {name: float(values[0]) for name, values in outcomes([{**BASE, **changes}], constants).items()}


def test_parts_sum_to_the_step_and_nothing_is_negative() -> None:
    got = outcomes(POINTS)
    np.testing.assert_allclose(sum(got[name] for name in PARTS), got["step_time_s"], rtol=ADDED_UP)
    for name, values in got.items():
        assert np.isfinite(values).all(), name
        assert (values >= -ADDED_UP * got["step_time_s"]).all(), name


def test_batch_equals_loop() -> None:
    got = outcomes(POINTS)
    constants = Constants(**{name: jnp.float64(value) for name, value in CONSTANTS.items()})
    for index in (0, 6, 8, 9):
        rows = jnp.asarray([float(POINTS[index][name]) for name in transformer_names()], dtype=jnp.float64)
        alone = outcome_of_transformer(rows, constants)
        both = [got[name][index] for name in field_names(TransformerOutcome)]
        np.testing.assert_allclose([float(each) for each in alone], both, rtol=1e-9, atol=SAME_ARITHMETIC)


@pytest.mark.parametrize("name", transformer_names())
def test_every_input_moves_something(name: str) -> None:
    base = outcomes(POINTS)
    is_flag = all(point[name] in (0, 1) for point in POINTS) and name not in ("interleave_ratio", "power_ratio")
    change = (lambda value: 1 - value) if is_flag else (lambda value: 2 * value + 1)
    moved = outcomes([{**point, name: change(point[name])} for point in POINTS])
    assert any((np.abs(moved[each] - base[each]) > 1e-9 * np.abs(base[each])).any() for each in base), name


@pytest.mark.parametrize("name", field_names(Constants))
def test_every_constant_moves_something(name: str) -> None:
    base, moved = outcomes(POINTS), outcomes(POINTS, {name: 1.5 * CONSTANTS[name]})
    assert any((np.abs(moved[each] - base[each]) > 1e-9 * np.abs(base[each])).any() for each in base), name


def test_one_rank_has_no_traffic() -> None:
    ranks = ("tensor_ranks", "sequence_ranks", "context_ranks", "expert_ranks", "pipeline_ranks", "data_ranks")
    ranks += ("context_all_to_all_ranks",)
    alone = [{**point, **dict.fromkeys((*ranks, "shard_ranks", "interleave_ratio"), 1)} for point in POINTS]
    got = outcomes([{**point, "end_stage_layer_credit": 0} for point in alone])
    for name in TRAFFIC:
        assert np.abs(got[name] / got["step_time_s"]).max() < ADDED_UP, name


def test_infinite_network_equals_no_network() -> None:
    links = dict.fromkeys(("scale_up_byte_per_s", "scale_out_byte_per_s", "top_byte_per_s"), 1e300)
    got = outcomes([{**point, **links, "top_latency_s": 0} for point in POINTS], dict.fromkeys(LATENCIES, 0.0))
    for name in TRAFFIC:
        if name != "bubble_time_s":
            assert np.abs(got[name] / got["step_time_s"]).max() < ADDED_UP, name


def test_topology_moves_the_answer() -> None:
    inside, across = outcome(domain_ranks=8), outcome(domain_ranks=4)
    assert across["tensor_time_s"] > 2 * inside["tensor_time_s"]  # a group of eight straddles servers of four
    assert across["matmul_time_s"] == inside["matmul_time_s"]
    # Twelve tensor ranks in servers of eight pay for the network, in servers of sixteen they do not.
    assert outcome(tensor_ranks=12)["tensor_time_s"] > outcome(tensor_ranks=12, domain_ranks=16)["tensor_time_s"]


def context_layer_s(**changes: float) -> float:
    """Return what one layer forward shows of its context traffic: 64 microbatches of 12 layers, both ways."""
    return outcome(**{**CONTEXT, **changes})["context_time_s"] / (64 * 12 * 2)


def test_exchanged_heads_by_hand() -> None:
    # Ulysses among 4 ranks, 8 tensor ranks apart, so each in a server of its own: 3/4 of 2 B x 16,384 tokens x 1,536 of
    # queries, keys, values and outputs leave through the port; two exchanges are launched.
    port_byte_per_s = 25e9 * CONSTANTS["scale_out_achieved_fraction"]
    each_s = 0.75 * 2 * 16384 * 1536 / port_byte_per_s
    launches_s = 2 * CONSTANTS["collective_latency_s"]
    expected = CONSTANTS["tensor_exposed_fraction"] * (4 * each_s + launches_s)
    assert context_layer_s(context_all_to_all_ranks=4) == pytest.approx(expected, rel=1e-9)
    # Grouped queries: 12 key/value heads on 8 tensor ranks are 1.5 a rank, sent to 4 ranks as 4 heads
    few = CONSTANTS["tensor_exposed_fraction"] * ((2 + 2 * 4 * 128 / 1536) * each_s + launches_s)
    assert context_layer_s(context_all_to_all_ranks=4, key_value_width=12 * 128) == pytest.approx(few, rel=1e-9)


def test_a_grid_of_context_ranks_by_hand() -> None:
    # 8 ranks, 2 of which exchange: half of queries, keys, values and outputs leaves; then the ring of 4 passes half the
    # keys and values of all 65,536 tokens, 3/4 of them, hidden under attention but for the exposed share; backward
    # their gradients go round too: half as much again on average.
    port_byte_per_s = 25e9 * CONSTANTS["scale_out_achieved_fraction"]
    exposed, launch_s = CONSTANTS["tensor_exposed_fraction"], CONSTANTS["collective_latency_s"]
    swap_s = 0.5 * 4 * 2 * 8192 * 1536 / port_byte_per_s + 2 * launch_s
    hops_s = 3 * CONSTANTS["scale_out_ring_hop_s"]
    ring_s = 0.75 * 2 * 65536 * 2 * 1536 / 2 / port_byte_per_s + launch_s + hops_s
    got = context_layer_s(context_ranks=8, data_ranks=1, context_all_to_all_ranks=2)
    assert got == pytest.approx(exposed * (swap_s + 1.5 * ring_s), rel=1e-9)


def test_a_ring_leaves_its_server_by_one_port() -> None:
    # 16 context ranks in two servers of 8: each passes to the next alone, whatever the other ports of its server do.
    exposed, launch_s = CONSTANTS["tensor_exposed_fraction"], CONSTANTS["collective_latency_s"]
    alone = {"tensor_ranks": 1, "context_ranks": 16, "data_ranks": 1, "shard_ranks": 1, "exponential_per_s": 1e9}
    hops_s = 14 * CONSTANTS["scale_up_ring_hop_s"] + CONSTANTS["scale_out_ring_hop_s"]
    ring_s = 15 / 16 * 2 * 65536 * 2 * 12288 / (25e9 * CONSTANTS["scale_out_achieved_fraction"]) + launch_s + hops_s
    assert context_layer_s(**alone) == pytest.approx(exposed * 1.5 * ring_s, rel=1e-9)


def test_sharded_weights_are_gathered_by_all_that_share_them() -> None:
    # 8 context ranks of one server and 8 servers of data ranks share the weights: 8 ports of each server gather them.
    near = {**SHARDED, "data_ranks": 64, "shard_ranks": 64, "context_ranks": 1, "sequence_token": 256}
    far = {**near, "data_ranks": 8, "context_ranks": 8, "sequence_token": 2048}  # as many tokens a rank, as many ranks
    quiet = {"is_unfused_attention": 0, "exponential_per_s": 1e30, "hbm_byte_per_s": 1e30}
    got, wanted = outcome(**far, **quiet), outcome(**near, **quiet)
    assert got["gather_time_s"] == pytest.approx(wanted["gather_time_s"], rel=0.02)


def test_experts_are_gathered_by_their_replicas() -> None:
    # 8 expert ranks of one server, 8 servers: a rank's experts come through its own port; with 64 nothing comes.
    sharded = {**MIXTURE, **SHARDED, "moe_layer_fraction": 1, "expert_ranks": 8, "shard_ranks": 64, "expert_count": 64}
    sharded |= {"ffn_width": 1, "peak_16bit_flop_per_s": 1e24, "peak_linear_flop_per_s": 1e24, "hbm_byte_per_s": 1e24}
    sharded |= {"exponential_per_s": 1e24, "host_ratio": 0, "expert_host_ratio": 0, "expert_launch_ratio": 0}
    few, none = outcome(**sharded), outcome(**{**sharded, "expert_ranks": 64})
    experts_byte = 8 * 3 * 4096 * 2048 * 7 / 8 * (2 + 2 + 4)  # gathered twice in 2 bytes, scattered in 4
    expected = 2 * 48 * experts_byte / (25e9 * CONSTANTS["scale_out_achieved_fraction"])
    assert few["gather_time_s"] - none["gather_time_s"] == pytest.approx(expected, rel=0.05)  # beside the exchange


def test_routed_tokens_need_no_second_all_reduce() -> None:
    """With sequence parallelism, where no expert is shared; else the feed-forward's result is summed as ever."""
    routed = {**MIXTURE, "moe_layer_fraction": 1, "shared_expert_count": 0, "sequence_ranks": 2}
    one, two = outcome(**routed), outcome(**{**routed, "shared_expert_count": 1})
    assert two["tensor_time_s"] == pytest.approx(2 * one["tensor_time_s"], rel=1e-9)
    assert outcome(**{**routed, "sequence_ranks": 1})["tensor_time_s"] == pytest.approx(two["tensor_time_s"], rel=1e-9)


def test_half_of_the_layers_recomputed_keeps_half_of_the_activations() -> None:
    """Each of them its input; and one whole layer is alive while it is rebuilt."""
    names = ("recompute_matmul_fraction", "recompute_attention_fraction", "recompute_elementwise_fraction")
    none, all_, half = (
        outcome(**dict.fromkeys(names, share), stored_activation_fraction=1 - share)["activation_byte"]
        for share in (0.0, 1.0, 0.5)
    )
    working = none / (12 * 8) * CONSTANTS["working_layer_count"]  # 12 layers of 8 microbatches in flight
    assert half == pytest.approx((none + all_ - working) / 2 + working, rel=1e-9)


def test_trees_take_over_where_rings_are_long() -> None:
    # 4,096 data ranks of one server each: 4,095 hops of a ring against 12 doublings of a tree; gradients and weights.
    tree_s = 2 * 12 * CONSTANTS["scale_out_tree_hop_s"]
    base = {"data_ranks": 4096, "shard_ranks": 4096, "is_reduction_overlapped": 0}
    long_way = {"scale_out_ring_hop_s": 1.0, "scale_up_ring_hop_s": 1.0}
    free = outcome({"scale_out_tree_hop_s": 0.0, **long_way}, **base)["data_time_s"]
    assert outcome(long_way, **base)["data_time_s"] - free == pytest.approx(tree_s, rel=1e-6)
    few = {**base, "data_ranks": 2, "shard_ranks": 2}  # one hop either way: a ring's is shorter
    ring = outcome(None, **few)["data_time_s"] - outcome({"scale_out_ring_hop_s": 0.0}, **few)["data_time_s"]
    assert ring == pytest.approx(2 * CONSTANTS["scale_out_ring_hop_s"], rel=1e-6)


def test_bubble_by_hand() -> None:
    # 1F1B: (p - 1) / m of the work of the mean stage; zero bubble a third; interleaved by three a third.
    plain = outcome()
    assert outcome(bubble_ratio=1 / 3)["bubble_time_s"] == pytest.approx(plain["bubble_time_s"] / 3, rel=1e-9)
    assert outcome(interleave_ratio=3)["bubble_time_s"] == pytest.approx(plain["bubble_time_s"] / 3, rel=1e-9)
    assert outcome(pipeline_ranks=1)["bubble_time_s"] == 0.0
    assert outcome(is_gpipe=1)["bubble_time_s"] == plain["bubble_time_s"]
    assert outcome(is_gpipe=1)["memory_byte"] > plain["memory_byte"]


def test_uneven_stages_wait_for_the_fullest() -> None:
    # 97 layers on 8 stages: the fullest has 13, as with 104.
    uneven, even = outcome(layer_count=97), outcome(layer_count=104)
    assert uneven["matmul_time_s"] == even["matmul_time_s"] == pytest.approx(outcome()["matmul_time_s"] * 13 / 12)


def test_model_flop_by_hand() -> None:
    # 6 x (12 L h^2 + V h) a token, and causal attention 6 L s h: Narayanan 2021, its formula with s/2 for the mask.
    layers, hidden, sequence, vocabulary = 96, 12288, 2048, 51200
    token = 8 * 64 * sequence
    weights = 12 * layers * hidden**2 + vocabulary * hidden
    by_hand = token * (6 * weights + 6 * layers * sequence * hidden)
    assert outcome()["step_model_flop"] == pytest.approx(by_hand, rel=1e-12)


def test_mixture_by_hand() -> None:
    # Only experts met count as work: 64 experts of which 6, or 640 of which 6.
    few, many = outcome(**MIXTURE), outcome(**{**MIXTURE, "expert_count": 640, "expert_ranks": 32, "data_ranks": 64})
    assert few["step_model_flop"] == many["step_model_flop"]
    assert many["state_byte"] > few["state_byte"]
    # Without expert traffic where each rank holds all experts
    assert outcome(**{**MIXTURE, "expert_ranks": 1})["expert_time_s"] == 0.0


def test_experts_that_one_rank_holds_are_not_gathered() -> None:
    """Full sharding over 16 ranks, experts over all 16 of them: 4 of 64 a rank, kept whole, and never copied."""
    alone = {
        **MIXTURE,
        "tensor_ranks": 1,
        "pipeline_ranks": 2,
        "data_ranks": 16,
        "shard_ranks": 16,
        "sharding_stage": 3,
    }
    alone |= {"weight_byte": 4, "optimizer_byte": 8}
    shared = {**alone, "expert_ranks": 8}  # two ranks hold the same experts: each keeps half, and copies all of them
    expert = 3 * 4096 * 2048
    layers = 96 / 2 * 0.9
    held_alone, held_shared = outcome(**alone)["state_byte"], outcome(**shared)["state_byte"]
    # 16 bytes of state a weight, either way 4 experts' worth; shared, 8 experts' 6 bytes and two layers' 4 bytes on top
    copies = 6 * layers * 8 * expert + 2 * 4 * 0.9 * 8 * expert
    assert held_shared - held_alone == pytest.approx(copies, rel=1e-9)


def test_the_host_launches_each_expert_it_holds() -> None:
    """Where the host is the slowest, a layer with twice the experts on a rank takes that many launches longer."""
    slow = {**MIXTURE, "host_ratio": 1e3}
    few, many = outcome(**slow), outcome(**{**slow, "expert_ranks": 8})
    layers, launches = 96 / 2, 3 * 4 * CONSTANTS["expert_launch_s"]  # forward, and twice backward
    expected = 64 * layers * 0.9 * launches
    parts = ("host_time_s", "matmul_time_s", "expert_time_s", "elementwise_time_s")  # what is hidden under the host
    got = sum(many[name] - few[name] for name in parts)
    assert got == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("power", range(0, 9))
def test_one_to_a_hundred_million_accelerators(power: int) -> None:
    count = 10**power
    tensor, pipeline = min(8, count), 8 if count >= 64 else 1
    data = max(1, count // (tensor * pipeline))
    got = outcome(tensor_ranks=tensor, pipeline_ranks=pipeline, data_ranks=data, shard_ranks=data)
    assert all(np.isfinite(value) for value in got.values())
    assert 0 < got["model_flop_utilisation_fraction"] < 1
    assert 0 < got["goodput_fraction"] <= 1


FASTER = (*(name for name in field_names(Accelerator) if name != "processor_count"), "scale_up_byte_per_s")


@settings(deadline=None, max_examples=25)
@given(st.sampled_from((*FASTER, "scale_out_byte_per_s", "top_byte_per_s")), st.floats(1, 50))
def test_more_of_a_rate_is_never_slower(name: str, factor: float) -> None:
    faster = {name: factor}
    if name == "peak_16bit_flop_per_s":
        faster["peak_linear_flop_per_s"] = factor  # the 16-bit peak is a part of it
    got = outcomes([{**point, **{key: point[key] * times for key, times in faster.items()}} for point in POINTS])
    assert (got["step_time_s"] <= outcomes(POINTS)["step_time_s"] * (1 + SAME_ARITHMETIC)).all()


@settings(deadline=None, max_examples=25)
@given(st.floats(1, 1e6))
def test_a_larger_domain_is_never_slower(factor: float) -> None:
    points = [point for point in POINTS if point["pod_ranks"] > 1e9]
    larger = outcomes([{**point, "domain_ranks": point["domain_ranks"] * factor} for point in points])
    assert (larger["step_time_s"] <= outcomes(points)["step_time_s"] * (1 + SAME_ARITHMETIC)).all()


def test_less_activation_less_memory() -> None:
    for kept in (0.0, 0.25, 0.5, 0.75):
        less, more = (outcome(stored_activation_fraction=each) for each in (kept, kept + 0.25))
        assert less["memory_byte"] < more["memory_byte"]
    assert outcome(**FULL, stored_activation_fraction=0)["memory_byte"] < outcome()["memory_byte"]
    assert outcome(**FULL, stored_activation_fraction=0)["step_time_s"] > outcome()["step_time_s"]
