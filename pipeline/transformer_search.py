"""The layout search of the calibrated physics: every layout evaluated, the best that fits kept, per scenario.

Rank order is fixed (tensor, context, data, pipeline from the inside out), so a layout has one placement and its
evaluation is its bound. Ties: less memory, then the order of `pipeline.transformer_layouts`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.evaluate_layouts import LANES, best_layouts, transformer_times
from models.packing import RECOMPUTE_NAMES, pack, transformer_scenario_names, transformer_split_names
from models.transformer_point import Constants
from pipeline.transformer_keep import Keep, keep_best
from pipeline.transformer_layouts import (
    TransformerSearchRules,
    TransformerShape,
    packed_splits,
    recomputations,
    transformer_layouts,
)
from pipeline.transformer_scenarios import MAXIMUM_ACCELERATORS, TransformerScenarios, first_counts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
SPLIT_NAMES = transformer_split_names()
SCENARIO_NAMES = transformer_scenario_names()
FLAT_LIMIT = 400_000  # layouts evaluated in one go: bounds the memory of a search


@dataclass(kw_only=True)
class TransformerWinners:
    """One entry a kept layout, in order of scenario and then rank; infeasible scenarios have one empty entry."""

    scenario: Int64
    rank: Int64  # 0 = best
    is_feasible: NDArray[np.bool_]
    reason: NDArray[np.str_]
    accelerator_count: Int64
    candidate_count: Int64
    layout: Mapping[str, Float64]
    nearest_byte: Float64  # least memory of any layout: what an infeasible scenario would need


@lru_cache(maxsize=512)
def layout_blocks(shape: TransformerShape, count: int, rules: TransformerSearchRules) -> tuple[Float64, Float64, int]:
    """Return (splits, zero-bubble flags, number) of one shape on one cluster, in blocks of lanes.

    Arrays (row of SPLIT_NAMES, block, lane) and (block, lane); the last block is filled up with its last split.
    """
    flags = transformer_layouts(shape, count, rules)["is_zero_bubble"]
    number = len(flags)
    filled = np.minimum(np.arange(-(-number // LANES) * LANES), max(number - 1, 0))
    matrix = packed_splits(shape, count, rules)[:, filled].reshape(len(SPLIT_NAMES), -1, LANES)
    return matrix, flags[filled].reshape(-1, LANES), number


def layout_count(shape: TransformerShape, count: int, rules: TransformerSearchRules) -> int:
    """Return how many layouts a search looks at for one shape on one cluster."""
    return layout_blocks(shape, count, rules)[2] * len(rules.recompute_layer_fractions)


def search_transformers(
    scenarios: TransformerScenarios,
    constants: Constants,
    rules: TransformerSearchRules,
    keep: Keep,
) -> TransformerWinners:
    """Return the kept layouts of each scenario.

    `keep` chooses from step times (inf where it does not fit), memory and owner of layouts, sorted by owner, which to
    keep, best first for each owner. Clusters double until the best layout ends in time, unless the count is fixed.
    """
    count = first_counts(scenarios)
    state = _State.empty(scenarios.size)
    is_open = np.ones(scenarios.size, dtype=bool)
    while is_open.any():
        for batch in _batches(scenarios, count, np.nonzero(is_open)[0], rules):
            _search_batch(scenarios, constants, rules, keep, count, batch, state)
        fixed = scenarios.accelerator_count > 0
        exhausted = (count * 2 > MAXIMUM_ACCELERATORS) | (~state.has_layouts & (state.reason != "no_layout"))
        is_open &= ~(state.is_done | fixed | exhausted)
        count = np.where(is_open, count * 2, count)
    return _collect(scenarios, count, state)


@dataclass
class _State:
    reason: NDArray[np.str_]
    is_done: NDArray[np.bool_]
    has_layouts: NDArray[np.bool_]
    candidates: Int64
    nearest_byte: Float64
    kept: list[tuple[Int64, Float64, Float64]]  # scenario, layouts, zero-bubble flags

    @staticmethod
    def empty(size: int) -> "_State":
        return _State(
            reason=np.full(size, "no_layout", dtype="<U16"),
            is_done=np.zeros(size, dtype=bool),
            has_layouts=np.zeros(size, dtype=bool),
            candidates=np.zeros(size, dtype=np.int64),
            nearest_byte=np.full(size, np.inf),
            kept=[],
        )


@dataclass(frozen=True)
class _Blocks:
    """The blocks of layouts of some scenarios, side by side."""

    owner: Int64  # place of each block's scenario among the members
    row: Int64  # place of each block in the tables
    inside: NDArray[np.bool_]  # (block, lane): a layout, not filling
    matrix: Float64
    flags: Float64
    recomputes: Float64  # what each split goes with
    sizes: Int64  # splits of each member


def _blocks(scenarios: TransformerScenarios, count: Int64, members: Int64, rules: TransformerSearchRules) -> _Blocks:
    """Return the members' blocks: one table a distinct (shape, cluster size), however many scenarios share it."""
    keys = np.stack([scenarios.shape_index[members], count[members]])
    distinct, key_of = np.unique(keys, axis=1, return_inverse=True)
    tables = [layout_blocks(scenarios.shapes[shape], int(number), rules) for shape, number in distinct.T]
    blocks = np.array([flags.shape[0] for _, flags, _ in tables], dtype=np.int64)
    start, key_of = np.cumsum(blocks) - blocks, key_of.ravel()
    each = blocks[key_of]
    owner = np.repeat(np.arange(len(members)), each)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(each) - each, each)
    sizes = np.array([number for _, _, number in tables], dtype=np.int64)[key_of]
    inside = place[:, None] * LANES + np.arange(LANES) < sizes[owner][:, None]
    matrix = np.concatenate([matrix for matrix, _, _ in tables], axis=1)
    flags = np.concatenate([flags for _, flags, _ in tables])
    return _Blocks(owner, start[key_of][owner] + place, inside, matrix, flags, recomputations(rules), sizes)


