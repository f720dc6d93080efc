"""The model of one packed point: rows of numbers in, numbers out. `models.evaluate` batches these.

An outcome of a fully placed point, an optimistic bound for a layout that is not yet placed, the step under one
placement; and the same for cost, sites and transformers.
"""

import jax.numpy as jnp

from models.effects.economics import Economics, RunCost, run_cost
from models.effects.sites import LocalSteps, SiteOutcome, site_outcome
from models.outcome import Outcome
from models.packing import (
    DEGREES,
    RECOMPUTE_NAMES,
    field_names,
    layout_names,
    layout_of,
    placement_of,
    scenario_names,
    scenario_of,
    transformer_names,
    transformer_of,
    transformer_scenario_names,
    transformer_split_names,
)
from models.point import Layout, NetworkLevel, Physics, Placement, Scenario
from models.quantities import Flag, Quantity, Scalar
from models.step import ideal_step_time_s, step
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import Constants
from models.transformer_rates import Point
from models.transformer_step import transformer_step

SITE_NUMBERS = ("parameter_byte", "site_count", "site_one_way_byte_per_s", "site_latency_s", "site_step_time_s")
PLACED_FIELDS = (
    "step_time_s",
    "tensor_time_s",
    "layer_transfer_time_s",
    "data_time_s",
    "latency_time_s",
)
"""What of an outcome depends on the placement; the rest follows from the layout alone, utilisation from both."""
LAYOUT_FIELDS = ("matmul_time_s", "bubble_fraction", "memory_byte", "fits_in_memory")


def optimistic_network(network: tuple[NetworkLevel, ...]) -> tuple[NetworkLevel]:
    """Return one level no placement can beat: the summed bandwidth and the least latency of all levels.

    Source: arXiv 2411.01137's public code (the bound of its search).  Valid because traffic of one kind sums, over
    levels, to what one level would carry, and max_k (x_k / w_k) >= sum x_k / sum w_k.
    """
    bandwidth = network[0].one_way_byte_per_s
    latency = network[0].latency_s
    for level in network[1:]:
        bandwidth = bandwidth + level.one_way_byte_per_s
        latency = jnp.minimum(latency, level.latency_s)
    return (NetworkLevel(group_ranks=network[-1].group_ranks, one_way_byte_per_s=bandwidth, latency_s=latency),)


def single_level_placement(layout: Layout) -> Placement:
    """Return the placement of all ranks on one level."""
    return Placement(**{degree: (getattr(layout, degree),) for degree in DEGREES})


def traffic_time_s(outcome: Outcome) -> Scalar:
    """Return the bandwidth time of all traffic, the first tie-break between layouts of equal step time."""
    return outcome.tensor_time_s + outcome.layer_transfer_time_s + outcome.data_time_s


def outcome_of_point(point: Quantity, physics: Physics, level_count: int) -> tuple[Scalar, ...]:
    """Return the outcome's fields, in order, of one fully placed point (packed)."""
    scenario, layout, rest = split_point(point, level_count)
    outcome = step(scenario=scenario, layout=layout, placement=placement_of(rest, level_count), physics=physics)
    return tuple(getattr(outcome, name) for name in field_names(Outcome))


def bound_of_layout(point: Quantity, physics: Physics, level_count: int) -> tuple[Scalar, Scalar]:
    """Return (a step time no placement can beat, whether it fits in memory) of one unplaced layout (packed)."""
    scenario, layout, _ = split_point(point, level_count)
    ideal = Scenario(
        hardware=scenario.hardware,
        network=optimistic_network(scenario.network),
        architecture=scenario.architecture,
        workload=scenario.workload,
    )
    outcome = step(scenario=ideal, layout=layout, placement=single_level_placement(layout), physics=physics)
    return outcome.step_time_s, outcome.fits_in_memory


def placed_step(point: Quantity, lower: Quantity, physics: Physics, level_count: int) -> tuple[Scalar, Scalar]:
    """Return (step time, traffic time) of a layout under one placement; inf where the placement does not divide it."""
    scenario, layout, _ = split_point(point, level_count)
    placement, divides = complete_placement(layout, lower, level_count)
    outcome = step(scenario=scenario, layout=layout, placement=placement, physics=physics)
    return jnp.where(divides, outcome.step_time_s, jnp.inf), jnp.where(divides, traffic_time_s(outcome), jnp.inf)


