"""The stacks that published runs ran on, as data.

A run belongs to the first stack one of whose names is in its framework and whose years hold its year. What a stack
does is an input of the model; none of it is fitted and none of it is about one run.
"""

import re

from pipeline.runs_stack import (
    CHUNK_LAYERS,
    DEEPSPEED,
    EAGER,
    EARLY,
    IN_32_BITS,
    LATE_REDUCTION,
    OWN,
    RECIPE,
    RECIPE_WHY,
    SHARDED,
    TRACED,
    UNFUSED,
    VENDOR_WHY,
    Stack,
)
from pipeline.runs_table import Row

DEFAULT_YEAR = 2024.0
FIRST_YEAR = 2012.0  # a year before has been misread
STACKS = (
    Stack(
        id="xla_gpu",
        names=("maxtext", "pax"),
        vendor="NVIDIA",
        why="As XLA; NVIDIA's recipes keep the projections of queries, keys and values (save_qkv_proj).",
        recomputes="all but qkv",
        **TRACED,
    ),
    Stack(
        id="xla",
        names=("maxtext", "jax", "paxml", "praxis", "levanter", "t5x", "easylm", "axlearn", "pathways", "gspmd")
        + ("mesh tensorflow", "mesh-tensorflow", "xla"),
        why="A compiler fuses everything and the host launches one program; losses are computed in 16 bits; layers "
        "are recomputed unless a policy says otherwise (MaxText, Pax: defaults).",
        recomputes="full",
        **TRACED,
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
        why=RECIPE_WHY + " Releases 24.0x kept 2-byte remainders of the weights: 10 bytes of optimiser.",
        optimizer_byte=10.0,
        **RECIPE,
    ),
    Stack(
        id="vendor_recipes_26_06",
        names=("bridge",),
        first_release=26.05,
        why=RECIPE_WHY + " From 26.06 whole layers are CUDA graphs: the host does not wait for token counts, and one "
        "kernel permutes, pads and quantises (0.4 of the passes: assumption).",
        expert_host_ratio=0.0,
        expert_launch_ratio=0.0,
        expert_pass_ratio=0.4,
        **RECIPE,
    ),
    Stack(
        id="automodel",
        names=("automodel",),
        why="PyTorch FSDP2 with Transformer Engine's kernels; weights, gradients and moments in 16 "
        "bits (its examples/benchmark/configs).",
        attention=OWN,
        sharding_stage=3.0,
        is_pure_16bit=True,
        sharded_state_byte=(2.0, 4.0),
        byte_per_logit=4.0,
    ),
    Stack(
        id="vendor_recipes_bridge",
        names=("bridge",),
        why=RECIPE_WHY + " Parts of layers with experts (attention, router, preprocessing) are captured in "
        "CUDA graphs (scripts/performance/configs).",
        captures_graphs=True,
        **RECIPE,
    ),
    Stack(
        id="vendor_recipes",
        names=("nemo",),
        drops_tokens=True,
        why=RECIPE_WHY + " They interleave in chunks of four layers and drop what experts cannot hold "
        "(MegatronTokenDropCallback).",
        **RECIPE,
    ),
    Stack(id="megatron_core", names=("megatron-core", "mcore", "transformer engine"), why=VENDOR_WHY, **SHARDED),
    Stack(
        id="deepspeed_2022",
        names=("deepspeed", "neox"),
        last_year=2022,
        why="Eager kernels, unfused attention with dropout, gradients reduced after the backward pass, whole tensors "
        "sent from every tensor rank, each stage's outputs kept (DeepSpeed's pipeline engine).",
        attention=UNFUSED,
        pipeline_is_split=False,
        **IN_32_BITS,
    ),
    Stack(
        id="megatron_deepspeed",
        names=("megatron-deepspeed",),
        why="As before 2023, with split sends (pipe_partitioned).",
        attention=UNFUSED,
        **IN_32_BITS,
    ),
    Stack(
        id="deepspeed",
        names=("deepspeed", "neox"),
        why="Since 2023 with flash attention and split sends; gradients are accumulated in the weights' 16 bits where "
        "ZeRO is on (DeepSpeed's get_data_types), with a partitioned copy in 32.",
        **DEEPSPEED,
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
        id="megatron_lm_2023",
        names=("megatron",),
        last_year=2023,
        why="As in 2022, with flash attention of the first generation.",
        **EAGER,
        **LATE_REDUCTION,
    ),
    Stack(
        id="megatron_lm", names=("megatron",), why="Since 2024 Megatron-LM is Megatron-Core. " + VENDOR_WHY, **SHARDED
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
        is_compiled_from=2025,
        gathers_8bit=True,
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
        if is_named and is_then and each.vendor in ("", vendor):
            return each, year
    raise AssertionError("the last stack takes every run")
