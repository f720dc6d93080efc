"""Batching changes nothing: a batch is a Python loop over points, in any chunk, compiled once."""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.chunks import NEVER_DIVIDES, padded_placements
from models.evaluate import best_placements, bounds, kernel, outcomes, placed_steps, placement_outcomes
from models.outcome import Outcome
from models.packed import bound_of_layout, outcome_of_point, placed_step
from models.packing import DEGREES, field_names, layout_names
from pipeline.bench_work import Candidates

COMPILED = 1e-12  # XLA fuses a*b+c and reorders sums; a loop over single points does not
LEVELS = 2


@lru_cache
def candidates() -> Candidates:
    return Candidates()


@lru_cache
def placed() -> np.ndarray:
    """Return real candidates spread over the sweep's scenarios and placements."""
    found = candidates()
    layout, way = np.nonzero(found.divides)
    some = np.linspace(0, len(layout) - 1, 4000).astype(int)
    points, lower = found.points[:, layout[some]], found.lowers[:, way[some]]
    top = points[found.scenario_rows :][:5] / lower
    return np.concatenate([points, lower, top])


@lru_cache
def one_by_one(function):
    """Return a function of one point, compiled as such: what a loop calls."""
    return jax.jit(partial(function, level_count=LEVELS))


indices = st.lists(st.integers(0, 3999), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(indices)
def test_a_batch_of_points_is_a_loop_over_points(chosen):
    points = placed()[:, chosen]
    batched = outcomes(points, candidates().physics, LEVELS)
    for at in range(len(chosen)):
        alone = one_by_one(outcome_of_point)(jnp.asarray(points[:, at]), candidates().physics)
        for name, value in zip(field_names(Outcome), alone, strict=True):
            np.testing.assert_allclose(batched[name][at], float(value), rtol=COMPILED)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 20000), min_size=1, max_size=2))
def test_the_best_placement_is_that_of_a_loop_over_placements(chosen):
    found = candidates()
    points = found.points[:, chosen]
    time_s, traffic_s, way = best_placements(points, found.lowers, found.physics, LEVELS)
    for at in range(len(chosen)):
        keys = []
        for index in range(found.lowers.shape[1]):
            lower = jnp.asarray(found.lowers[:, index])
            step_s, traffic = one_by_one(placed_step)(jnp.asarray(points[:, at]), lower, found.physics)
            keys.append((float(step_s), float(traffic), index))
        assert np.isclose(time_s[at], min(keys)[0], rtol=COMPILED)
        chosen_key = keys[int(way[at])]
        assert np.isclose(chosen_key[0], min(keys)[0], rtol=COMPILED) and np.isclose(chosen_key[1], traffic_s[at])


@settings(max_examples=25, deadline=None)
@given(indices)
def test_no_placement_beats_the_bound(chosen):
    points = placed()[:, chosen]
    rows = candidates().points.shape[0]
    bound_s, fits = bounds(points[:rows], candidates().physics, LEVELS)
    outcome = outcomes(points, candidates().physics, LEVELS)
    assert (bound_s <= outcome["step_time_s"] * (1 + COMPILED)).all()
    assert (fits == outcome["fits_in_memory"]).all()
    alone, _ = one_by_one(bound_of_layout)(jnp.asarray(points[:rows, 0]), candidates().physics)
    np.testing.assert_allclose(bound_s[0], float(alone), rtol=COMPILED)


def test_all_placements_of_a_scenario_are_its_points_one_by_one():
    found = candidates()
    points = found.points[:, :300]
    layouts = points[found.scenario_rows :]
    fields, by_layout, divides, per_layout = placement_outcomes(points, found.lowers, found.physics, LEVELS)
    layout, way = np.nonzero(divides)
    assert (per_layout == divides.sum(axis=1)).all()
    lower = found.lowers[:, way]
    top = layouts[:5, layout] / lower
    expected = outcomes(np.concatenate([points[:, layout], lower, top]), found.physics, LEVELS)
    for name, values in fields.items():
        np.testing.assert_allclose(values[layout, way], expected[name], rtol=COMPILED)
    utilisation = by_layout.pop("ideal_step_time_s")[layout] / fields["step_time_s"][layout, way]
    np.testing.assert_allclose(utilisation, expected["model_flop_utilisation_fraction"], rtol=COMPILED)
    for name, values in by_layout.items():
        np.testing.assert_allclose(values[layout], expected[name], rtol=COMPILED)


def test_chunks_do_not_change_a_bit():
    points = np.concatenate([placed()] * 3, axis=1)  # more than one chunk, and a tail
    whole = outcomes(points, candidates().physics, LEVELS)
    parts = [outcomes(points[:, start : start + 5000], candidates().physics, LEVELS) for start in (0, 5000, 10000)]
    few = [outcomes(points[:, start : start + 256], candidates().physics, LEVELS) for start in range(0, 4000, 256)]
    for name, values in whole.items():
        assert np.array_equal(values, np.concatenate([part[name] for part in parts]))
        assert np.array_equal(values[:4000], np.concatenate([part[name] for part in few])[:4000])


@pytest.mark.parametrize("part", [1, 2, 3, 7, 49, 75, 98, 103, 187, 999])
def test_every_placement_that_divides_is_found(part):
    """A degree of k x part lays `part` below the top level and k on it, for any part, and k x part + 1 does not."""
    found = candidates()
    points, row = found.points[:, :64].copy(), found.scenario_rows + layout_names().index("data_ranks")
    lower = np.ones((len(DEGREES) * (LEVELS - 1), 1))
    lower[DEGREES.index("data_ranks")] = part
    for further in (0, 1):
        points[row] = part * np.arange(1.0, 65.0) + further
        is_whole = np.full(64, part == 1 or not further)
        _, _, divides, _ = placement_outcomes(points, lower, found.physics, LEVELS)
        assert (divides[:, 0] == is_whole).all() and not divides[:, 1:].any()
        assert (np.isfinite(placed_steps(points, lower, found.physics, LEVELS)[0][:, 0]) == is_whole).all()
        assert (np.isfinite(best_placements(points, lower, found.physics, LEVELS)[0]) == is_whole).all()


def test_nothing_is_compiled_again_from_chunk_to_chunk():
    found, kernels = candidates(), [kernel(name, LEVELS) for name in ("outcome", "bound", "best")]
    kernels.append(kernel("outcome", LEVELS, is_quick=True))  # that of few points
    compiled = []
    for size in (300, 1, 9000, 4000, 8192, 257, 12000, 256):
        outcomes(np.resize(placed(), (placed().shape[0], size)), found.physics, LEVELS)
        bounds(found.points[:, :size], found.physics, LEVELS)
        best_placements(found.points[:, :size], found.lowers, found.physics, LEVELS)
        compiled.append([run._cache_size() for run in kernels])
    assert compiled[1] == compiled[-1]
    assert kernels[0] is kernel("outcome", LEVELS)


def test_placements_are_padded_to_few_widths_with_such_as_divide_nothing():
    widths = {padded_placements(np.ones((5, count))).shape[1] for count in range(1, 129)}
    assert len(widths) <= 4 * 4 + 1
    padded = padded_placements(np.ones((5, 20)))
    assert (padded[:, 20:] == NEVER_DIVIDES).all()


def test_no_points_are_no_outcomes():
    assert all(len(values) == 0 for values in outcomes(np.zeros((60, 0)), candidates().physics, LEVELS).values())
