"""The only place where the model is batched: `jit(vmap(...))` over points, and over placements within a point.

Three kernels over the same `step`: the outcome of fully placed points, an optimistic bound for layouts that are not
yet placed, and the best placement of each layout.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from models.effects.economics import Economics, RunCost, run_cost
from models.effects.sites import LocalSteps, SiteOutcome, site_outcome
from models.outcome import Outcome
from models.packing import (
    DEGREES,
    field_names,
    layout_names,
    layout_of,
    placement_of,
    scenario_names,
    scenario_of,
    transformer_of,
)
from models.point import Layout, NetworkLevel, Physics, Placement, Scenario
from models.quantities import Flag, Index, Quantity, Scalar
from models.step import step
from models.transformer_layer import Point
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import Constants
from models.transformer_step import transformer_step

Matrix = NDArray[np.float64]
POINT_CHUNK = 8192
SEARCH_POINTS = 16384
NEVER_DIVIDES = 1e30
SITE_NUMBERS = ("parameter_byte", "site_count", "site_one_way_byte_per_s", "site_latency_s", "site_step_time_s")


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
    """Return the placement whose bounded levels are `lower` and whose top level takes the rest, and if that divides."""
    rows = list(lower)
    divides = jnp.array(True)
    top = []
    for index, degree in enumerate(DEGREES):
        rest = getattr(layout, degree)
        for level in range(level_count - 1):
            rest = rest / rows[level * len(DEGREES) + index]
        divides = divides & (jnp.floor(rest) == rest)
        top.append(rest)
    return placement_of(rows + top, level_count), divides


def split_point(point: Quantity, level_count: int) -> tuple[Scenario, Layout, list[Scalar]]:
    """Return the bundles of a packed point, and the rows that follow them."""
    rows = list(point)
    layout_start = len(scenario_names(level_count))
    layout_end = layout_start + len(layout_names())
    return scenario_of(rows[:layout_start], level_count), layout_of(rows[layout_start:layout_end]), rows[layout_end:]


def best_placement(
    point: Quantity, lowers: Quantity, physics: Physics, level_count: int
) -> tuple[Scalar, Scalar, Index]:
    """Return (step time, traffic time, index) of a layout's best placement: least time, then traffic, then index."""
    each = partial(placed_step, physics=physics, level_count=level_count)
    times, traffic = jax.vmap(each, in_axes=(None, 1))(point, lowers)
    best_time = jnp.min(times)
    tied_traffic = jnp.where(times == best_time, traffic, jnp.inf)
    index = jnp.argmin(tied_traffic)
    return best_time, tied_traffic[index], index


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


def time_of_transformer(rows: Quantity, constants: Constants) -> tuple[Scalar, Scalar]:
    """Return (wall time a step, peak memory) of one packed point: what a search needs; the rest is not computed."""
    outcome = transformer_step(Point(*transformer_of(list(rows)), constants))
    return outcome.step_time_s / outcome.goodput_fraction, outcome.memory_byte


@lru_cache(maxsize=64)
def kernel(name: str, level_count: int) -> Callable[..., Any]:
    """Return the compiled, batched form of one of the functions above: points along the last axis of each matrix."""
    if name == "outcome":
        return jax.jit(jax.vmap(partial(outcome_of_point, level_count=level_count), in_axes=(1, None)))
    if name == "bound":
        return jax.jit(jax.vmap(partial(bound_of_layout, level_count=level_count), in_axes=(1, None)))
    if name == "transformer":
        return jax.jit(jax.vmap(outcome_of_transformer, in_axes=(1, None)))
    if name == "transformer_time":
        return jax.jit(jax.vmap(time_of_transformer, in_axes=(1, None)))
    if name == "cost":
        return jax.jit(jax.vmap(cost_of_run, in_axes=1))
    if name == "sites":
        return jax.jit(jax.vmap(sites_of_run, in_axes=1))
    if name == "best":
        return jax.jit(jax.vmap(partial(best_placement, level_count=level_count), in_axes=(1, None, None)))
    raise KeyError(name)


