"""From a range of scenario ids to tables of results: decode, search, evaluate what is kept."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.block import Block, scenario_table
from pipeline.errors import UserError
from pipeline.grid import Grid
from pipeline.keep import epoch_tables
from pipeline.local_steps import with_sites
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.result_columns import POINT_BITS, Table
from pipeline.search_layouts import candidate_count
from pipeline.search_table import first_counts
from pipeline.transformer_candidates import transformer_candidate_tables
from pipeline.transformer_table import transformer_candidates, transformer_table

Columns = Mapping[str, NDArray[np.float64]]
COUNT_ALL = 4096  # scenarios of a study up to which the candidates of each are counted
COUNT_SAMPLE = 256  # beyond that, so many of the study are, and at least two of a block; the rest is like them
UNIT_ROWS = 1 << 21  # rows in one work unit (one part file), about
UNIT_CANDIDATES = 1 << 24  # candidates searched in one work unit, about
UNIT_SCENARIOS = (64, 1 << 16)
UNIT_LIMIT = 1 << 14  # work units in a study, about: the manifest names them all
SLICE_SCENARIOS = 4096  # scenarios of a unit that are in memory at once


def work_units(grid: Grid) -> list[range]:
    """Return the study's work units: contiguous ranges of scenario ids that cover it, in order, within blocks.

    `unit_scenarios` fixes their size; left out, it follows from the rows and candidates that a scenario has.
    """
    fixed = grid.study.unit_scenarios
    units = []
    for block, start in zip(grid.blocks, grid.starts, strict=False):
        size = fixed or max(_unit_size(grid, block), grid.size // UNIT_LIMIT)
        stop = int(start) + block.size
        units += [range(first, min(first + size, stop)) for first in range(int(start), stop, size)]
    return units


def _unit_size(grid: Grid, block: Block) -> int:
    each = max(1.0, block_candidates(grid, block) / block.size)
    if grid.study.keep == "all":
        return int(max(1, min(UNIT_ROWS / each, UNIT_SCENARIOS[1])))
    return int(min(max(UNIT_CANDIDATES / each, UNIT_SCENARIOS[0]), UNIT_SCENARIOS[1]))


def run_unit(grid: Grid, unit: range) -> Table:
    """Return all rows of the unit, in order of scenario id (with keep=best one row for each scenario)."""
    tables = list(unit_tables(grid, unit))
    names = list(dict.fromkeys(name for table in tables for name in table))
    return {name: np.concatenate([_column(table, name) for table in tables]) for name in names}


def _column(table: Table, name: str) -> NDArray[Any]:
    """Return a column, or zeros where a block's network has no such level."""
    values: Any = table[name] if name in table else np.zeros(len(table["scenario_id"]))
    if isinstance(values, pa.DictionaryArray):
        return np.array(values.dictionary.to_pylist())[values.indices.to_numpy()]
    return values if isinstance(values, np.ndarray) else values.to_numpy(zero_copy_only=False)


def unit_tables(grid: Grid, unit: range) -> Iterator[Table]:
    """Yield the rows of the unit piece by piece, in order of scenario id."""
    for start in range(unit.start, unit.stop, SLICE_SCENARIOS):
        for block, inside, ids in grid.parts(start, min(start + SLICE_SCENARIOS, unit.stop)):
            offset = int(ids[0] - inside[0])
            for table in _tables(block, ids, block.columns(inside), grid.study.keep, offset):
                if "series_id" not in table:
                    table = _keys(block, table["scenario_id"].astype(np.int64) - offset, offset, table)
                yield table


def _keys(block: Block, inside: NDArray[np.int64], offset: int, table: Table) -> Table:
    """Return the table with the series of each row and its names on the axes of names."""
    series = offset + inside % (block.size // block.point_count)
    return table | block.labels(inside) | {"series_id": series.astype(np.uint64)}


def block_table(block: Block, inside: NDArray[np.int64], ids: NDArray[np.int64]) -> Table:
    """Return the winners of some scenarios of one block, with everything a reader of the row needs."""
    offset = int(ids[0] - inside[0])
    (table,) = _tables(block, ids, block.columns(inside), "best", offset)
    return _keys(block, inside, offset, table)


def _tables(block: Block, ids: NDArray[np.int64], columns: Columns, keep: str, offset: int) -> Iterator[Table]:
    if "local_step_count" not in columns:
        yield from kept_tables(block, ids, columns, keep, offset)
    elif keep == "best":
        yield with_sites(partial(_only, block, ids, keep), columns, block.level_count)
    elif np.any(columns["local_step_count"] > 1.0):
        raise UserError(f"config.yaml: keep = {keep}: sites with local steps have one row each; choose keep=best")
    else:
        yield from kept_tables(block, ids, columns, keep, offset)


def _only(block: Block, ids: NDArray[np.int64], keep: str, columns: Columns) -> Table:
    (table,) = kept_tables(block, ids, columns, keep)
    return table


def kept_tables(block: Block, ids: NDArray[np.int64], columns: Columns, keep: str, offset: int = 0) -> Iterator[Table]:
    """Yield the rows that are kept of some scenarios of one block, given by their numbers."""
    physics = block.physics
    if not isinstance(physics, CalibratedEntry):
        yield from epoch_tables(block, physics, ids, columns, keep, offset)
        return
    if keep == "all":
        yield from transformer_candidate_tables(block, physics, columns, ids, offset)
        return
    table = transformer_table(block, physics, columns, ids, keep)
    rank = np.asarray(table["layout_rank"]).astype(np.uint64)
    yield table | {"point_id": (table["scenario_id"] << np.uint64(POINT_BITS)) + rank}


def block_candidates(grid: Grid, block: Block) -> int:
    """Return how many candidates the first cluster size of a block's scenarios has; in large studies by a sample."""
    sample = block.size if grid.size <= COUNT_ALL else min(block.size, max(2, COUNT_SAMPLE // len(grid.blocks)))
    at = np.linspace(0, block.size - 1, sample).astype(np.int64)
    return round(_candidates(block, block.columns(at)) * block.size / len(at))


def _candidates(block: Block, columns: Columns) -> int:
    if isinstance(block.physics, CalibratedEntry):
        return transformer_candidates(columns, block.physics.rules)
    table = scenario_table(block, columns)
    keys = np.stack([table.shape_index, table.network_index, first_counts(table)])
    distinct, repeats = np.unique(keys, axis=1, return_counts=True)
    total = 0
    for (shape, network, accelerators), times in zip(distinct.T, repeats, strict=True):
        key = (table.shapes[shape], int(accelerators), table.group_ranks[network])
        total += int(times) * candidate_count(*key, block.physics.rules)
    return total


def count(grid: Grid) -> tuple[int, int]:
    """Return (scenarios, candidates): candidates of the first cluster size that each scenario tries.

    Larger clusters are tried only where that one does not end in time, so this is the least the search looks at.
    """
    return grid.size, sum(block_candidates(grid, block) for block in grid.blocks)