def _batches(
    scenarios: TransformerScenarios, count: Int64, members: Int64, rules: TransformerSearchRules
) -> list[Int64]:
    """Return the members in runs whose layouts together stay below the limit."""
    keys = np.stack([scenarios.shape_index[members], count[members]])
    distinct, key_of = np.unique(keys, axis=1, return_inverse=True)
    sizes = np.array([layout_count(scenarios.shapes[shape], int(number), rules) for shape, number in distinct.T])
    group = np.cumsum(sizes[key_of.ravel()]) // FLAT_LIMIT
    return np.split(members, np.nonzero(np.diff(group))[0] + 1)


def _search_batch(
    scenarios: TransformerScenarios,
    constants: Constants,
    rules: TransformerSearchRules,
    keep: Keep,
    count: Int64,
    members: Int64,
    state: _State,
) -> None:
    """Evaluate every layout of the members in one vectorised call and keep the chosen ones."""
    blocks = _blocks(scenarios, count, members, rules)
    choices = blocks.recomputes.shape[1]
    state.candidates[members] += blocks.sizes * choices
    state.has_layouts[members] = blocks.sizes > 0
    with_layouts = blocks.sizes > 0
    if not with_layouts.any():
        return
    search = _best_of if keep is keep_best else _kept_of
    best, least, chosen = search(scenarios, constants, keep, members, blocks)

    # The least of each member, all members at once
    found = np.nonzero(with_layouts)[0]
    who = members[found]
    state.nearest_byte[who] = np.minimum(state.nearest_byte[who], least)
    in_time = best * scenarios.steps[who] < scenarios.run_limit_s[who]
    is_fixed = scenarios.accelerator_count[who] > 0
    state.reason[who] = np.where(np.isfinite(best), np.where(in_time | is_fixed, "", "time"), "memory")
    state.is_done[who] = state.reason[who] == ""
    owner, block, place = chosen
    kept = state.is_done[members[owner]]
    row, (lane, choice) = blocks.row[block[kept]], np.divmod(place[kept], choices)
    layout = np.concatenate([blocks.matrix[:, row, lane], blocks.recomputes[:, choice]])
    state.kept.append((members[owner[kept]], layout, blocks.flags[row, lane]))


