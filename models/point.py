"""What goes into the model: one scenario (hardware, network, architecture, workload) and one layout of it.

Every field is a number with its unit in its name and its meaning in its metadata; a bundle holds one point, or, under
`vmap`, a batch of them. Choices are numbers too: one compiled model evaluates all of them.
"""

from dataclasses import dataclass, field
from typing import Any

import jax

from models.quantities import Quantity


def number(unit: str, meaning: str) -> Any:
    """Declare a numeric field with its unit and meaning (read by the glossary, the Parquet schema and the checks)."""
    return field(metadata={"unit": unit, "meaning": meaning})


def bundle(cls: type) -> type:
    """Make a frozen keyword-only dataclass and register it as a JAX pytree."""
    return jax.tree_util.register_dataclass(dataclass(frozen=True, kw_only=True)(cls))


@bundle
class Hardware:
    """One accelerator, at the precision it trains in."""

    peak_flop_per_s: Quantity = number("FLOP/s", "dense nominal peak at the training precision")
    sustained_fraction: Quantity = number("1", "share of nominal clock (and so of peak) held under matmul load")
    multiprocessor_count: Quantity = number("1", "streaming multiprocessors, compute units or cores")
    register_blocks_per_multiprocessor: Quantity = number("1", "register files (processing blocks) a multiprocessor")
    register_block_byte: Quantity = number("B", "size of one register file")
    shared_memory_byte_per_s: Quantity = number("B/s", "shared-memory bandwidth of all multiprocessors, nominal clock")
    has_distributed_shared_memory: Quantity = number("0/1", "multiprocessors read each other's shared memory")
    l2_byte: Quantity = number("B", "last-level on-chip cache")
    l2_byte_per_s: Quantity = number("B/s", "bandwidth of the last-level cache")
    hbm_byte: Quantity = number("B", "device memory")
    hbm_byte_per_s: Quantity = number("B/s", "bandwidth of device memory")
    matmul_latency_s: Quantity = number("s", "fixed time of one matmul: launch, fill and drain")


@bundle
class NetworkLevel:
    """One level of the network: groups of `group_ranks` of the level below; the last level is unbounded."""

    group_ranks: Quantity = number("1", "how many units of the level below one group of this level joins")
    one_way_byte_per_s: Quantity = number("B/s", "bandwidth an accelerator has into this level, one direction")
    latency_s: Quantity = number("s", "time of the smallest message across this level")


@bundle
class Architecture:
    """The shape of the model that is trained."""

    layer_count: Quantity = number("1", "layers")
    d_model: Quantity = number("1", "width of the residual stream")
    d_ff: Quantity = number("1", "hidden width of one feed-forward expert")
    expert_count: Quantity = number("1", "experts a layer; 1 = dense")
    sequence_token: Quantity = number("token", "length of one sequence")


@bundle
class Workload:
    """What is trained on it and for how long."""

    global_batch_token: Quantity = number("token", "tokens in one optimiser step")
    dataset_token: Quantity = number("token", "tokens seen in the whole run")
    word_byte: Quantity = number("B", "bytes of one weight or activation in the training precision")


@bundle
class Layout:
    """How the run is split. Degrees multiply to the accelerator count."""

    data_ranks: Quantity = number("1", "data-parallel degree")
    tensor_model_ranks: Quantity = number("1", "tensor-parallel degree over d_model")
    tensor_ff_ranks: Quantity = number("1", "tensor-parallel degree over d_ff")
    pipeline_ranks: Quantity = number("1", "pipeline-parallel degree")
    expert_ranks: Quantity = number("1", "expert-parallel degree")
    microbatch_count: Quantity = number("1", "microbatches a pipeline works through in one step")
    interleave_count: Quantity = number("1", "layer chunks a pipeline rank holds")
    is_zero_bubble: Quantity = number("0/1", "zero-bubble schedule instead of (interleaved) 1F1B")
    # What follows from the integers above, settled before JAX sees them
    shard_d_model: Quantity = number("1", "d_model // tensor_model_ranks")
    shard_d_ff: Quantity = number("1", "d_ff // tensor_ff_ranks")
    rank_layers: Quantity = number("1", "layers // pipeline_ranks")
    rank_experts: Quantity = number("1", "experts // expert_ranks")
    nanobatch_token: Quantity = number("token", "tokens of one microbatch on one rank for one expert")


@bundle
class Placement:
    """The part of each degree that lies inside one group of each network level, lowest level first."""

    data_ranks: tuple[Quantity, ...] = number("1", "data ranks on each level")
    tensor_model_ranks: tuple[Quantity, ...] = number("1", "tensor ranks over d_model on each level")
    tensor_ff_ranks: tuple[Quantity, ...] = number("1", "tensor ranks over d_ff on each level")
    pipeline_ranks: tuple[Quantity, ...] = number("1", "pipeline ranks on each level")
    expert_ranks: tuple[Quantity, ...] = number("1", "expert ranks on each level")


@bundle
class Physics:
    """The choices and constants of the model itself."""

    usable_cache_fraction: Quantity = number("1", "share of registers and caches a matmul kernel can fill")
    matmul_quantum: Quantity = number("1", "matrix sides are padded to whole multiples of this")
    overlaps_tensor: Quantity = number("0/1", "tensor-parallel traffic hides behind arithmetic")
    overlaps_data: Quantity = number("0/1", "data-parallel traffic hides behind the rest of the step")
    overlaps_pipeline: Quantity = number("0/1", "pipeline and expert traffic hides behind arithmetic")
    optimizer_weight_copies: Quantity = number("1", "optimiser state in copies of the weights, sharded over data ranks")


@bundle
class Scenario:
    """Everything but the layout."""

    hardware: Hardware
    network: tuple[NetworkLevel, ...]
    architecture: Architecture
    workload: Workload
