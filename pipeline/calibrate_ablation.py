"""`flopscape calibrate --without EFFECT`: what each effect is worth, by fitting the model again with it taken out.

An effect is taken out by neutral values of constants, which then leave the fit, and of inputs of the runs; the model
itself has no switches for it. The error that counts is that of runs whose family was left out of the fit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pipeline.calibrate import (
    FAMILY_ITERATIONS,
    GROUPS,
    WHOLE_ITERATIONS,
    in_group,
    refit_from,
    time_problem,
)
from pipeline.calibrate_fit import fit, folds
from pipeline.calibrate_priors import TIME_PRIORS
from pipeline.errors import UserError
from pipeline.run_scores import score
from pipeline.runs import Runs

NOTHING = "nothing"
EVERY = "all"
FEWEST_PASSES = 1e-6  # their ratios are taken
WHOLE_MACHINE_RANKS = 1e9  # more than any run has: all of it is one scale-up domain


@dataclass(frozen=True, kw_only=True)
class Effect:
    """One effect: what a model without it says, and the neutral values that take it out."""

    without: str
    constants: Mapping[str, float] = field(default_factory=dict)  # held so, no longer fitted
    columns: Mapping[str, float | str] = field(default_factory=dict)  # inputs of the runs: a number, or another column


EFFECTS: Mapping[str, Effect] = {
    "recomputation": Effect(
        without="nothing is computed twice",
        columns={f"recompute_{kind}_fraction": 0.0 for kind in ("matmul", "attention", "elementwise")},
    ),
    "memory_bound_kernels": Effect(
        without="norms, activations, residuals and scores cost no traffic",
        constants=dict.fromkeys(("fused_pass_count", "eager_pass_count", "score_pass_count"), FEWEST_PASSES),
    ),
    "expert_permutation": Effect(
        without="tokens reach their experts without being copied", constants={"expert_pass_count": 0.0}
    ),
    "attention_kernels": Effect(
        without="all attention is a fused kernel of its chip's own generation",
        constants={"foreign_attention_time_ratio": 1.0, "early_attention_time_ratio": 1.0},
        columns={"is_unfused_attention": 0.0},
    ),
    "attention_exponentials": Effect(
        without="softmax is free in fused kernels", constants={"exponential_work_ratio": 0.0}
    ),
    "matmul_tiles": Effect(
        without="matmuls of any shape run at the rate of large ones",
        constants={"matmul_tile_width": 1.0, "wave_loss_fraction": 0.0},
    ),
    "achievable_rates": Effect(
        without="every chip reaches its nominal peak", columns={"achievable_matmul_fraction": 1.0}
    ),
    "low_precision_peak": Effect(
        without="8 and 4 bit matmuls run at the 16-bit rate",
        constants={"four_bit_gain_fraction": 1.0},
        columns={"peak_linear_flop_per_s": "peak_16bit_flop_per_s"},
    ),
    "power_limit": Effect(without="a lower power limit costs nothing", columns={"power_ratio": 1.0}),
    "launch_and_host": Effect(
        without="kernels launch at once and steps have no overhead",
        constants={"host_layer_s": 0.0, "expert_host_s": 0.0, "step_overhead_s": 0.0},
    ),
    "logits": Effect(without="logits and loss are free", columns={"vocabulary_size": 1.0}),
    "gradients": Effect(without="gradients are neither accumulated nor reduced", columns={"gradient_byte": 0.0}),
    "optimizer": Effect(without="the optimiser is free", constants={"optimizer_step_byte": 0.0}),
    "tensor_collectives": Effect(without="all hidden", constants={"tensor_exposed_fraction": 0.0}),
    "data_collectives": Effect(
        without="all hidden",
        constants={"data_exposed_fraction": 0.0, "shard_exposed_fraction": 0.0},
        columns={"is_reduction_overlapped": 1.0},
    ),
    "expert_collectives": Effect(without="all hidden", constants={"expert_exposed_fraction": 0.0}),
    "collective_latency": Effect(
        without="collectives cost their bytes alone",
        constants={
            "collective_latency_s": 0.0,
            "scale_up_ring_hop_s": 0.0,
            "scale_out_ring_hop_s": 0.0,
            "scale_out_tree_hop_s": 0.0,
        },
    ),
    "placement": Effect(
        without="the whole machine is one scale-up domain",
        constants={"scale_out_achieved_fraction": 1.0},
        columns={"domain_ranks": WHOLE_MACHINE_RANKS},
    ),
    "pipeline_bubble": Effect(without="no stage waits", columns={"bubble_ratio": 0.0}),
    "interleaving": Effect(without="one chunk a stage", columns={"interleave_ratio": 1.0}),
}


def chosen_effects(names: Sequence[str]) -> list[str]:
    """Return the effects that are asked for, in the order of EFFECTS; `all` is every one. Raises UserError."""
    asked = [each for name in names for each in name.split(",")]
    for each in asked:
        if each not in EFFECTS and each != EVERY:
            valid = ", ".join([*EFFECTS, EVERY])
            raise UserError(f"command line: --without {each}: no such effect; choose of {valid}")
    return [name for name in EFFECTS if name in asked or EVERY in asked]


def without(runs: Runs, effect: Effect) -> Runs:
    """Return the runs with the inputs that take an effect out."""
    columns = dict(runs.columns)
    for name, value in effect.columns.items():
        columns[name] = columns[value] if isinstance(value, str) else np.full_like(columns[name], value)
    return replace(runs, columns=columns)


def ablation(runs: Runs, constants: Mapping[str, float], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the errors with nothing taken out, then without each effect: {"without", "meaning", groups}.

    Of each group the rows, and the median and 90th percentile of |error| of step time, families left out of the fit.
    """
    nothing = Effect(without="the model as it is")
    for name, effect in {NOTHING: nothing, **{each: EFFECTS[each] for each in names}}.items():
        priors = {each: prior for each, prior in TIME_PRIORS.items() if each not in effect.constants}
        problem, about = time_problem(without(runs, effect), {**constants, **effect.constants}, priors)
        whole = fit(problem, np.ones(len(problem.families), dtype=bool), iterations=WHOLE_ITERATIONS)
        predicted, _ = folds(problem.families, refit_from(problem, whole, FAMILY_ITERATIONS), problem.predicted)
        groups = {}
        for group in GROUPS:
            mask = problem.is_used & in_group(about, group)
            found = score(predicted[mask], problem.measured[mask])
            groups[group] = {key: found[key] for key in ("rows", "median_abs_error", "p90_abs_error")}
        yield {"without": name, "meaning": effect.without, "groups": groups}


def line(row: Mapping[str, Any]) -> str:
    """Return one row of the ablation as a line of text."""
    shares = [
        f"{each['median_abs_error']:6.1%} {each['p90_abs_error']:6.1%}" if each["rows"] else f"{'-':>13s}"
        for each in row["groups"].values()
    ]
    return f"{row['without']:22s} {'  '.join(shares)}  {row['meaning']}"


def heading() -> str:
    """Return the line above the others."""
    groups = "  ".join(f"{group:>13s}" for group in GROUPS)
    return f"{'without':22s} {groups}  (median and 90th percentile, family left out)"