def _numbers(scenarios: TransformerScenarios, members: Int64, blocks: _Blocks) -> Float64:
    """Return the packed scenario of each block."""
    owners = members[blocks.owner]
    return pack({name: scenarios.columns[name][owners] for name in SCENARIO_NAMES}, SCENARIO_NAMES)


def _best_of(
    scenarios: TransformerScenarios, constants: Constants, keep: Keep, members: Int64, blocks: _Blocks
) -> tuple[Float64, Float64, tuple[Int64, Int64, Int64]]:
    """Return (best time, least memory) of each member with layouts, and (member, block, place) of the best."""
    numbers, hbm_byte = _numbers(scenarios, members, blocks), scenarios.hbm_byte[members[blocks.owner]]
    table = (blocks.matrix, blocks.row, blocks.recomputes)
    times, memory, place, least = best_layouts(numbers, hbm_byte, *table, constants)
    starts = np.nonzero(np.diff(blocks.owner, prepend=-1))[0]
    at = keep(times, memory, blocks.owner)
    return times[at], np.minimum.reduceat(least, starts), (blocks.owner[at], at, place[at])


def _kept_of(
    scenarios: TransformerScenarios, constants: Constants, keep: Keep, members: Int64, blocks: _Blocks
) -> tuple[Float64, Float64, tuple[Int64, Int64, Int64]]:
    """Return the same with every layout that `keep` keeps."""
    numbers = _numbers(scenarios, members, blocks)
    times, memory = transformer_times(numbers, blocks.matrix, blocks.row, blocks.recomputes, constants)
    choices = blocks.recomputes.shape[1]
    block, lane = (np.repeat(each, choices) for each in np.nonzero(blocks.inside))
    place = lane * choices + np.tile(np.arange(choices), len(lane) // choices)
    owner, memory = blocks.owner[block], memory[blocks.inside].ravel()
    usable = np.where(memory <= scenarios.hbm_byte[members][owner], times[blocks.inside].ravel(), np.inf)
    starts = np.nonzero(np.diff(owner, prepend=-1))[0]
    at = keep(usable, memory, owner)
    least = np.minimum.reduceat(memory, starts)
    return np.minimum.reduceat(usable, starts), least, (owner[at], block[at], place[at])


def _collect(scenarios: TransformerScenarios, count: Int64, state: _State) -> TransformerWinners:
    """Return the kept layouts as flat columns in order of scenario; a scenario without any has one row of zeros."""
    missing = np.nonzero(~state.is_done)[0]
    names = (*SPLIT_NAMES, *RECOMPUTE_NAMES)
    empty = (missing, np.zeros((len(names), len(missing))), np.zeros(len(missing)))
    owner, matrix, flags = zip(*[*state.kept, empty], strict=True)
    scenario = np.concatenate(owner)
    order = np.argsort(scenario, kind="stable")
    scenario = scenario[order]
    layout = dict(zip(names, np.concatenate(matrix, axis=1)[:, order], strict=True))
    layout["is_zero_bubble"] = np.concatenate(flags)[order]
    _, first, sizes = np.unique(scenario, return_index=True, return_counts=True)
    is_feasible = state.is_done[scenario]
    return TransformerWinners(
        scenario=scenario,
        rank=np.arange(len(scenario)) - np.repeat(first, sizes),
        is_feasible=is_feasible,
        reason=state.reason[scenario],
        accelerator_count=np.where(is_feasible | (scenarios.accelerator_count[scenario] > 0), count[scenario], 0),
        candidate_count=state.candidates[scenario],
        layout=layout,
        nearest_byte=state.nearest_byte[scenario],
    )
