"""From a run's stack, chip, precision and notes to the fields of `Software`."""

import re

from pipeline.accelerators import precision_fields
from pipeline.catalogue import Chip
from pipeline.runs_stack import EARLY, OWN, UNFUSED, Stack
from pipeline.runs_table import Row

BUCKET_BYTE = 2e9  # DeepSpeed's default reduce and gather buckets, where ZeRO-1 is published: 5e8 elements of 2 bytes
STATIC_LOGIT_BYTE = 4.0  # XLA keeps logits in 16 bits, with their gradient
GRAPH_RATIO = 0.5  # of the host's work where attention, router and preprocessing are captured: assumption
ASYNCHRONOUS_RATIO = 0.5  # asynchronous tensor parallelism hides half of what shows without
FIRST_GENERATION_LAST_YEAR = 2023  # FlashAttention-2 came in July 2023 and reached stacks the year after
FUSED_PORT_YEAR = 2023  # since then vendors' ports of NVIDIA's stacks call their own fused attention
HOPPER_RELEASE = "2022-03"


def is_new_chip(chip: Chip) -> bool:
    """Return whether generic flash kernels, written for NVIDIA's chips until Ampere, are foreign to a chip."""
    if chip.vendor == "Google":
        return False  # XLA's own kernels
    return chip.vendor != "NVIDIA" or (chip.released or HOPPER_RELEASE) >= HOPPER_RELEASE


def is_volta(chip: Chip) -> bool:
    """Return whether a chip is a V100: no flash kernel was written for it."""
    return chip.id.startswith("v100")


def is_compiled(row: Row, stack: Stack, year: float) -> bool:
    """Return whether a stack that came to be compiled was: by its words, 8-bit matmuls, which need it, or its year."""
    notes = row["notes"].lower()
    if "eager" in notes or "compile" in notes:
        return "eager" not in notes
    return year >= stack.is_compiled_from or "8" in row["precision"]


def kernel_fields(row: Row, stack: Stack, year: float, chip: Chip) -> dict[str, float]:
    """Return which attention kernel ran, whether memory-bound kernels were fused, and the host's cost."""
    name, notes = row["framework"].lower(), row["notes"].lower()
    is_generic = stack.attention != OWN
    is_eager, host = stack.is_eager, stack.host_ratio
    if any(word in name for word in stack.compiled_words):
        is_eager, host = False, min(host, 0.5)
    elif stack.is_compiled_from and not is_compiled(row, stack, year):
        is_eager, host = True, 1.0
    is_first = stack.attention == EARLY or (is_generic and year <= FIRST_GENERATION_LAST_YEAR)
    is_unfused = stack.attention == UNFUSED and not (chip.vendor != "NVIDIA" and year >= FUSED_PORT_YEAR)
    if "flash" in notes and not is_volta(chip):  # what a row says of its attention goes before its stack
        is_unfused = bool(re.search(r"\b(no|without|not|disabled?)\b[^,;.]*flash", notes))
    return {
        "is_unfused_attention": float(is_unfused or (is_generic and is_volta(chip))),
        "is_foreign_attention": float(is_generic and is_new_chip(chip) and year < stack.generic_until),
        "is_early_attention": float(is_first),
        "is_eager": float(is_eager),
        "host_ratio": host,
    }


def expert_fields(row: Row, stack: Stack, chip: Chip, layout: dict[str, float]) -> dict[str, float]:
    """Return what the experts of a layer cost the host: waiting for token counts, and launching expert by expert.

    Where tokens over a capacity are dropped, shapes are fixed and nothing is waited for. Recipes that capture parts of
    a layer in CUDA graphs do so on racks, and on servers without a pipeline: the rest of the layer is launched.
    """
    drops = bool(re.search(r"drop(?!less)|capacity", row["notes"].lower())) and "dropless" not in row["notes"].lower()
    is_captured = stack.captures_graphs and ("nvl72" in chip.id or layout["pipeline_ranks"] == 1.0)
    share = GRAPH_RATIO if is_captured else 1.0
    waits = 0.0 if drops or stack.drops_tokens else stack.expert_host_ratio
    return {"expert_host_ratio": waits * share, "expert_launch_ratio": stack.expert_launch_ratio * share}


def state_fields(row: Row, stack: Stack, sharding_stage: float) -> dict[str, float]:
    """Return the bytes of gradient, optimiser and weight that a parameter has, and of a weight that is sent."""
    sent = {} if stack.gathers_8bit else {"gather_byte": 2.0}  # else as the precision has it
    if sharding_stage == 3.0:
        is_pure = stack.is_pure_16bit or "PURE" in row["notes"]
        weight, optimizer = stack.sharded_state_byte
        gradient = 2.0 if is_pure else 4.0
        return {"gradient_byte": gradient, "optimizer_byte": optimizer, "weight_byte": weight, **sent}
    is_bf16 = row["precision"].lower().startswith("bf") or "BF16 optimizer" in row["notes"]
    state = stack.bf16_state_byte if stack.bf16_state_byte and is_bf16 else (stack.gradient_byte, stack.optimizer_byte)
    return {"gradient_byte": state[0], "optimizer_byte": state[1], "weight_byte": 2.0, **sent}


def logit_tiles(row: Row) -> float:
    """Return in how many tiles the loss takes the logits, from the notes: `16 vocabulary tiles`, 1 if none are said."""
    stated = re.search(r"(\d+) (?:vocab\w*|logit|loss) (?:tiles|chunks)", row["notes"].lower())
    return max(1.0, float(stated[1])) if stated else 1.0


def run_software(
    row: Row, stack: Stack, year: float, chip: Chip, precision: str, layout: dict[str, float]
) -> dict[str, float]:
    """Return the fields of `Software` for a run."""
    is_static = chip.vendor == "Google"
    model = "".join(each for each in row["model_name"].lower() if each.isalnum())
    return {
        **kernel_fields(row, stack, year, chip),
        **precision_fields(precision),
        **state_fields(row, stack, layout["sharding_stage"]),
        **expert_fields(row, stack, chip, layout),
        "expert_pass_ratio": stack.expert_pass_ratio,
        "is_eager_expert": float(model.startswith("gptoss")),  # its recipe switches the fusion of biased experts off
        "byte_per_logit": (STATIC_LOGIT_BYTE if is_static else stack.byte_per_logit) / logit_tiles(row),
        "stage_output_count": float(stack.keeps_stage_output and layout["pipeline_ranks"] > 1.0),
        "bucket_byte": BUCKET_BYTE if "zero1" in row["zero_stage_or_fsdp"].lower() else 0.0,
        "is_static_allocation": float(is_static),
        "has_dropout": float(stack.has_dropout or is_volta(chip)),
        "pipeline_exposed_ratio": stack.pipeline_exposed_ratio,
        "pipeline_is_split": float(stack.pipeline_is_split),
        "tensor_exposed_ratio": ASYNCHRONOUS_RATIO if "asyncTP" in row["notes"] else 1.0,
        "is_reduction_overlapped": float(stack.is_reduction_overlapped),
        "expert_load_ratio": 1.0,
    }
