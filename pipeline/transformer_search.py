"""The layout search of the calibrated physics: every layout evaluated, the best that fits kept, per scenario.

Rank order is fixed (tensor, context, data, pipeline from the inside out), so a layout has one placement and its
evaluation is its bound. Ties: less memory, then the order of `pipeline.transformer_layouts`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.evaluate import transformer_times
from models.packing import field_names, pack, transformer_names
from models.transformer_point import Constants, TransformerLayout
from pipeline.transformer_layouts import TransformerSearchRules, TransformerShape, transformer_layouts

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
LAYOUT_NAMES = field_names(TransformerLayout)
MAXIMUM_ACCELERATORS = 1 << 30
"""No search grows beyond this: about a thousand million accelerators."""
FLAT_LIMIT = 400_000  # layouts evaluated in one go: bounds the memory of a search


@dataclass(frozen=True, kw_only=True)
class TransformerScenarios:
    """Scenarios to search, one entry each."""

    columns: Mapping[str, Float64]  # every scenario number, named like the bundles' fields
    shapes: tuple[TransformerShape, ...]
    shape_index: Int64
    hbm_byte: Float64
    run_limit_s: Float64
    steps: Float64
    accelerator_count: Int64  # fixed, or 0: the smallest power of two that ends in time
    floor_accelerators: Float64

    @property
    def size(self) -> int:
        """Number of scenarios."""
        return len(self.hbm_byte)


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
def layout_matrix(shape: TransformerShape, count: int, rules: TransformerSearchRules) -> tuple[Float64, Float64]:
    """Return the packed layouts of one shape on one cluster, and their zero-bubble flags."""
    columns = transformer_layouts(shape, count, rules)
    return pack(columns, LAYOUT_NAMES), columns["is_zero_bubble"]


def search_transformers(
    scenarios: TransformerScenarios,
    constants: Constants,
    rules: TransformerSearchRules,
    keep: Callable[[Float64, Float64], Int64],
) -> TransformerWinners:
    """Return the kept layouts of each scenario.

    `keep` chooses, from step times (inf where it does not fit) and memory of one scenario's layouts, which to keep,
    best first. Clusters double until the best layout ends in time, unless the count is fixed.
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


def first_counts(scenarios: TransformerScenarios) -> Int64:
    """Return the first cluster size to try: the fixed one, or the smallest power of two that could end in time."""
    exponent = np.ceil(np.log2(np.maximum(scenarios.floor_accelerators, 1.0)) - 1e-9)
    exponent = np.minimum(exponent, np.log2(MAXIMUM_ACCELERATORS) + 1)  # beyond it nothing is searched anyway
    smallest = np.int64(1) << exponent.astype(np.int64)
    return np.where(scenarios.accelerator_count > 0, scenarios.accelerator_count, smallest)


@dataclass
class _State:
    reason: NDArray[np.str_]
    is_done: NDArray[np.bool_]
    has_layouts: NDArray[np.bool_]
    candidates: Int64
    nearest_byte: Float64
    kept: dict[int, tuple[Float64, Float64]]

    @staticmethod
    def empty(size: int) -> "_State":
        return _State(
            reason=np.full(size, "no_layout", dtype="<U16"),
            is_done=np.zeros(size, dtype=bool),
            has_layouts=np.zeros(size, dtype=bool),
            candidates=np.zeros(size, dtype=np.int64),
            nearest_byte=np.full(size, np.inf),
            kept={},
        )


def _batches(
    scenarios: TransformerScenarios, count: Int64, members: Int64, rules: TransformerSearchRules
) -> list[Int64]:
    """Return the members in runs whose layouts together stay below the limit."""
    sizes = [
        layout_matrix(scenarios.shapes[scenarios.shape_index[each]], int(count[each]), rules)[0].shape[1]
        for each in members
    ]
    group = np.cumsum(sizes) // FLAT_LIMIT
    return [members[group == each] for each in np.unique(group)]


