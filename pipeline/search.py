"""The layout search: for each scenario the best layout and placement, and the smallest cluster that ends in time.

Bound first: every layout gets a step time that no placement of it can beat; only layouts whose bound is at most the
best time found are placed on the network. Ties: less traffic, then the order of `pipeline.layouts`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.chunks import Joined
from models.evaluate import best_placements, bounds, outcomes
from models.packing import DEGREES, layout_names
from models.point import Physics
from pipeline.layouts import SearchRules, placements, used_group_ranks
from pipeline.search_layouts import Key, degree_limits, degree_rows, layout_tables, packed_layouts
from pipeline.search_table import ScenarioTable, Winners, first_counts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
ROUNDING = 1.0 + 1e-12
"""Slack on the bound for rounding: a bound is a different sum of the same terms."""
FLAT_LAYOUTS = 1 << 16
"""Layouts looked at in one go: bounds the memory of a search whatever the number of scenarios."""


@dataclass
class _State:
    """Where each scenario's search stands."""

    count: Int64
    best_s: Float64
    layout: Float64
    placement: Float64
    candidates: Int64
    placed: Int64
    reason: NDArray[np.str_]
    is_open: NDArray[np.bool_]
    last_count: Int64


def search(table: ScenarioTable, physics: Physics, rules: SearchRules) -> Winners:
    """Return the winner of each scenario.

    Rounds over doublings of the cluster: each round searches, all at once, every scenario that is still open. A
    scenario closes when its best layout ends in time, when its count was fixed, or when no larger cluster has layouts.
    """
    size = table.matrix.shape[1]
    placement_rows = len(DEGREES) * table.level_count
    state = _State(
        count=first_counts(table),
        best_s=np.full(size, np.inf),
        layout=np.zeros((len(layout_names()), size)),
        placement=np.zeros((placement_rows, size)),
        candidates=np.zeros(size, dtype=np.int64),
        placed=np.zeros(size, dtype=np.int64),
        reason=np.full(size, "no_layout", dtype="<U16"),
        is_open=np.ones(size, dtype=bool),
        last_count=np.zeros(size, dtype=np.int64),
    )
    # No cluster of any size beats the latency wall
    walled = (table.step_floor_s * table.steps >= table.run_limit_s) & (table.accelerator_count == 0)
    state.reason[walled] = "time"
    state.is_open[walled] = False
    while state.is_open.any():
        for members in _batches(table, rules, state):
            _search_round(table, physics, rules, state, members)
    is_feasible = state.reason == ""
    return Winners(
        accelerator_count=np.where(is_feasible, state.count, 0),
        is_feasible=is_feasible,
        infeasible_reason=state.reason,
        layout=np.where(is_feasible, state.layout, 0.0),
        placement=np.where(is_feasible, state.placement, 0.0),
        candidate_count=state.candidates,
        placed_count=state.placed,
        last_count=state.last_count,
    )


def _batches(table: ScenarioTable, rules: SearchRules, state: _State) -> list[Int64]:
    """Return the open scenarios in groups whose layouts together stay near the limit."""
    members = np.nonzero(state.is_open)[0]
    keys, key_of = _distinct_keys(table, state, members)
    sizes = np.array([packed_layouts(shape, count, rules).shape[1] for shape, count, _ in keys])[key_of]
    group = np.cumsum(sizes) // FLAT_LAYOUTS
    return [members[group == each] for each in np.unique(group)]


def _search_round(table: ScenarioTable, physics: Physics, rules: SearchRules, state: _State, members: Int64) -> None:
    """Search each member scenario at its current cluster size and close it or double its cluster."""
    keys, key_of = _distinct_keys(table, state, members)
    tables = layout_tables(keys, rules)
    rows_of = tables.count[key_of]
    state.last_count[members] = state.count[members]
    state.candidates[members] += tables.candidates[key_of]

    # Every layout of every member, flat: which member, which row
    member = np.repeat(np.arange(len(members)), rows_of)
    first_row = np.concatenate([[0], np.cumsum(rows_of)[:-1]]).astype(np.int64)
    row = np.arange(len(member)) - first_row[member] + tables.start[key_of][member]
    best = _Best.empty(len(members), tables.matrix.shape[0], len(DEGREES) * table.level_count)
    if len(member):
        points = Joined((table.matrix, tables.matrix), (members[member], row))
        bound_s, fits = bounds(points, physics, table.level_count)
        bound_s = np.where(fits > 0, bound_s, np.inf)
        least = np.full(len(members), np.inf)
        np.minimum.at(least, member, bound_s)
        limit_s = np.where(
            table.accelerator_count[members] > 0, np.inf, table.run_limit_s[members] / table.steps[members]
        )
        used = [used_group_ranks(count, group) for _, count, group in keys]
        place = partial(_place, table, physics, state, members, member, points, used, key_of, best)
        # The most promising layout of each first, then all that can still beat it
        promising = np.isfinite(bound_s) & (bound_s <= least[member]) & (least < limit_s)[member]
        place(np.nonzero(promising)[0])
        can_win = np.isfinite(bound_s) & (bound_s <= best.time_s[member] * ROUNDING) & (least < limit_s)[member]
        place(np.nonzero(can_win & ~promising)[0])
        best.had_memory = least < np.inf
    _close(table, state, members, rows_of, best)


