"""A layout as the arguments of the programs that train with it, and what of it they cannot express.

Names are those of Megatron-LM core 0.14 (megatron/training/arguments.py), torchtitan 0.2 (job_config.py) and DeepSpeed
0.18 (config JSON); newer versions may rename them.
"""

from collections.abc import Mapping
from typing import Any

Layout = Mapping[str, float]
FULL_SHARDING = 3  # ZeRO-3, FSDP


def megatron_arguments(layout: Layout, run: Mapping[str, float], precision: str) -> list[str]:
    """Return the command-line arguments of Megatron-LM."""
    n = {name: int(value) for name, value in layout.items() if name != "recompute_layer_fraction"}
    arguments = [
        f"--tensor-model-parallel-size {n['tensor_ranks']}",
        f"--pipeline-model-parallel-size {n['pipeline_ranks']}",
        f"--context-parallel-size {n['context_ranks']}",
        f"--micro-batch-size {n['microbatch_sequence']}",
        f"--global-batch-size {_whole_batch(layout)}",
        f"--seq-length {int(run['sequence_token'])}",
    ]
    if n["context_ranks"] > 1:
        arguments.append(f"--cp-comm-type {_context_kind(layout)}")
        if _context_kind(layout) == "a2a+p2p":
            exchanged = n["context_all_to_all_ranks"]
            sizes = f"{exchanged} {n['context_ranks'] // exchanged}"
            arguments.append(f"--hierarchical-context-parallel-sizes {sizes}")
    if n["tensor_ranks"] > 1:
        arguments.append("--sequence-parallel")
    if run["expert_count"] > 1:
        arguments.append(f"--expert-model-parallel-size {n['expert_ranks']}")
    if n["interleave_count"] > 1:
        arguments.append(f"--num-virtual-stages-per-pipeline-rank {n['interleave_count']}")
    if int(run["layer_count"]) % (n["pipeline_ranks"] * n["interleave_count"]):
        arguments += ["--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"]
    if n["sharding_stage"] >= FULL_SHARDING:
        arguments += ["--use-megatron-fsdp", "--data-parallel-sharding-strategy optim_grads_params"]
    arguments.append("--use-distributed-optimizer")
    return [*arguments, "--overlap-grad-reduce", *_megatron_recompute(layout, run), *_megatron_precision(precision)]


def _context_kind(layout: Layout) -> str:
    exchanged = layout["context_all_to_all_ranks"]
    return "p2p" if exchanged == 1 else "a2a" if exchanged == layout["context_ranks"] else "a2a+p2p"


def _megatron_recompute(layout: Layout, run: Mapping[str, float]) -> list[str]:
    """Return how many layers of each stage are recomputed: the share of the layout, rounded up."""
    stage_layers = run["layer_count"] / (layout["pipeline_ranks"] * layout["interleave_count"])
    layers = -int(-layout["recompute_layer_fraction"] * stage_layers // 1)
    if layers == 0:
        return []
    return ["--recompute-granularity full", "--recompute-method block", f"--recompute-num-layers {layers}"]


def _megatron_precision(precision: str) -> list[str]:
    return {"fp8": ["--bf16", "--fp8-format hybrid"], "fp32": []}.get(precision, [f"--{precision}"])


def torchtitan_arguments(layout: Layout, run: Mapping[str, float], precision: str) -> list[str]:
    """Return the command-line arguments of torchtitan; data ranks shard (FSDP), which is all it knows."""
    n = {name: int(value) for name, value in layout.items() if name != "recompute_layer_fraction"}
    shards = n["sharding_stage"] >= FULL_SHARDING
    arguments = [
        f"--parallelism.tensor_parallel_degree {n['tensor_ranks']}",
        f"--parallelism.pipeline_parallel_degree {n['pipeline_ranks']}",
        f"--parallelism.context_parallel_degree {n['context_ranks']}",
        f"--parallelism.data_parallel_shard_degree {n['data_ranks']}",
        f"--parallelism.fsdp_reshard_after_forward {'always' if shards else 'never'}",
        f"--training.seq_len {int(run['sequence_token'])}",
        f"--training.global_batch_size {_whole_batch(layout)}",
    ]
    local = n["microbatch_sequence"]
    if n["pipeline_ranks"] > 1:
        local *= n["microbatch_count"]
        schedule = "Interleaved1F1B" if n["interleave_count"] > 1 else "1F1B"
        schedule = "ZBVZeroBubble" if n["is_zero_bubble"] else schedule
        arguments.append(f"--parallelism.pipeline_parallel_schedule {schedule}")
        arguments.append(f"--parallelism.pipeline_parallel_microbatch_size {n['microbatch_sequence']}")
    arguments.append(f"--training.local_batch_size {local}")
    if run["expert_count"] > 1:
        arguments.append(f"--parallelism.expert_parallel_degree {n['expert_ranks']}")
    fraction = layout["recompute_layer_fraction"]
    mode = "none" if fraction == 0.0 else "full" if fraction == 1.0 else "selective"
    return [*arguments, f"--activation_checkpoint.mode {mode}"]


def deepspeed_config(layout: Layout, run: Mapping[str, float], precision: str) -> dict[str, Any]:
    """Return the configuration of DeepSpeed; pipeline stages and experts are arguments of the model's own code."""
    config: dict[str, Any] = {
        "train_batch_size": _whole_batch(layout),
        "train_micro_batch_size_per_gpu": int(layout["microbatch_sequence"]),
        "gradient_accumulation_steps": int(layout["microbatch_count"]),
        "zero_optimization": {"stage": int(layout["sharding_stage"])},
        precision if precision in ("bf16", "fp16") else "bf16": {"enabled": True},
    }
    if layout["tensor_ranks"] > 1:
        config["tensor_parallel"] = {"autotp_size": int(layout["tensor_ranks"])}
    return config


def remarks(layout: Layout, run: Mapping[str, float]) -> list[str]:
    """Return what of a layout the arguments do not say, or not exactly."""
    said = []
    if layout["is_zero_bubble"]:
        said.append("Megatron-LM has no zero-bubble schedule: without one the bubble is about three times as long")
    if layout["pipeline_ranks"] > 1:
        said.append(f"DeepSpeed: PipelineModule(num_stages={int(layout['pipeline_ranks'])}) in the model's code")
    if layout["context_all_to_all_ranks"] > 1:
        said.append("torchtitan moves keys and values between context ranks: it has no exchange of heads")
    if layout["context_ranks"] > 1:
        is_exchanged = layout["context_all_to_all_ranks"] == layout["context_ranks"]
        which = "" if is_exchanged else ", an all-to-all: it has no ring"
        ranks = int(layout["context_ranks"])
        said.append(f"DeepSpeed: sequence parallelism (Ulysses) of {ranks} in the model's code{which}")
    if run["expert_count"] > 1:
        said.append(f"DeepSpeed: MoE(ep_size={int(layout['expert_ranks'])}) in the model's code")
    if 0.0 < layout["recompute_layer_fraction"] < 1.0:
        share = f"{layout['recompute_layer_fraction']:.0%}"
        said.append(
            f"torchtitan's `selective` is near to, not the same as, full recomputation of {share} of the layers"
        )
    return said


def _whole_batch(layout: Layout) -> int:
    """Return the sequences of a step with the last microbatch full: the batch that runs, padding included."""
    return int(layout["data_ranks"] * layout["microbatch_count"] * layout["microbatch_sequence"])
