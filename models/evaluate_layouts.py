"""Layouts of transformers through the kernels of `models.evaluate`: points, blocks of layouts, all of one layout."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.chunks import FEW_POINTS, Matrix, aligned, in_chunks, in_equal_chunks, joined
from models.evaluate import POINT_CHUNK, kernel
from models.packing import field_names
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import Constants

LANES = 256  # layouts of one scenario in one block
BLOCK_CHUNK = 64  # blocks in one call
EXPAND_LANES = 2048  # layouts of one scenario in one call that returns all of an outcome


def transformer_outcomes(
    points: Matrix, constants: Constants, chunk: int = POINT_CHUNK
) -> dict[str, NDArray[np.float64]]:
    """Return every field of `TransformerOutcome` for packed points (rows of `transformer_names`).

    A caller that evaluates few points often names a smaller chunk; each size is compiled once.
    """
    if points.shape[1] == 0:
        return {name: np.zeros(0) for name in field_names(TransformerOutcome)}
    run = kernel("transformer", 0, is_quick=points.shape[1] <= FEW_POINTS)
    values = in_chunks(run, points, chunk, constants)
    return dict(zip(field_names(TransformerOutcome), values, strict=True))


def transformer_times(
    scenarios: Matrix, layouts: Matrix, rows: NDArray[np.int64], recomputes: Matrix, constants: Constants
) -> tuple[Matrix, Matrix]:
    """Return (wall time a step in s, peak memory in B), arrays (block, lane, recomputation), of layouts.

    `scenarios` has a column a block (rows of `transformer_scenario_names`); its layouts are block `rows` of `layouts`,
    an array (row of `transformer_split_names`, block, lane), each with every column of `recomputes` (rows of
    RECOMPUTE_NAMES). What depends on the scenario alone, or not on the recomputation, is computed once.
    Wall time is step time over goodput: failures and checkpoints are in it.
    """
    times, memory = in_block_chunks("transformer_time", (scenarios,), layouts, rows, recomputes, constants)
    return times, memory


def best_layouts(
    scenarios: Matrix,
    hbm_byte: Matrix,
    layouts: Matrix,
    rows: NDArray[np.int64],
    recomputes: Matrix,
    constants: Constants,
) -> tuple[Matrix, Matrix, NDArray[np.int64], Matrix]:
    """Return (wall time a step, memory, place, least memory) of each block's best layout; see `transformer_times`."""
    each = (scenarios, hbm_byte)
    time_s, memory, place, least = in_block_chunks("transformer_best", each, layouts, rows, recomputes, constants)
    return time_s, memory, place.astype(np.int64), least


def in_block_chunks(
    name: str, of_blocks: tuple[Matrix, ...], layouts: Matrix, rows: NDArray[np.int64], *constants: Any
) -> list[NDArray[Any]]:
    """Return the outputs of a kernel over blocks of layouts: one chunk shape, the last block repeats in the tail.

    `of_blocks` are arrays whose last axis is the block. All chunks share one buffer of layouts, as in `models.chunks`.
    """
    run, pieces = kernel(name, 0), []
    chunk = aligned(len(layouts), BLOCK_CHUNK * layouts.shape[2]).reshape(len(layouts), BLOCK_CHUNK, -1)
    for start in range(0, len(rows), BLOCK_CHUNK):
        at = np.minimum(np.arange(start, start + BLOCK_CHUNK), len(rows) - 1)
        np.take(layouts, rows[at], axis=1, out=chunk, mode="clip")
        found = run(*(each[..., at] for each in of_blocks), chunk, *constants)
        pieces.append([np.asarray(each) for each in found])  # waits: then the chunk is free again
    return [joined(column)[: len(rows)] for column in zip(*pieces, strict=True)]


def transformer_layout_outcomes(
    scenario: Matrix, layouts: Matrix, recomputes: Matrix, constants: Constants
) -> dict[str, Matrix]:
    """Return every field of `TransformerOutcome`, arrays (layout, recomputation), of the layouts of one scenario.

    `scenario` has the rows of `transformer_scenario_names`; `layouts` and `recomputes` a column a choice.
    """
    is_few = layouts.shape[1] <= LANES
    run = partial(kernel("transformer_expand", 0, is_quick=is_few), scenario)
    found = in_equal_chunks(run, layouts, LANES if is_few else EXPAND_LANES, recomputes, constants)
    return dict(zip(field_names(TransformerOutcome), found, strict=True))
