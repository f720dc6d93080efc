"""From catalogue entries to what the calibrated physics takes of chips and networks."""

import math

from pipeline.catalogue import Chip, Topology, network_fields, peak_flop_per_s, resolved_precision, word_byte
from pipeline.catalogue_load import fail

NVIDIA_EXPONENTIAL_PER_CLOCK = 16.0  # special-function results a clock and SM: CUDA C++ programming guide, table 5
ULTRA_EXPONENTIAL_PER_CLOCK = 32.0  # Blackwell Ultra doubles it: NVIDIA, Inside Blackwell Ultra, 2025-08
ULTRA = ("b300", "gb300_nvl72")
UNBOUNDED_RANKS = 1e15  # more accelerators than any run has; finite, so that products with it stay numbers
FLOP_PER_EXPONENTIAL = 130.0  # A100's matmul rate over its special-function rate: assumed where no rate is published
FULL_POWER_W = {
    "gb200_nvl72": 1400.0,
    "h100_sxm5": 700.0,
}  # of the same silicon where it may draw most: GB300, H100 SXM
SUSTAINED_CLOCK_HZ = 1.92e9  # clock of Hopper and Blackwell parts under load; a printed boost clock may be higher


def sixteen_bit_peak(chip: Chip) -> float:
    """Return the dense peak that 16-bit arithmetic has, or FP32's on a chip without it."""
    peaks = [peak_flop_per_s(chip, name) or 0.0 for name in ("bf16", "fp16")]
    return max(peaks) or peak_flop_per_s(chip, "fp32") or 0.0


def exponential_per_s(chip: Chip) -> float:
    """Return how many exponentials the chip computes a second: units x clock x 16 (32 on Blackwell Ultra).

    Where no vendor figure exists, the 16-bit peak / 130, A100's ratio.
    """
    if chip.vendor != "NVIDIA" or not chip.multiprocessor_count:
        return sixteen_bit_peak(chip) / FLOP_PER_EXPONENTIAL
    clock_hz = min(chip.boost_clock_hz or SUSTAINED_CLOCK_HZ, SUSTAINED_CLOCK_HZ)
    rate = ULTRA_EXPONENTIAL_PER_CLOCK if chip.id in ULTRA else NVIDIA_EXPONENTIAL_PER_CLOCK
    return chip.multiprocessor_count * clock_hz * rate


def power_ratio(chip: Chip) -> float:
    """Return the chip's power limit over that of the full part of its design; 1 for designs sold at one limit."""
    return min(1.0, chip.tdp_w / FULL_POWER_W.get(chip.id, chip.tdp_w)) if chip.tdp_w else 1.0


def accelerator_fields(chip: Chip, precision: str) -> dict[str, float]:
    """Return the fields of `models.transformer_point.Accelerator` for a chip at a precision.

    Linear layers run at the precision's peak, everything else at the 16-bit peak. Raises UserError in one line.
    """
    resolved = resolved_precision(chip, precision)
    linear = peak_flop_per_s(chip, resolved)
    if not linear:
        key = f"peak_dense_{resolved}_flop_per_s"
        raise fail(chip.file, key, linear, f"{chip.id} has no {resolved} peak", "choose precision auto or another")
    sixteen = sixteen_bit_peak(chip)
    return {
        "peak_16bit_flop_per_s": sixteen,
        "peak_linear_flop_per_s": max(linear, sixteen) if resolved in ("fp8", "fp4", "int8") else linear,
        "achievable_matmul_fraction": float(chip.sustained_fraction or 0.0),
        "exponential_per_s": exponential_per_s(chip),
        "hbm_byte_per_s": float(chip.hbm_byte_per_s or 0.0),
        "processor_count": float(chip.multiprocessor_count or 1.0),
        "power_ratio": power_ratio(chip),
    }


def link_fields(chip: Chip, topology: Topology) -> dict[str, float]:
    """Return the fields of `models.transformer_point.Links`: the domain, the pod and the network between pods.

    Of one level, the domain is everything. Of two, the pod is. Of four, the middle two are one pod, at the slower rate.
    """
    levels = network_fields(chip, topology)
    lowest = levels[0]
    middle, top = levels[1:-1] or levels[1:] or [lowest], levels[-1]
    has_pods = len(levels) > 2
    return {
        "scale_up_byte_per_s": lowest["one_way_byte_per_s"],
        "scale_out_byte_per_s": min(level["one_way_byte_per_s"] for level in middle),
        "domain_ranks": lowest["group_ranks"] if len(levels) > 1 else UNBOUNDED_RANKS,
        "pod_ranks": math.prod(level["group_ranks"] for level in levels[:-1]) if has_pods else UNBOUNDED_RANKS,
        "top_byte_per_s": top["one_way_byte_per_s"],
        "top_latency_s": top["latency_s"] if has_pods else 0.0,
    }


def precision_fields(precision: str) -> dict[str, float]:
    """Return the fields of `models.transformer_point.Software` that the precision of the linear layers settles.

    Casting to 8 or 4 bits reads 2 bytes and writes a row-wise copy: 3 bytes an element (Micikevicius et al. 2022).
    Where matmuls take 8 bits or fewer, weights are sent in 8 (Transformer Engine's fp8_param_gather).
    """
    operand_byte = word_byte(precision)
    return {
        "operand_byte": operand_byte,
        "cast_byte": 3.0 if operand_byte < 2.0 else 0.0,
        "is_4bit": 1.0 if precision == "fp4" else 0.0,
        "gather_byte": 1.0 if operand_byte < 2.0 else 2.0,
    }


def capacity_byte(chip: Chip) -> float:
    """Return the memory that a program can fill: vendors' GB of device memory are 2^30 bytes (nvidia-smi shows them).

    Source: reported totals of NVIDIA and TPU parts; other vendors' parts are taken at 1e9.
    """
    scale = 2.0**30 / 1e9 if chip.vendor in ("NVIDIA", "Google") else 1.0
    return float(chip.hbm_byte or 0.0) * scale


def one_pod() -> dict[str, float]:
    """Return the fields of `Links` that say: everything is one pod."""
    return {"pod_ranks": UNBOUNDED_RANKS, "top_byte_per_s": 1.0, "top_latency_s": 0.0}