@dataclass
class _Best:
    """The best placed layout of each member so far."""

    time_s: Float64
    traffic_s: Float64
    flat_index: Int64
    layout: Float64
    placement: Float64
    had_memory: NDArray[np.bool_]

    @staticmethod
    def empty(size: int, layout_rows: int, placement_rows: int) -> "_Best":
        return _Best(
            time_s=np.full(size, np.inf),
            traffic_s=np.full(size, np.inf),
            flat_index=np.full(size, np.iinfo(np.int64).max),
            layout=np.zeros((layout_rows, size)),
            placement=np.zeros((placement_rows, size)),
            had_memory=np.zeros(size, dtype=bool),
        )


def _distinct_keys(table: ScenarioTable, state: _State, members: Int64) -> tuple[list[Key], Int64]:
    """Return the distinct (shape, cluster size, network sizes) among the members, and each member's index in them."""
    shape, network, count = table.shape_index[members], table.network_index[members], state.count[members]
    counts, count_of = np.unique(count, return_inverse=True)
    code = (shape * len(table.group_ranks) + network) * len(counts) + count_of
    _, first, key_of = np.unique(code, return_index=True, return_inverse=True)
    keys = [(table.shapes[shape[at]], int(count[at]), table.group_ranks[network[at]]) for at in first]
    return keys, key_of


def _place(
    table: ScenarioTable,
    physics: Physics,
    state: _State,
    members: Int64,
    member: Int64,
    points: Joined,
    used: list[tuple[int, ...]],
    key_of: Int64,
    best: _Best,
    chosen: Int64,
) -> None:
    """Place the chosen layouts on the network and keep each member's best: least time, traffic, then order."""
    if len(chosen) == 0:
        return
    layouts, row = points.tables[1], points.picked[1]
    patterns, pattern_of = np.unique(np.array(used, dtype=np.int64), axis=0, return_inverse=True)
    pattern = pattern_of.ravel()[key_of][member[chosen]] if table.level_count > 1 else np.zeros(len(chosen), np.int64)
    for index in np.unique(pattern):
        group = chosen[pattern == index]
        within = tuple(int(each) for each in patterns[index])
        ways = placements(within, degree_limits(degree_rows(layouts)[:, row[group]], within))
        lowers = ways.reshape(len(ways), -1).T.astype(np.float64)
        time_s, traffic_s, way = best_placements(points.only(group), lowers, physics, table.level_count)
        np.add.at(state.placed, members[member[group]], len(ways))
        # First of each member in the order (time, traffic, layout order) challenges the best so far
        order = np.lexsort((group, traffic_s, time_s, member[group]))
        leader = order[np.unique(member[group][order], return_index=True)[1]]
        who = member[group][leader]
        challenger = (time_s[leader], traffic_s[leader], group[leader])
        wins = _is_before(challenger, (best.time_s[who], best.traffic_s[who], best.flat_index[who]))
        leader, who = leader[wins], who[wins]
        best.time_s[who], best.traffic_s[who] = time_s[leader], traffic_s[leader]
        best.flat_index[who] = group[leader]
        best.layout[:, who] = layouts[:, row[group[leader]]]
        lower = lowers[:, way[leader]]
        inside = lower.reshape(table.level_count - 1, len(DEGREES), lower.shape[1]).prod(axis=0)
        top = degree_rows(best.layout[:, who]) / inside
        best.placement[:, who] = np.concatenate([lower, top])


def _is_before(first: tuple[Any, ...], second: tuple[Any, ...]) -> NDArray[np.bool_]:
    """Return where the first key comes before the second in lexicographic order."""
    result = np.zeros(len(first[0]), dtype=bool)
    equal = np.ones(len(first[0]), dtype=bool)
    for one, other in zip(first, second, strict=True):
        result |= equal & (one < other)
        equal &= one == other
    return result


def _close(table: ScenarioTable, state: _State, members: Int64, rows_of: Int64, best: _Best) -> None:
    """Close members that are done; double the cluster of the others."""
    fixed = table.accelerator_count[members] > 0
    in_time = best.time_s * table.steps[members] < table.run_limit_s[members]
    found = np.isfinite(best.time_s)
    done = found & (in_time | fixed)
    closed = members[done]
    state.best_s[closed] = best.time_s[done]
    state.layout[:, closed] = best.layout[:, done]
    state.placement[:, closed] = best.placement[:, done]
    reason = np.where(rows_of == 0, "no_layout", np.where(best.had_memory, "time", "memory"))
    previous = state.reason[members]
    # A larger cluster without layouts does not hide why the smaller ones failed
    reason = np.where((rows_of == 0) & (previous != ""), previous, reason)
    state.reason[members] = np.where(done, "", reason)
    exhausted = (rows_of == 0) & ((previous != "no_layout") | (state.count[members] >= MAXIMUM_ACCELERATORS))
    state.is_open[members[done | fixed | exhausted]] = False
    growing = members[~(done | fixed | exhausted)]
    state.count[growing] *= 2
    at_end = state.count[growing] > MAXIMUM_ACCELERATORS
    state.is_open[growing[at_end]] = False


MAXIMUM_ACCELERATORS = 1 << 60
"""No search grows beyond this; far fewer have layouts. Whole numbers stay exact below it."""


def winner_outcomes(table: ScenarioTable, winners: Winners, physics: Physics) -> dict[str, Float64]:
    """Return every outcome field for the feasible winners, in order of their scenario (and only for those)."""
    keep = winners.is_feasible
    points = np.concatenate([table.matrix[:, keep], winners.layout[:, keep], winners.placement[:, keep]])
    return outcomes(points, physics, table.level_count)