def in_chunks(run: Callable[..., Any], points: Matrix, chunk: int, *constants: Any) -> list[NDArray[Any]]:
    """Return the outputs of a kernel over all points: one chunk shape, the tail padded with its last point."""
    count = points.shape[1]
    pieces = []
    for start in range(0, count, chunk):
        part = points[:, start : start + chunk]
        missing = chunk - part.shape[1]
        if missing:
            part = np.concatenate([part, np.repeat(part[:, -1:], missing, axis=1)], axis=1)
        pieces.append(run(part, *constants))
    columns = zip(*pieces, strict=True)
    return [np.concatenate([np.asarray(each) for each in column])[:count] for column in columns]


def outcomes(points: Matrix, physics: Physics, level_count: int) -> dict[str, Matrix]:
    """Return every field of `Outcome` for packed, fully placed points (scenario, layout, placement rows)."""
    if points.shape[1] == 0:
        return {name: np.zeros(0) for name in field_names(Outcome)}
    values = in_chunks(kernel("outcome", level_count), points, POINT_CHUNK, physics)
    return dict(zip(field_names(Outcome), values, strict=True))


def bounds(points: Matrix, physics: Physics, level_count: int) -> tuple[Matrix, Matrix]:
    """Return (bound of the step time in s, fits in memory 0/1) for packed layouts (scenario, layout rows)."""
    bound_s, fits = in_chunks(kernel("bound", level_count), points, POINT_CHUNK, physics)
    return bound_s, fits


def best_placements(
    points: Matrix, lowers: Matrix, physics: Physics, level_count: int
) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    """Return (step time, traffic time, placement index) of the best of the given placements for each packed layout.

    `lowers` has a row for each (bounded level, degree) and a column for each placement. It is padded to one of few
    widths with placements that divide nothing.
    """
    width = max(8, 1 << (lowers.shape[1] - 1).bit_length())
    padding = np.full((lowers.shape[0], width - lowers.shape[1]), NEVER_DIVIDES)
    padded = np.concatenate([lowers, padding], axis=1)
    chunk = max(1, SEARCH_POINTS // width)
    time_s, traffic_s, index = in_chunks(kernel("best", level_count), points, chunk, padded, physics)
    return time_s, traffic_s, index.astype(np.int64)


def run_costs(
    economics: Matrix, accelerator_count: NDArray[Any], run_time_s: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return every field of `RunCost` for packed runs (rows of `Economics`, a column a run)."""
    rows = np.concatenate([economics, [np.asarray(accelerator_count, dtype=np.float64)], [run_time_s]])
    if rows.shape[1] == 0:
        return {name: np.zeros(0) for name in field_names(RunCost)}
    values = in_chunks(kernel("cost", 0), rows, POINT_CHUNK)
    return dict(zip(field_names(RunCost), values, strict=True))


def site_outcomes(rows: Matrix) -> dict[str, Matrix]:
    """Return every field of `SiteOutcome` for packed runs (rows of `LocalSteps`, then of SITE_NUMBERS)."""
    values = in_chunks(kernel("sites", 0), rows, POINT_CHUNK)
    return dict(zip(field_names(SiteOutcome), values, strict=True))


def transformer_outcomes(points: Matrix, constants: Constants) -> dict[str, NDArray[np.float64]]:
    """Return every field of `TransformerOutcome` for packed points (rows of `transformer_names`)."""
    if points.shape[1] == 0:
        return {name: np.zeros(0) for name in field_names(TransformerOutcome)}
    values = in_chunks(kernel("transformer", 0), points, POINT_CHUNK, constants)
    return dict(zip(field_names(TransformerOutcome), values, strict=True))


def transformer_times(points: Matrix, constants: Constants) -> tuple[Matrix, Matrix]:
    """Return (wall time a step in s, peak memory in B) of packed points of the calibrated model.

    Wall time is step time over goodput: failures and checkpoints are in it.
    """
    step_s, memory_byte = in_chunks(kernel("transformer_time", 0), points, POINT_CHUNK, constants)
    return step_s, memory_byte
