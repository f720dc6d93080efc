"""Which layouts of a scenario become rows: keep=best, top:K, pareto or all."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.evaluate import best_placements, bounds, outcomes, placed_steps
from models.packing import DEGREES
from models.point import Physics
from pipeline.ahead import compile_outcomes
from pipeline.block import Block, scenario_table
from pipeline.candidates import candidate_tables
from pipeline.distinct import PER_SCENARIO, search_distinct
from pipeline.layouts import SearchRules, placements, used_group_ranks
from pipeline.physics import PhysicsEntry
from pipeline.result_columns import POINT_BITS, Table, result_columns
from pipeline.search import ROUNDING, winner_outcomes
from pipeline.search_layouts import degree_limits, degree_rows, packed_layouts
from pipeline.search_table import ScenarioTable, Winners, no_search

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Picks = tuple[Float64, Float64]  # layouts and their placements, best first
TOP_BLOCK = 256  # layouts placed between two looks at the bound


def epoch_tables(
    block: Block, physics: PhysicsEntry, ids: Int64, columns: Mapping[str, Float64], keep: str, offset: int = 0
) -> Iterator[Table]:
    """Yield the rows of some scenarios of one block in order; every table but those of keep=all is small.

    `offset` is the id of the block's first scenario.
    """
    scenarios = scenario_table(block, columns)
    wait = compile_outcomes(physics.physics, scenarios.level_count, len(ids)) if keep == "best" else None
    needs_none = keep == "all" and bool((scenarios.accelerator_count > 0).all())  # the sizes of clusters are given
    winners = no_search(scenarios) if needs_none else search_distinct(scenarios, physics.physics, physics.rules)
    if keep == "all":
        yield from candidate_tables(block, physics, ids, columns, scenarios, winners, offset)
        return
    rank = np.zeros(len(ids), dtype=np.int64)
    if keep != "best":
        at, rank, winners = _kept_winners(scenarios, winners, physics, keep)
        ids, columns = ids[at], {name: values[at] for name, values in columns.items()}
        numbers = {name: getattr(scenarios, name)[at] for name in PER_SCENARIO}
        scenarios = replace(scenarios, matrix=scenarios.matrix[:, at], **numbers)
    if wait:
        wait()
    outcome = winner_outcomes(scenarios, winners, physics.physics)
    table = result_columns(block, ids, columns, scenarios, winners, outcome)
    table["point_id"] = (table["scenario_id"] << np.uint64(POINT_BITS)) + rank.astype(np.uint64)
    table["layout_rank"] = rank
    yield table


def _kept_winners(
    table: ScenarioTable, winners: Winners, physics: PhysicsEntry, keep: str
) -> tuple[Int64, Int64, Winners]:
    """Return (scenario, rank, winners) of all kept layouts; an infeasible scenario keeps its one empty row."""
    top = re.fullmatch(r"top:(\d+)", keep)
    pieces = []
    for scenario in range(len(winners.is_feasible)):
        if not winners.is_feasible[scenario]:
            pieces.append((winners.layout[:, [scenario]], winners.placement[:, [scenario]]))
            continue
        found = _Found(table, winners, scenario, physics.physics, physics.rules)
        pieces.append(found.top(int(top[1])) if top else found.pareto())
    sizes = np.array([layout.shape[1] for layout, _ in pieces], dtype=np.int64)
    at = np.repeat(np.arange(len(sizes)), sizes)
    rank = np.arange(len(at)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = Winners(
        accelerator_count=winners.accelerator_count[at],
        is_feasible=winners.is_feasible[at],
        infeasible_reason=winners.infeasible_reason[at],
        layout=np.concatenate([layout for layout, _ in pieces], axis=1),
        placement=np.concatenate([placement for _, placement in pieces], axis=1),
        candidate_count=winners.candidate_count[at],
        placed_count=winners.placed_count[at],
        last_count=winners.last_count[at],
    )
    return at, rank, kept


class _Found:
    """All layouts of one feasible scenario at the size of cluster that its search ended with."""

    def __init__(self, table: ScenarioTable, winners: Winners, scenario: int, physics: Physics, rules: SearchRules):
        self.physics, self.level_count = physics, table.level_count
        count = int(winners.accelerator_count[scenario])
        used = used_group_ranks(count, table.group_ranks[table.network_index[scenario]])
        layouts = packed_layouts(table.shapes[table.shape_index[scenario]], count, rules)
        points = np.concatenate([np.repeat(table.matrix[:, [scenario]], layouts.shape[1], axis=1), layouts])
        bound_s, fits = bounds(points, physics, self.level_count)
        is_fixed = table.accelerator_count[scenario] > 0
        self.limit_s = np.inf if is_fixed else table.run_limit_s[scenario] / table.steps[scenario]
        chosen = np.nonzero((fits > 0) & (bound_s < self.limit_s))[0]
        self.layouts, self.points, self.bound_s = layouts[:, chosen], points[:, chosen], bound_s[chosen]
        self.ways = placements(used, degree_limits(degree_rows(self.layouts), used))
        self.lowers = self.ways.reshape(len(self.ways), -1).T.astype(np.float64)

    def picks(self, layout: Int64, way: Int64) -> Picks:
        """Return layouts and complete placements by their indices."""
        lower = self.lowers[:, way]
        inside = lower.reshape(self.level_count - 1, len(DEGREES), lower.shape[1]).prod(axis=0)
        top = degree_rows(self.layouts[:, layout]) / inside
        return self.layouts[:, layout], np.concatenate([lower, top])

    def top(self, number: int) -> Picks:
        """Return the `number` fastest candidates that end in time: least time, then traffic, then order."""
        best = np.zeros((4, 0))
        by_bound = np.argsort(self.bound_s, kind="stable")
        for start in range(0, len(by_bound), TOP_BLOCK):
            block = by_bound[start : start + TOP_BLOCK]
            if best.shape[1] == number and self.bound_s[block[0]] > best[0, -1] * ROUNDING:
                break
            times, traffic = placed_steps(self.points[:, block], self.lowers, self.physics, self.level_count)
            layout, way = np.nonzero(times < self.limit_s)
            new = np.stack([times[layout, way], traffic[layout, way], block[layout].astype(float), way.astype(float)])
            best = np.concatenate([best, new], axis=1)
            best = best[:, np.lexsort(best[::-1])[:number]]
        return self.picks(best[2].astype(np.int64), best[3].astype(np.int64))

    def pareto(self) -> Picks:
        """Return the candidates that no other beats in time, cost and memory together, fastest first.

        At one size of cluster every cost grows with the time, and memory is the layout's own: so the best placement
        of each layout, and of those what needs less memory than everything faster.
        """
        times, _, way = best_placements(self.points, self.lowers, self.physics, self.level_count)
        rows = np.concatenate([self.points, self.picks(np.arange(len(way)), way)[1]])
        memory = outcomes(rows, self.physics, self.level_count)["memory_byte"]
        order = np.lexsort((np.arange(len(way)), memory, times))
        order = order[times[order] < self.limit_s]
        least_before = np.concatenate([[np.inf], np.minimum.accumulate(memory[order])[:-1]])
        order = order[memory[order] < least_before]
        return self.picks(order, way[order])
