"""All scenarios of one hardware, topology, model and physics: a lazy product, decoded on demand into numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.packing import pack, scenario_names
from pipeline.errors import UserError
from pipeline.layouts import Shape
from pipeline.physics import PhysicsEntry
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.search_table import ScenarioTable
from pipeline.variants import PRICE_DATE, NamedAxis

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
RATIO = "_ratio"
COUNT_AXIS = "accelerator_count"
WHOLE = ("layer_count", "d_model", "d_ff", "expert_count", "sequence_token", "global_batch_token", COUNT_AXIS)
MATMULS_PER_LAYER = 6  # two weight matrices, each forward and for two gradients

FLOOR_LIMIT = 1e18  # accelerators: above it cluster sizes are no whole numbers of 64 bits any more


@dataclass(frozen=True, kw_only=True)
class Block:
    """All scenarios of one hardware, topology, model and physics: model points x numeric axes."""

    hardware: str
    topology: str
    model: str
    physics: PhysicsEntry | CalibratedEntry
    precision: str
    level_count: int
    fixed: Mapping[str, float]  # numbers that every scenario of the block shares
    points: Mapping[str, Float64]  # numbers that change from model point to model point
    axes: tuple[tuple[str, Float64], ...]
    named_axes: tuple[NamedAxis, ...] = ()  # price dates, variants: fastest of all

    @property
    def point_count(self) -> int:
        """Number of model points."""
        return len(next(iter(self.points.values())))

    @cached_property
    def size(self) -> int:
        """Number of scenarios."""
        size = self.point_count
        for length in self.shape[1:]:
            size *= length
        return size

    @cached_property
    def varied(self) -> tuple[str, ...]:
        """Return the numbers that the axes vary: `x` by an axis of that name, or by `x_ratio`, which multiplies it."""
        known = {*self.fixed, *self.points}
        return tuple(name if name in known else name.removesuffix(RATIO) for name, _ in self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis, slowest first: model points, numeric axes, axes of names."""
        numeric = (len(values) for _, values in self.axes)
        return (self.point_count, *numeric, *(len(axis.labels) for axis in self.named_axes))

    def labels(self, index: Int64) -> dict[str, NDArray[np.str_]]:
        """Return the names of the scenarios at these indices on each axis of names."""
        at = np.unravel_index(index, self.shape)[1 + len(self.axes) :]
        return {axis.name: np.array(axis.labels)[position] for axis, position in zip(self.named_axes, at, strict=True)}

    def columns(self, index: Int64) -> dict[str, Float64]:
        """Return every number of the scenarios at these indices: model points slowest, last axis fastest."""
        at = np.unravel_index(index, self.shape)
        columns = {name: np.full(len(index), value) for name, value in self.fixed.items()}
        columns |= {name: values[at[0]] for name, values in self.points.items()}
        planned_token = columns["dataset_token"]
        named = list(zip(self.named_axes, at[1 + len(self.axes) :], strict=True))
        for axis, position in named:  # a day's prices are what an axis of prices then moves
            if axis.name == PRICE_DATE:
                axis.apply(columns, position)
        for (name, values), number, position in zip(self.axes, self.varied, at[1:], strict=False):
            moved = values[position]
            columns[number] = moved if name == number else columns[number] * moved
        for axis, position in named:
            if axis.name != PRICE_DATE:
                axis.apply(columns, position)
        # Another dataset on the same model is another run: its FLOP goes with its tokens
        columns["training_flop"] = columns["training_flop"] * (columns["dataset_token"] / planned_token)
        return columns


def scenario_table(block: Block, columns: Mapping[str, Float64]) -> ScenarioTable:
    """Return the searchable form of scenarios of one block (all columns of one length)."""
    whole = {name: np.rint(columns[name]).astype(np.int64) for name in WHOLE}
    for name, values in whole.items():
        if not np.array_equal(values, columns[name]):
            bad = columns[name][values != columns[name]][0]
            raise UserError(f"config.yaml: axes.{name} = {bad!r}: must be a whole number; round it")
    sustained = columns["peak_flop_per_s"] * columns["sustained_fraction"]
    floor = columns["training_flop"] / (columns["run_limit_s"] * sustained)
    _refuse_absurd(block, columns, np.where(whole[COUNT_AXIS] > 0, 0.0, floor))
    keys = np.stack([whole[name] for name in WHOLE[:-1]])
    distinct, shape_index = np.unique(keys, axis=1, return_inverse=True)
    sizes = np.stack([columns[f"level_{level}_group_ranks"] for level in range(block.level_count)])[:-1]
    networks, network_index = np.unique(sizes, axis=1, return_inverse=True)
    return ScenarioTable(
        level_count=block.level_count,
        matrix=pack(dict(columns), scenario_names(block.level_count)),
        shapes=tuple(Shape(**dict(zip(WHOLE[:-1], map(int, each), strict=True))) for each in distinct.T),
        shape_index=shape_index.ravel(),
        group_ranks=tuple(tuple(float(size) for size in each) for each in networks.T),
        network_index=network_index.ravel(),
        run_limit_s=columns["run_limit_s"],
        steps=columns["dataset_token"] / columns["global_batch_token"],
        accelerator_count=whole[COUNT_AXIS],
        floor_accelerators=floor,
        step_floor_s=MATMULS_PER_LAYER * columns["layer_count"] * columns["matmul_latency_s"],
    )


def _refuse_absurd(block: Block, columns: Mapping[str, Float64], floor_accelerators: Float64) -> None:
    """Refuse a run that no countable cluster ends in time: a number stands in a wrong unit."""
    at = int(np.argmax(floor_accelerators))
    if floor_accelerators[at] > FLOOR_LIMIT:
        peak, limit_s, flop = (float(columns[name][at]) for name in ("peak_flop_per_s", "run_limit_s", "training_flop"))
        raise UserError(
            f"config.yaml: {block.hardware}: peak_flop_per_s = {peak:g}, run_limit_s = {limit_s:g}: a run of "
            f"{flop:.2g} FLOP must take <= {FLOOR_LIMIT:.1g} accelerators; write both in base units, FLOP/s and s"
        )
