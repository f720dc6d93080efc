"""What is fitted, and what is believed before: a centre, how sure of it (sigma of its logarithm), and hard limits."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Prior:
    """A log-normal belief about one constant."""

    centre: float
    log_sigma: float
    low: float
    high: float
    why: str


TIME_PRIORS = {
    "sustained_matmul_fraction": Prior(0.9, 0.15, 0.7, 1.05, "clocks and shapes of a step below a benchmark's best"),
    "flash_attention_fraction": Prior(0.7, 0.35, 0.2, 1.0, "Dao 2023: 50 to 73% of peak on A100, exponentials apart"),
    "foreign_attention_time_ratio": Prior(1.5, 0.25, 1.0, 3.0, "Shah 2024: version 3 is 1.5 to 2 times version 2"),
    "early_attention_time_ratio": Prior(1.3, 0.25, 1.0, 3.0, "Dao 2023: version 2 is 1.3 to 2 times version 1"),
    "fused_pass_count": Prior(16.0, 0.35, 8.0, 32.0, "counted in a fused transformer layer"),
    "eager_pass_count": Prior(28.0, 0.35, 14.0, 56.0, "counted in an eager transformer layer"),
    "score_pass_count": Prior(6.0, 0.35, 3.0, 12.0, "scale, mask, softmax, dropout, read by the value product"),
    "host_layer_s": Prior(0.7e-3, 0.4, 0.2e-3, 2e-3, "about 70 launches of 10 us"),
    "expert_host_s": Prior(2e-3, 0.5, 0.5e-3, 5e-3, "two waits for token counts, pipelines of launches drained"),
    "expert_launch_s": Prior(0.1e-3, 0.5, 0.02e-3, 0.4e-3, "ten launches of 10 us"),
    "expert_pass_count": Prior(10.0, 0.25, 4.0, 60.0, "permute, pad, activate, weigh, un-permute"),
    "scale_out_achieved_fraction": Prior(0.75, 0.25, 0.4, 1.0, "NCCL across servers reaches 70 to 90% of the ports"),
    "four_bit_gain_fraction": Prior(0.7, 0.3, 0.3, 1.0, "scaling factors and rotations take their share"),
}
MEMORY_PRIORS = {
    "allocator_ratio": Prior(1.08, 0.05, 1.0, 1.25, "reserved over allocated memory of a caching allocator"),
    "context_byte": Prior(3e9, 0.3, 1e9, 5e9, "CUDA context 0.5 GB, NCCL buffers, cuBLAS workspaces"),
}
SOURCE_GROUPS = ("mpt", "vtrain", "bigscience", "bloom", "mbridge", "dgxc", "nemo24", "nemo25", "tpu", "ironwood")
SOURCE_GROUPS += ("flagperf", "torchtitan", "automodel")


def source_group(family: str) -> str:
    """Return the source that a family came from: families of one author, machine and stack are left out together."""
    return next((prefix for prefix in SOURCE_GROUPS if family.startswith(prefix)), family)
