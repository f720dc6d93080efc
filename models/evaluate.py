"""The only place where the model is batched: `jit(vmap(...))` over points, and over placements within a point."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from models.chunks import FEW_POINTS, Joined, in_chunks, in_equal_chunks, padded_placements, padded_width
from models.effects.economics import RunCost
from models.effects.sites import SiteOutcome
from models.outcome import Outcome
from models.packed import (
    LAYOUT_FIELDS,
    PLACED_FIELDS,
    SITE_NUMBERS,
    bound_of_layout,
    cost_of_run,
    outcome_of_layout,
    outcome_of_placement,
    outcome_of_point,
    outcome_of_transformer,
    placed_step,
    sites_of_run,
    time_of_transformer,
)
from models.packing import field_names
from models.point import Physics
from models.quantities import Index, Quantity, Scalar
from models.transformer_point import Constants

__all__ = [
    "SITE_NUMBERS",
    "best_placements",
    "layouts_at_once",
    "bounds",
    "outcomes",
    "placed_steps",
    "placement_outcomes",
    "run_costs",
    "site_outcomes",
]

Matrix = NDArray[np.float64]
POINT_CHUNK = 8192
BOUND_CHUNK = 2048  # for any number of points, as in SEARCH_POINTS: a further shape takes a second to compile
SEARCH_POINTS = 16384
BY_LAYOUT = (*LAYOUT_FIELDS, "ideal_step_time_s")
EXPAND_POINTS = 1 << 17  # candidates of all of whose outcome is returned: a call costs as much as 4000 of them
QUICK = {"xla_cpu_use_fusion_emitters": False}
"""Compiled in two thirds of the time, runs slower, the same to the bit: for kernels that see few points."""


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


def expanded(
    points: Quantity, lowers: Quantity, physics: Physics, level_count: int
) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...], jax.Array, jax.Array]:
    """Return what `outcome_of_placement` does of every layout with every placement, and how many divide each layout."""
    each = partial(outcome_of_placement, level_count=level_count)
    each_placement = jax.vmap(each, in_axes=(None, 1, None), out_axes=(0, None, 0))
    placed, by_layout, divides = jax.vmap(each_placement, in_axes=(1, None, None))(points, lowers, physics)
    return placed, by_layout, divides, jnp.sum(divides, axis=1)


def each_layout(of_layout: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of one layout over every split with every recomputation: arrays (lane, recomputation)."""
    each_split = jax.vmap(of_layout, in_axes=(None, 1, None, None))
    return jax.vmap(each_split, in_axes=(None, None, 1, None), out_axes=1)


def best_layout(
    scenario: Quantity, hbm_byte: Quantity, splits: Quantity, recomputes: Quantity, constants: Constants
) -> tuple[Scalar, Scalar, Index, Scalar]:
    """Return (wall time a step, memory, place) of the fastest of a block's layouts that fits, and the least memory.

    Place = lane x recomputations + recomputation. Ties: less memory, then the first place. inf where none fits.
    """
    times, memory = each_layout(time_of_transformer)(scenario, splits, recomputes, constants)
    usable = jnp.where(memory <= hbm_byte, times, jnp.inf)
    best_time = jnp.min(usable)
    tied_memory = jnp.where(usable == best_time, memory, jnp.inf).ravel()
    place = jnp.argmin(tied_memory)
    return best_time, tied_memory[place], place, jnp.min(memory)


@lru_cache(maxsize=64)
def kernel(name: str, level_count: int, is_quick: bool = False) -> Callable[..., Any]:
    """Return the compiled, batched form of a function of `models.packed`: points along the last axis of each matrix."""
    at_level = {"level_count": level_count}
    batched = {
        "outcome": lambda: jax.vmap(partial(outcome_of_point, **at_level), in_axes=(1, None)),
        "bound": lambda: jax.vmap(partial(bound_of_layout, **at_level), in_axes=(1, None)),
        "best": lambda: jax.vmap(partial(best_placement, **at_level), in_axes=(1, None, None)),
        "each": lambda: jax.vmap(
            jax.vmap(partial(placed_step, **at_level), in_axes=(None, 1, None)), in_axes=(1, None, None)
        ),
        "expand": lambda: partial(expanded, **at_level),
        "transformer": lambda: jax.vmap(outcome_of_transformer, in_axes=(1, None)),
        "transformer_time": lambda: jax.vmap(each_layout(time_of_transformer), in_axes=(1, 1, None, None)),
        "transformer_expand": lambda: each_layout(outcome_of_layout),
        "transformer_best": lambda: jax.vmap(best_layout, in_axes=(1, 0, 1, None, None)),
        "cost": lambda: jax.vmap(cost_of_run, in_axes=1),
        "sites": lambda: jax.vmap(sites_of_run, in_axes=1),
    }
    return jax.jit(batched[name](), compiler_options=QUICK if is_quick and jax.default_backend() == "cpu" else None)


