"""What an entry of the catalogue consists of: every key with its unit, meaning and hard limits.

The dataclasses below are the schema: loading, `catalogue show` and `catalogue check` all read their field metadata.
A number that is unknown or unsupported is None.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

SOURCE_KINDS = ("datasheet", "measured", "paper", "list_price", "derived", "assumption", "unverified")
UNCERTAIN_KINDS = ("assumption", "unverified")  # carry low and high
LEAST_BYTE, LEAST_PER_S = 1e6, 1e8  # below these a chip's memory or rate stands in GB, GB/s or TFLOP/s by mistake
PRECISION_WORD_BYTE = {"fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0, "fp8": 1.0, "fp4": 0.5, "int8": 1.0}


def number(unit: str, meaning: str, *, low: float = 0.0, high: float = math.inf, required: bool = False) -> Any:
    """Declare a numeric key; values outside [low, high] are refused when the entry is loaded."""
    metadata = {"unit": unit, "meaning": meaning, "low": low, "high": high, "required": required, "type": float}
    return field(default=None, metadata=metadata)


def text(meaning: str, *, required: bool = False, among: tuple[str, ...] = ()) -> Any:
    """Declare a text key, optionally one of a list of words."""
    return field(default=None, metadata={"meaning": meaning, "required": required, "type": str, "among": among})


def flag(meaning: str, *, required: bool = False) -> Any:
    """Declare a 0/1 key; it is stored as a number."""
    return number("0/1", meaning, high=1.0, required=required)


def number_keys(schema: type) -> list[str]:
    """Return the names of the numeric keys of a schema, in order."""
    return [f.name for f in fields(schema) if f.metadata.get("type") is float]


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where one number comes from."""

    ref: str
    where: str = ""
    as_printed: str = ""
    kind: str = "unverified"
    note: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True)
class NetworkLevelSpec:
    """One network level of a topology or of a chip; what it leaves out is taken from the chip (`takes_from`)."""

    takes_from: str | None = text(
        "scale_up or scale_out: the chip's link that this level uses", among=("scale_up", "scale_out")
    )
    name: str | None = text("what the level is in the building")
    group_ranks: float | None = number("1", "units of the level below that one group joins; null = unbounded", low=1.0)
    one_way_byte_per_s: float | None = number("B/s", "bandwidth an accelerator has into the level, one direction")
    latency_s: float | None = number("s", "time of the smallest message across the level")
    oversubscription_ratio: float | None = number("1", "bandwidth below the switches / bandwidth above them", low=1.0)
    distance_m: float | None = number("m", "length of fibre between two groups; adds the light's travel time")


