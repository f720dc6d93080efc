"""Scaling rules: how depth, sparsity, batch and dataset follow from width and compute.

These settle whole numbers, so they are NumPy in int64 and float64 and run before JAX sees anything. Constants come from
the model family's conf file; only the shape of each rule is here.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

BatchRule = Literal["critical_batch", "compute_power_law", "fixed"]


@dataclass(frozen=True, kw_only=True)
class ScalingRules:
    """The rules of one model family, as data (source of each constant: the family's conf file)."""

    width_factors: tuple[int, ...]
    width_minimum: int
    width_maximum: int
    width_multiple: int
    rounding_factors: tuple[int, ...]
    ff_ratio: int
    depth_coefficient: float
    depth_exponent: float
    expert_coefficient: float  # 0 = dense
    expert_reference_weights: float  # d_model d_ff at which a layer has `expert_coefficient` experts
    dataset_token_per_parameter: float
    sequence_token: int
    batch_rule: BatchRule
    batch_reference_token: float
    batch_reference_flop: float
    batch_exponent: float
    batch_coefficient_token: float


@dataclass(frozen=True, kw_only=True)
class FamilyPoints:
    """Model shapes and their training runs, one entry a point (all arrays of one length)."""

    d_model: Int64
    d_ff: Int64
    layer_count: Int64
    expert_count: Int64
    parameter_count: Float64
    dataset_token: Float64
    training_flop: Float64
    global_batch_token: Int64
    sequence_token: Int64


@lru_cache(maxsize=8)
def smooth_numbers(factors: tuple[int, ...]) -> Int64:
    """Return all f 2^i below 2^62 for the given odd factors, sorted: sides that split into many ranks."""
    return np.array(sorted({f << i for f in factors for i in range(60) if f << i < 1 << 62}), dtype=np.int64)


def round_to_smooth(value: Float64, factors: tuple[int, ...]) -> Int64:
    """Return the nearest f 2^i to each value (ties to the smaller).

    Source: arXiv 2411.01137's public code: depth, experts and batch take such values so that degrees divide them.
    """
    members = smooth_numbers(factors)
    above = np.clip(np.searchsorted(members, value), 1, len(members) - 1)
    lower, upper = members[above - 1], members[above]
    return np.where(value - lower <= upper - value, lower, upper)


def family_widths(rules: ScalingRules) -> Int64:
    """Return the widths of the family's sweep: f 2^i between minimum and maximum, whole multiples of a step."""
    members = smooth_numbers(rules.width_factors)
    in_range = (members >= rules.width_minimum) & (members <= rules.width_maximum)
    return members[in_range & (members % rules.width_multiple == 0)]


def batch_sequences(rules: ScalingRules, *, training_flop: Float64, expert_count: Int64) -> Int64:
    """Return the batch in sequences: a whole number of sequences for each expert.

    fixed: b0 / s.  critical_batch: sqrt(E) (C / C0)^a b0 / s.  compute_power_law: sqrt(E) k C^a / s.
    Source: arXiv 2411.01137, section on batch size; DeepSeek LLM (arXiv 2401.02954), section 3.1, for the power law.
    """
    root = np.sqrt(expert_count)
    if rules.batch_rule == "fixed":
        return np.full(training_flop.shape, round(rules.batch_reference_token / rules.sequence_token), dtype=np.int64)
    if rules.batch_rule == "critical_batch":
        growth = (training_flop / rules.batch_reference_flop) ** rules.batch_exponent
        raw = root * growth * rules.batch_reference_token / rules.sequence_token
    else:
        raw = root * rules.batch_coefficient_token * training_flop**rules.batch_exponent / rules.sequence_token
    return expert_count * round_to_smooth(raw / expert_count, rules.rounding_factors)


def family_points(rules: ScalingRules, d_model: Int64) -> FamilyPoints:
    """Return the family's models of the given widths.

    depth: k (d_model d_ff)^a; experts: c sqrt(d_model d_ff / reference); parameters P = 2 d_model d_ff L E;
    dataset D = r P; training FLOP C = 6 P D / E.
    Source: arXiv 2411.01137, section on scaling; Hoffmann et al. 2022 (arXiv 2203.15556) for D = 20 P.
    """
    d_ff = rules.ff_ratio * d_model
    weights = (d_model * d_ff).astype(np.float64)
    layers = round_to_smooth(rules.depth_coefficient * weights**rules.depth_exponent, rules.rounding_factors)
    experts = np.ones_like(d_model)
    if rules.expert_coefficient > 0:
        raw = rules.expert_coefficient * np.sqrt(weights / rules.expert_reference_weights)
        experts = round_to_smooth(raw, rules.rounding_factors)
    parameters = 2.0 * weights * layers * experts
    dataset = rules.dataset_token_per_parameter * parameters
    flop = 6.0 * parameters * dataset / experts
    sequences = batch_sequences(rules, training_flop=flop, expert_count=experts)
    return FamilyPoints(
        d_model=d_model,
        d_ff=d_ff,
        layer_count=layers,
        expert_count=experts,
        parameter_count=parameters,
        dataset_token=dataset,
        training_flop=flop,
        global_batch_token=sequences * rules.sequence_token,
        sequence_token=np.full_like(d_model, rules.sequence_token),
    )