def _search_batch(
    scenarios: TransformerScenarios,
    constants: Constants,
    rules: TransformerSearchRules,
    keep: Callable[[Float64, Float64], Int64],
    count: Int64,
    members: Int64,
    state: _State,
) -> None:
    """Evaluate every layout of the members in one vectorised call and keep the chosen ones."""
    tables = [layout_matrix(scenarios.shapes[scenarios.shape_index[each]], int(count[each]), rules) for each in members]
    sizes = np.array([matrix.shape[1] for matrix, _ in tables], dtype=np.int64)
    layouts = np.concatenate([matrix for matrix, _ in tables], axis=1)
    owner = np.repeat(members, sizes)
    state.candidates[members] += sizes
    state.has_layouts[members] = sizes > 0
    if not len(owner):
        return
    names = [name for name in transformer_names() if name not in LAYOUT_NAMES]
    scenario_matrix = {name: scenarios.columns[name][owner] for name in names}
    layout_columns = dict(zip(LAYOUT_NAMES, layouts, strict=True))
    points = pack({**scenario_matrix, **layout_columns}, transformer_names())
    step_s, memory_byte = transformer_times(points, constants)
    usable_s = np.where(memory_byte <= scenarios.hbm_byte[owner], step_s, np.inf)
    ends = np.cumsum(sizes)
    for member, start, end in zip(members, ends - sizes, ends, strict=True):
        if start == end:
            continue
        times, memory = usable_s[start:end], memory_byte[start:end]
        state.nearest_byte[member] = min(state.nearest_byte[member], memory.min())
        best = times.min()
        is_fixed = scenarios.accelerator_count[member] > 0
        in_time = best * scenarios.steps[member] < scenarios.run_limit_s[member]
        state.reason[member] = "memory" if not np.isfinite(best) else "" if in_time or is_fixed else "time"
        if state.reason[member] == "":
            state.is_done[member] = True
            chosen = start + keep(times, memory)
            flags = np.concatenate([flag for _, flag in tables])[chosen]
            state.kept[int(member)] = (layouts[:, chosen], flags)


def _collect(scenarios: TransformerScenarios, count: Int64, state: _State) -> TransformerWinners:
    """Return the kept layouts as flat columns; a scenario without any has one row of zeros."""
    empty = (np.zeros((len(LAYOUT_NAMES), 1)), np.zeros(1))
    pieces = [state.kept.get(member, empty) for member in range(scenarios.size)]
    sizes = np.array([len(flags) for _, flags in pieces], dtype=np.int64)
    scenario = np.repeat(np.arange(scenarios.size), sizes)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    matrix = np.concatenate([matrix for matrix, _ in pieces], axis=1)
    layout = dict(zip(LAYOUT_NAMES, matrix, strict=True))
    layout["is_zero_bubble"] = np.concatenate([flags for _, flags in pieces])
    is_feasible = state.is_done[scenario]
    return TransformerWinners(
        scenario=scenario,
        rank=np.arange(len(scenario)) - first[scenario],
        is_feasible=is_feasible,
        reason=state.reason[scenario],
        accelerator_count=np.where(is_feasible | (scenarios.accelerator_count[scenario] > 0), count[scenario], 0),
        candidate_count=state.candidates[scenario],
        layout=layout,
        nearest_byte=state.nearest_byte[scenario],
    )


def keep_best(times: Float64, memory: Float64) -> Int64:
    """Keep the fastest layout that fits; of equal times the one with the least memory, then the first."""
    tied = np.nonzero(times == times.min())[0]
    return tied[[np.argmin(memory[tied])]]


def keep_top(times: Float64, memory: Float64, number: int) -> Int64:
    """Keep the fastest `number` layouts that fit, fastest first."""
    order = np.lexsort((memory, times))[:number]
    return order[np.isfinite(times[order])]


def keep_all(times: Float64, memory: Float64) -> Int64:
    """Keep every layout, also those that do not fit, in order."""
    return np.arange(len(times))


def keep_pareto(times: Float64, memory: Float64) -> Int64:
    """Keep the layouts that no other beats in both step time and memory, fastest first."""
    order = np.lexsort((memory, times))
    order = order[np.isfinite(times[order])]
    least_before = np.concatenate([[np.inf], np.minimum.accumulate(memory[order])[:-1]])
    return order[memory[order] < least_before]
