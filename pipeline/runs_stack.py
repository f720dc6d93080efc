"""What a software stack does, as data, and the classes that stacks share: kernels, host, state, overlap."""

import math
from dataclasses import dataclass
from typing import Any

OWN, GENERIC, EARLY, UNFUSED = "own", "generic", "early", "unfused"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What one stack does; the defaults are those of a compiled PyTorch stack of today."""

    id: str
    names: tuple[str, ...]  # any of these in the framework's name, lower case
    why: str
    first_year: float = 0.0
    last_year: float = math.inf
    vendor: str = ""  # only on chips of this vendor
    first_release: float = 0.0  # releases from (as 26.05), and before
    before_release: float = math.inf
    attention: str = GENERIC
    """own: written for the chip. generic: foreign to Hopper and later. early: generic of the first generation, as all
    generic ones are until 2023. unfused: separate kernels."""
    generic_until: float = math.inf  # from this year on generic kernels are written for the new chips too
    is_eager: bool = False  # memory-bound kernels one by one
    host_ratio: float = 0.5  # host time to launch a layer over eager PyTorch's
    is_compiled_from: float = 0.0  # the year from which an eager stack is compiled unless it says otherwise; 0: no rule
    compiled_words: tuple[str, ...] = ()  # an eager stack is compiled where the framework says so
    expert_host_ratio: float = 1.0  # 1: the host waits for the experts' token counts
    expert_launch_ratio: float = 1.0  # 1: the host launches each local expert's kernels
    expert_pass_ratio: float = 1.0
    drops_tokens: bool = False  # its recipes give experts a capacity and drop what is over it
    captures_graphs: bool = False  # parts of layers with experts are CUDA graphs
    gradient_byte: float = 4.0  # bytes a weight in the gradient buffer, unless weights are sharded
    optimizer_byte: float = 12.0
    bf16_state_byte: tuple[float, float] | None = None  # (gradient, optimiser) of bf16 runs, where they differ
    gathers_8bit: bool = False  # weights are sent in 8 bits where the matmuls take 8 bits
    byte_per_logit: float = 8.0
    sharding_stage: float = 0.0  # where the row does not say
    recomputes: str = "none"  # a key of `runs_recompute.UNSAID`, where the row does not say
    is_traced: bool = False  # a compiler sees the backward pass and recomputes only what it needs
    sharded_state_byte: tuple[float, float] = (4.0, 8.0)  # (weight, optimiser) under full sharding
    has_sequence_parallel: bool = False  # where the row does not say
    is_reduction_overlapped: bool = True
    has_dropout: bool = False
    pipeline_exposed_ratio: float = 1.0
    pipeline_is_split: bool = True
    keeps_stage_output: bool = False
    chunk_layer_count: float = 0.0  # layers of a model chunk in its interleaved recipes; 0 = not interleaved unsaid
    is_pure_16bit: bool = False  # sharded gradients in 16 bits
    fills_pipeline_once: bool = False  # as many microbatches as stages, where the row does not say
    prints_gib: bool = False  # peak memory in GiB, printed as GB


VENDOR_WHY = (
    "Fused kernels, attention written for each chip, half the host cost, gradients accumulated in 32 bits, "
    "sequence parallelism, interleaved pipelines and overlapped sends by default (Megatron-Core documentation)."
)
RECIPE_WHY = VENDOR_WHY + (
    " Its recipes shard the optimiser, send 8-bit weights (fp8_param_gather) and project up latent attention twice "
    "(mla_up_proj). They reduce gradients in 16 bits "
    "(grad_reduce_in_fp32=False) and overlap tensor-parallel traffic (tp_comm_overlap), which the runs do not show: "
    "with either, families left out are predicted no better."
)
CHUNK_LAYERS = 4.0  # the usual chunk of NeMo's and Megatron-Bridge's recipes
VENDOR: dict[str, Any] = {
    "attention": OWN,
    "has_sequence_parallel": True,
    "pipeline_exposed_ratio": 0.3,
    "chunk_layer_count": CHUNK_LAYERS,
}
SHARDED: dict[str, Any] = {**VENDOR, "sharding_stage": 1.0}  # --use-distributed-optimizer, as in all its examples
RECIPE: dict[str, Any] = {**SHARDED, "gathers_8bit": True, "recomputes": "latent"}
TRACED: dict[str, Any] = {
    "attention": OWN,
    "host_ratio": 0.0,
    "expert_host_ratio": 0.0,
    "expert_launch_ratio": 0.0,
    "gradient_byte": 2.0,
    "is_pure_16bit": True,  # gradients are of the 16-bit copy of the weights, and reduced as such
    "has_sequence_parallel": True,  # GSPMD shards the residual stream over the axis that splits the weights
    "is_traced": True,
}
EAGER: dict[str, Any] = {"is_eager": True, "host_ratio": 1.0}
LATE_REDUCTION: dict[str, Any] = {"is_reduction_overlapped": False, "has_dropout": True}
DEEPSPEED: dict[str, Any] = {
    **EAGER,
    **LATE_REDUCTION,
    "sharding_stage": 1.0,
    "gradient_byte": 2.0,  # at fp16 a partitioned copy of the gradients in 32 bits: 16 bytes of optimiser
    "optimizer_byte": 16.0,
    "keeps_stage_output": True,
}
IN_32_BITS: dict[str, Any] = {**DEEPSPEED, "bf16_state_byte": (6.0, 12.0)}  # its BF16_Optimizer accumulates in 32 bits