@dataclass(frozen=True, kw_only=True)
class Topology:
    """A network: its levels, lowest first."""

    id: str
    file: str
    name: str | None = text("what it is", required=True)
    notes: str | None = text("what to know before believing it")
    local_step_count: float | None = number("1", "optimiser steps between two exchanges of sites", low=1.0)
    exchange_compression_ratio: float | None = number("1", "bytes of the weights / bytes exchanged", low=1.0)
    exchange_hidden_fraction: float | None = number("1", "share of an exchange that hides behind steps", high=1.0)
    token_penalty_per_doubling: float | None = number("1", "further tokens, a doubling of local steps", high=1.0)
    only_hardware: tuple[str, ...] = ()  # chips this network was built for; empty = any
    levels: tuple[NetworkLevelSpec, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Chip:
    """One accelerator as sold, with the network that its vendor builds around it."""

    id: str
    file: str
    name: str | None = text("the vendor's name for it", required=True)
    vendor: str | None = text("who sells it", required=True)
    released: str | None = text("month of release, yyyy-mm", required=True)
    vendor_country: str | None = text("where it is designed, as two letters")
    market: str | None = text("what it is designed and marketed for", among=("datacenter", "consumer"))
    reference_name: str | None = text("its name in the tables of the reference model")
    host_bus: str | None = text("PCIe generation and lanes, or what replaces them")
    price_basis: str | None = text("what the release price buys", among=("chip", "server_share", "estimate"))
    price_day: str | None = text("when the release price was seen, yyyy-mm, if not at release")
    confidence: str | None = text("of the whole entry", among=("published", "derived", "estimate"))
    notes: str | None = text("what to know before believing it")
    # Silicon
    process_node_nm: float | None = number("nm", "name of the manufacturing process")
    die_area_mm2: float | None = number("mm2", "area of the silicon of one package")
    export_die_area_mm2: float | None = number(
        "mm2", "area that export rules count, where it differs from die_area_mm2"
    )
    export_io_both_way_byte_per_s: float | None = number(
        "B/s", "chip-to-chip bandwidth that export rules count, both ways, where not twice scale-up"
    )
    transistor_count: float | None = number("1", "transistors of one package")
    tdp_w: float | None = number("W", "thermal design power")
    # Memory hierarchy
    hbm_byte: float | None = number("B", "device memory, GB = 1e9", low=LEAST_BYTE, required=True)
    hbm_byte_per_s: float | None = number("B/s", "bandwidth of device memory", low=LEAST_PER_S, required=True)
    l2_byte: float | None = number("B", "last-level on-chip cache", required=True)
    l2_byte_per_s: float | None = number("B/s", "bandwidth of the last-level cache", low=LEAST_PER_S, required=True)
    multiprocessor_count: float | None = number("1", "SMs, compute units or cores", low=1.0, required=True)
    boost_clock_hz: float | None = number("Hz", "nominal clock of the rates below")
    register_block_byte: float | None = number("B", "one register file or matrix operand store", low=1.0, required=True)
    register_blocks_per_multiprocessor: float | None = number("1", "register files per SM", low=1.0, required=True)
    shared_memory_byte_per_multiprocessor: float | None = number("B", "scratchpad of one SM")
    shared_memory_byte_per_s: float | None = number("B/s", "scratchpads of all SMs", low=1.0, required=True)
    has_distributed_shared_memory: float | None = flag("SMs read each other's shared memory", required=True)
    # Rates, dense
    peak_dense_fp32_flop_per_s: float | None = number("FLOP/s", "dense peak at FP32", low=LEAST_PER_S)
    peak_dense_tf32_flop_per_s: float | None = number("FLOP/s", "dense peak at TF32", low=LEAST_PER_S)
    peak_dense_fp16_flop_per_s: float | None = number(
        "FLOP/s", "dense peak at FP16, accumulating in FP32", low=LEAST_PER_S
    )
    peak_dense_fp16_accumulate_flop_per_s: float | None = number(
        "FLOP/s", "dense peak at FP16, accumulating in FP16", low=LEAST_PER_S
    )
    peak_dense_bf16_flop_per_s: float | None = number("FLOP/s", "dense peak at BF16", low=LEAST_PER_S)
    peak_dense_fp8_flop_per_s: float | None = number("FLOP/s", "dense peak at FP8", low=LEAST_PER_S)
    peak_dense_fp4_flop_per_s: float | None = number("FLOP/s", "dense peak at FP4", low=LEAST_PER_S)
    peak_dense_int8_flop_per_s: float | None = number("op/s", "dense peak at INT8", low=LEAST_PER_S)
    sustained_fraction: float | None = number(
        "1", "share of peak held by large matmuls", low=1e-3, high=1.0, required=True
    )
    matmul_latency_s: float | None = number("s", "fixed time of one matmul", high=1.0, required=True)
    # Network of the vendor's system
    scale_up_ranks: float | None = number("1", "accelerators in one scale-up domain", low=1.0)
    scale_up_one_way_byte_per_s: float | None = number("B/s", "scale-up bandwidth of one accelerator, one direction")
    scale_up_latency_s: float | None = number("s", "time of the smallest scale-up message")
    scale_out_one_way_byte_per_s: float | None = number("B/s", "scale-out bandwidth of one accelerator, one direction")
    scale_out_latency_s: float | None = number("s", "time of the smallest scale-out message")
    # Money
    release_price_usd: float | None = number("USD", "price at release, in dollars of that year")
    server_overhead_ratio: float | None = number("1", "server-level cost per chip / chip price", low=1.0)
    network_levels: tuple[NetworkLevelSpec, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Published:
    """What its makers, or others, said of the training run of a model."""

    parameter_count: float | None = number("1", "all weights, as stated")
    active_parameter_count: float | None = number("1", "weights one token meets, as stated")
    training_token: float | None = number("token", "tokens seen in training")
    training_flop: float | None = number("FLOP", "training compute")
    global_batch_token: float | None = number("token", "tokens of one optimiser step")
    accelerator_count: float | None = number("1", "accelerators of the run")
    accelerator_hour: float | None = number("h", "accelerator hours of the run")
    wall_hour: float | None = number("h", "hours the run took")
    model_flop_utilisation_fraction: float | None = number("1", "as stated", high=1.0)
    cost_usd: float | None = number("USD", "cost, dollars of the year of release")
    hardware: str | None = text("accelerator, as stated")
    hardware_id: str | None = text("its entry in the catalogue")
    cost_basis: str | None = text("what the cost contains")
    released: str | None = text("date of release, yyyy-mm-dd")


@dataclass(frozen=True, kw_only=True)
class ModelShape:
    """The shape of a named model and what was published of its training."""

    id: str
    file: str
    kind: str | None = text("what sort of entry", required=True, among=("shape", "convnet", "compute_only"))
    name: str | None = text("its name", required=True)
    organisation: str | None = text("who trained it")
    is_rumour: float | None = flag("nobody has published the shape")
    layer_count: float | None = number("1", "layers", low=1.0)
    d_model: float | None = number("1", "width of the residual stream", low=1.0)
    d_ff: float | None = number("1", "hidden width of the dense feed-forward layers", low=1.0)
    head_count: float | None = number("1", "query heads", low=1.0)
    head_dim: float | None = number("1", "width of one head", low=1.0)
    kv_head_count: float | None = number("1", "key and value heads", low=1.0)
    vocabulary: float | None = number("1", "rows of the embedding", low=1.0)
    position_embedding_count: float | None = number("1", "rows of a learned position embedding; 0 = none")
    sequence_token: float | None = number("token", "length of one training sequence", low=1.0)
    ffn_kind: str | None = text("feed-forward law", among=("gelu", "relu", "swiglu", "geglu", "squared_relu"))
    attention_kind: str | None = text("attention law", among=("mha", "gqa", "mqa", "mla"))
    tied_embeddings: float | None = flag("input and output embedding are one")
    has_bias: float | None = flag("linear layers carry biases")
    expert_count: float | None = number("1", "routed experts of a mixture layer; 1 = dense", low=1.0)
    expert_top_k: float | None = number("1", "routed experts one token meets", low=1.0)
    shared_expert_count: float | None = number("1", "experts every token meets")
    expert_d_ff: float | None = number("1", "hidden width of one expert", low=1.0)
    dense_layer_count: float | None = number("1", "layers without experts in a mixture model")
    mla_query_rank: float | None = number("1", "rank of the query compression of MLA; 0 = none")
    mla_kv_rank: float | None = number("1", "rank of the key-value compression of MLA")
    mla_rope_head_dim: float | None = number("1", "rotary width of one MLA head")
    mla_value_head_dim: float | None = number("1", "value width of one MLA head")
    published: Published = field(default_factory=Published)
    notes: str | None = text("what to know before believing it")
    confidence: str | None = text("of the whole entry")
    sources: Mapping[str, Source] = field(default_factory=dict)
