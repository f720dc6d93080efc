"""The stacks that published runs ran on, as data: which kernels, how much host, what state, what overlap.

A run belongs to the first stack one of whose names is in its framework and whose years hold its year. What a stack
does is an input of the model; none of it is fitted and none of it is about one run.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

from pipeline.runs_table import Row

DEFAULT_YEAR = 2024.0
FIRST_YEAR = 2012.0  # a year before has been misread
OWN, GENERIC, EARLY, UNFUSED = "own", "generic", "early", "unfused"


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What one stack does; the defaults are those of a compiled PyTorch stack of today."""

    id: str
    names: tuple[str, ...]  # any of these in the framework's name, lower case
    why: str
    first_year: float = 0.0
    last_year: float = math.inf
    first_release: float = 0.0  # releases from (as 26.05), and before
    before_release: float = math.inf
    attention: str = GENERIC
    """own: written for the chip. generic: foreign to Hopper and later. early: generic of the first generation, as all
    generic ones are until 2023. unfused: separate kernels."""
    generic_until: float = math.inf  # from this year on generic kernels are written for the new chips too
    is_eager: bool = False  # memory-bound kernels one by one
    host_ratio: float = 0.5  # host time to launch a layer over eager PyTorch's
    compiled_words: tuple[str, ...] = ()  # an eager stack is compiled where the framework says so
    expert_host_ratio: float = 1.0  # 1: the host waits for the experts' token counts
    expert_pass_ratio: float = 1.0
    gradient_byte: float = 4.0  # bytes a weight in the gradient buffer, unless weights are sharded
    optimizer_byte: float = 12.0
    bf16_state_byte: tuple[float, float] | None = None  # (gradient, optimiser) of bf16 runs, where they differ
    byte_per_logit: float = 8.0
    sharding_stage: float = 0.0  # where the row does not say
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
CHUNK_LAYERS = 4.0  # the usual chunk of NeMo's and Megatron-Bridge's recipes
VENDOR: dict[str, Any] = {
    "attention": OWN,
    "has_sequence_parallel": True,
    "pipeline_exposed_ratio": 0.3,
    "chunk_layer_count": CHUNK_LAYERS,
}
RECIPE: dict[str, Any] = {**VENDOR, "sharding_stage": 1.0}
EAGER: dict[str, Any] = {"is_eager": True, "host_ratio": 1.0}
LATE_REDUCTION: dict[str, Any] = {"is_reduction_overlapped": False, "has_dropout": True}
DEEPSPEED: dict[str, Any] = {
    **EAGER,
    **LATE_REDUCTION,
    "sharding_stage": 1.0,
    "gradient_byte": 2.0,  # at fp16 a partitioned copy of the gradients in 32 bits: 16 bytes of optimiser
    "optimizer_byte": 16.0,
    "bf16_state_byte": (6.0, 12.0),
    "keeps_stage_output": True,
}
STACKS = (
    Stack(
        id="xla",
        names=("maxtext", "jax", "paxml", "praxis", "levanter", "t5x", "easylm", "axlearn", "pathways", "gspmd")
        + ("mesh tensorflow", "mesh-tensorflow", "xla"),
        why="A compiler fuses everything and the host launches one program; losses are computed in 16 bits.",
        attention=OWN,
        host_ratio=0.0,
        gradient_byte=2.0,
        has_sequence_parallel=True,  # GSPMD shards the residual stream over the axis that splits the weights
    ),
    Stack(
        id="llm_c",
        names=("llm.c",),
        why="Hand-written CUDA: fused kernels, little host time, a loss that never holds 32-bit logits.",
        attention=OWN,
        host_ratio=0.2,
        gradient_byte=2.0,
        byte_per_logit=4.0,
    ),
    Stack(
        id="vendor_recipes_24_0",
        names=("nemo", "bridge"),
        before_release=24.1,
        why=VENDOR_WHY + " Releases 24.0x kept 2-byte remainders of the weights: 10 bytes of optimiser.",
        optimizer_byte=10.0,
        **RECIPE,
    ),
    Stack(
        id="vendor_recipes_26_06",
        names=("bridge",),
        first_release=26.05,
        why=VENDOR_WHY + " From 26.06 whole layers are CUDA graphs: the host does not wait for token counts, and one "
        "kernel permutes, pads and quantises (0.4 of the passes: assumption).",
        expert_host_ratio=0.0,
        expert_pass_ratio=0.4,
        **RECIPE,
    ),
    Stack(
        id="vendor_recipes",
        names=("nemo", "bridge"),
        why=VENDOR_WHY + " Its recipes interleave in chunks of four layers and shard the optimiser.",
        **RECIPE,
    ),
    Stack(id="megatron_core", names=("megatron-core", "mcore", "transformer engine"), why=VENDOR_WHY, **VENDOR),
    Stack(
        id="deepspeed_2022",
        names=("deepspeed", "neox"),
        last_year=2022,
        why="Eager kernels, unfused attention with dropout, gradients reduced after the backward pass, whole tensors "
        "sent from every tensor rank, each stage's outputs kept (DeepSpeed's pipeline engine).",
        attention=UNFUSED,
        pipeline_is_split=False,
        **DEEPSPEED,
    ),
    Stack(
        id="megatron_deepspeed",
        names=("megatron-deepspeed",),
        why="As before 2023, with split sends (pipe_partitioned).",
        attention=UNFUSED,
        **DEEPSPEED,
    ),
    Stack(
        id="deepspeed", names=("deepspeed", "neox"), why="Since 2023 with flash attention and split sends.", **DEEPSPEED
    ),
    Stack(
        id="megatron_lm_2021",
        names=("megatron",),
        last_year=2021,
        why="Eager kernels, unfused attention with dropout, 16-bit gradients reduced after the backward pass "
        "(Narayanan et al. 2021).",
        attention=UNFUSED,
        gradient_byte=2.0,
        **EAGER,
        **LATE_REDUCTION,
    ),
    Stack(
        id="megatron_lm_2022",
        names=("megatron",),
        last_year=2022,
        why="As in 2021, gradients accumulated in 32 bits (Korthikanti et al. 2022).",
        attention=UNFUSED,
        **EAGER,
        **LATE_REDUCTION,
    ),
    Stack(
        id="megatron_lm", names=("megatron",), why="Since 2023 Megatron-LM is Megatron-Core. " + VENDOR_WHY, **VENDOR
    ),
    Stack(
        id="llm_foundry",
        names=("foundry", "composer"),
        why="Eager PyTorch with Triton's first-generation flash kernel (its benchmark table).",
        attention=EARLY,
        gradient_byte=2.0,
        byte_per_logit=4.0,
        **EAGER,
    ),
    Stack(
        id="torchtitan",
        names=("titan",),
        why="Compiled PyTorch, generic flash kernels, logits in 32 bits (its performance page).",
        byte_per_logit=12.0,
        has_sequence_parallel=True,
        fills_pipeline_once=True,
        prints_gib=True,
    ),
    Stack(
        id="fms",
        names=("fms",),
        why="FSDP sharded in pure 16 bits, eager until it was compiled (foundation-model-stack).",
        compiled_words=("compile",),
        is_pure_16bit=True,
        gradient_byte=2.0,
        **EAGER,
    ),
    Stack(
        id="other_2021",
        names=("",),
        last_year=2021,
        why="A stack nobody has a rule for, before flash attention.",
        attention=UNFUSED,
        is_eager=True,
        compiled_words=("compile",),
        gradient_byte=2.0,
        **LATE_REDUCTION,
    ),
    Stack(
        id="other_2022",
        names=("",),
        last_year=2022,
        why="A stack nobody has a rule for: eager, flash attention, gradients reduced after the backward pass.",
        is_eager=True,
        compiled_words=("compile",),
        gradient_byte=2.0,
        **LATE_REDUCTION,
    ),
    Stack(
        id="other",
        names=("",),
        why="A stack nobody has a rule for: eager PyTorch that overlaps; flash kernels for new chips from 2025. "
        "Those that split layers do as Megatron has since 2023: with sequence parallelism, in interleaved pipelines.",
        has_sequence_parallel=True,
        chunk_layer_count=CHUNK_LAYERS,
        is_eager=True,
        compiled_words=("compile", "nanochat"),
        generic_until=2025,
        gradient_byte=2.0,
    ),
)


def year_and_release(row: Row, flags: list[str]) -> tuple[float, float]:
    """Return (year, release as in 26.05) of a run's software.

    A year unpublished is that of the release in the framework's name, else 2024 (flag: year); a release unnamed is the
    first of the year.
    """
    version = re.search(r"\b(\d\d)\.(\d\d)", row["framework"])
    year = row["year"] or 0.0
    if year < FIRST_YEAR:
        flags.append("year")
        year = 2000.0 + float(version[1]) if version else DEFAULT_YEAR
    return year, float(version[0]) if version else year - 2000.0


def stack_of(row: Row, vendor: str, flags: list[str]) -> tuple[Stack, float]:
    """Return (stack, year) of a run: the first stack that its framework, year and release match.

    On a chip of Google's everything is compiled by XLA, whatever the framework is called.
    """
    name = "xla" if vendor == "Google" else row["framework"].lower()
    year, release = year_and_release(row, flags)
    for each in STACKS:
        is_named = any(part in name for part in each.names)
        is_then = each.first_year <= year <= each.last_year and each.first_release <= release < each.before_release
        if is_named and is_then:
            return each, year
    raise AssertionError("the last stack takes every run")