def few_or_many(name: str, level_count: int, points: Matrix, *constants: Any) -> list[NDArray[Any]]:
    """Return the outputs of a kernel over all points; few take one that is small and soon compiled."""
    run = kernel(name, level_count, is_quick=points.shape[1] <= FEW_POINTS)
    return in_chunks(run, points, POINT_CHUNK, *constants)


def outcomes(points: Matrix, physics: Physics, level_count: int) -> dict[str, Matrix]:
    """Return every field of `Outcome` for packed, fully placed points (scenario, layout, placement rows)."""
    if points.shape[1] == 0:
        return {name: np.zeros(0) for name in field_names(Outcome)}
    values = few_or_many("outcome", level_count, points, physics)
    return dict(zip(field_names(Outcome), values, strict=True))


def bounds(points: Matrix | Joined, physics: Physics, level_count: int) -> tuple[Matrix, Matrix]:
    """Return (bound of the step time in s, fits in memory 0/1) for packed layouts (scenario, layout rows)."""
    bound_s, fits = in_equal_chunks(kernel("bound", level_count), points, BOUND_CHUNK, physics)
    return bound_s, fits


def best_placements(
    points: Matrix | Joined, lowers: Matrix, physics: Physics, level_count: int
) -> tuple[Matrix, Matrix, NDArray[np.int64]]:
    """Return (step time, traffic time, placement index) of the best of the given placements for each packed layout.

    `lowers` has a row for each (bounded level, degree) and a column for each placement.
    """
    padded = padded_placements(lowers)
    chunk = max(1, SEARCH_POINTS // padded.shape[1])
    time_s, traffic_s, index = in_equal_chunks(kernel("best", level_count), points, chunk, padded, physics)
    return time_s, traffic_s, index.astype(np.int64)


def placed_steps(points: Matrix, lowers: Matrix, physics: Physics, level_count: int) -> tuple[Matrix, Matrix]:
    """Return (step time, traffic time), each (layout, placement); infinite where a placement does not divide it."""
    padded = padded_placements(lowers)
    chunk = max(1, SEARCH_POINTS // padded.shape[1])
    time_s, traffic_s = in_equal_chunks(kernel("each", level_count), points, chunk, padded, physics)
    return time_s[:, : lowers.shape[1]], traffic_s[:, : lowers.shape[1]]


def layouts_at_once(placement_count: int) -> int:
    """Return how many layouts, each with so many placements, one call of the kernel of `placement_outcomes` takes."""
    return max(1, EXPAND_POINTS // padded_width(placement_count))


def placement_outcomes(
    points: Matrix, lowers: Matrix, physics: Physics, level_count: int
) -> tuple[dict[str, Matrix], dict[str, Matrix], NDArray[np.bool_], NDArray[np.int64]]:
    """Return every candidate of packed layouts: (fields by layout and placement, fields by layout, which divide).

    And how many placements divide each layout. By layout comes also the ideal time of a step: over the step's time it
    is its utilisation. Placements may be more than were given: those added divide nothing. The last layouts take a
    smaller chunk.
    """
    padded = padded_placements(lowers) if len(lowers) else lowers  # on a single level nothing could be added
    run, count = kernel("expand", level_count), points.shape[1]
    chunk, start, pieces = layouts_at_once(lowers.shape[1]), 0, []
    while start < count:
        size = chunk if count - start > chunk // 2 else max(1, chunk // 8)
        part = points[:, start : start + size]
        missing = size - part.shape[1]
        if missing:
            part = np.concatenate([part, np.repeat(part[:, -1:], missing, axis=1)], axis=1)
        pieces.append([np.asarray(each)[: size - missing] for each in jax.tree.leaves(run(part, padded, physics))])
        start += size
    values = pieces[0] if len(pieces) == 1 else [np.concatenate(each) for each in zip(*pieces, strict=True)]
    cut = len(PLACED_FIELDS)
    placed: dict[str, Matrix] = dict(zip(PLACED_FIELDS, values[:cut], strict=True))
    return placed, dict(zip(BY_LAYOUT, values[cut:-2], strict=True)), values[-2], values[-1]


def run_costs(
    economics: Matrix, accelerator_count: NDArray[Any], run_time_s: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Return every field of `RunCost` for packed runs (rows of `Economics`, a column a run)."""
    rows = np.concatenate([economics, [np.asarray(accelerator_count, dtype=np.float64)], [run_time_s]])
    if rows.shape[1] == 0:
        return {name: np.zeros(0) for name in field_names(RunCost)}
    values = few_or_many("cost", 0, rows)
    return dict(zip(field_names(RunCost), values, strict=True))


def site_outcomes(rows: Matrix) -> dict[str, Matrix]:
    """Return every field of `SiteOutcome` for packed runs (rows of `LocalSteps`, then of SITE_NUMBERS)."""
    values = few_or_many("sites", 0, rows)
    return dict(zip(field_names(SiteOutcome), values, strict=True))