def complete_placement(layout: Layout, lower: Quantity, level_count: int) -> tuple[Placement, Flag]:
    """Return the placement whose bounded levels are `lower` and whose top level takes the rest, and if that divides.

    XLA may divide by multiplying with a reciprocal, and 3 x 49 times 1/49 is not 3: so the quotient is rounded, and
    checked by multiplying back, which is exact.
    """
    rows = list(lower)
    divides = jnp.array(True)
    top = []
    for index, degree in enumerate(DEGREES):
        whole, inside = getattr(layout, degree), jnp.ones(())
        for level in range(level_count - 1):
            inside = inside * rows[level * len(DEGREES) + index]
        rest = jnp.round(whole / inside)
        divides = divides & (rest * inside == whole)
        top.append(rest)
    return placement_of(rows + top, level_count), divides


def split_point(point: Quantity, level_count: int) -> tuple[Scenario, Layout, list[Scalar]]:
    """Return the bundles of a packed point, and the rows that follow them."""
    rows = list(point)
    layout_start = len(scenario_names(level_count))
    layout_end = layout_start + len(layout_names())
    return scenario_of(rows[:layout_start], level_count), layout_of(rows[layout_start:layout_end]), rows[layout_end:]


def cost_of_run(rows: Quantity) -> tuple[Scalar, ...]:
    """Return the fields of `RunCost`, in order, of one run: rows of Economics, accelerators, run time in s."""
    names = field_names(Economics)
    economics = Economics(**dict(zip(names, rows, strict=False)))
    count, run_time_s = rows[len(names)], rows[len(names) + 1]
    cost = run_cost(economics=economics, accelerator_count=count, run_time_s=run_time_s)
    return tuple(getattr(cost, name) for name in field_names(RunCost))


def sites_of_run(rows: Quantity) -> tuple[Scalar, ...]:
    """Return the fields of `SiteOutcome`, in order: rows of LocalSteps, then of SITE_NUMBERS."""
    names = field_names(LocalSteps)
    local = LocalSteps(**dict(zip(names, rows, strict=False)))
    numbers = dict(zip(SITE_NUMBERS, list(rows)[len(names) :], strict=True))
    outcome = site_outcome(local=local, **numbers)
    return tuple(getattr(outcome, name) for name in field_names(SiteOutcome))


def outcome_of_transformer(rows: Quantity, constants: Constants) -> tuple[Scalar, ...]:
    """Return the fields of `TransformerOutcome`, in order, of one packed point of the calibrated model."""
    outcome = transformer_step(Point(*transformer_of(list(rows)), constants))
    return tuple(getattr(outcome, name) for name in field_names(TransformerOutcome))


def point_of_layout(scenario: Quantity, split: Quantity, recompute: Quantity, constants: Constants) -> Point:
    """Return the point whose layout comes in two parts, the split and what is recomputed.

    What depends on one part alone is computed once for all of the other.
    """
    values = dict(zip(transformer_scenario_names(), list(scenario), strict=True))
    values |= dict(zip(transformer_split_names(), list(split), strict=True))
    values |= dict(zip(RECOMPUTE_NAMES, list(recompute), strict=True))
    return Point(*transformer_of([values[name] for name in transformer_names()]), constants)


def time_of_transformer(
    scenario: Quantity, split: Quantity, recompute: Quantity, constants: Constants
) -> tuple[Scalar, Scalar]:
    """Return (wall time a step, peak memory) of one layout of one scenario: what a search needs, and no more."""
    outcome = transformer_step(point_of_layout(scenario, split, recompute, constants))
    return outcome.step_time_s / outcome.goodput_fraction, outcome.memory_byte


def outcome_of_layout(
    scenario: Quantity, split: Quantity, recompute: Quantity, constants: Constants
) -> tuple[Scalar, ...]:
    """Return the fields of `TransformerOutcome`, in order, of one layout of one scenario."""
    outcome = transformer_step(point_of_layout(scenario, split, recompute, constants))
    return tuple(getattr(outcome, name) for name in field_names(TransformerOutcome))


def outcome_of_placement(
    point: Quantity, lower: Quantity, physics: Physics, level_count: int
) -> tuple[tuple[Scalar, ...], tuple[Scalar, ...], Flag]:
    """Return (PLACED_FIELDS; LAYOUT_FIELDS and the ideal time; whether the placement divides the layout)."""
    scenario, layout, _ = split_point(point, level_count)
    placement, divides = complete_placement(layout, lower, level_count)
    outcome = step(scenario=scenario, layout=layout, placement=placement, physics=physics)
    placed, unplaced = (tuple(getattr(outcome, name) for name in names) for names in (PLACED_FIELDS, LAYOUT_FIELDS))
    return placed, (*unplaced, ideal_step_time_s(scenario=scenario, layout=layout)), divides
