"""Layouts of transformers through the kernels of `models.evaluate`: points, blocks of layouts, all of one layout."""

import numpy as np
from numpy.typing import NDArray

from models.chunks import FEW_POINTS, Matrix, aligned, in_chunks
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
    run, blocks = kernel("transformer_time", 0), len(rows)
    times, memory = (np.empty((blocks, layouts.shape[2], recomputes.shape[1])) for _ in range(2))
    for start in range(0, blocks, BLOCK_CHUNK):
        stop = min(start + BLOCK_CHUNK, blocks)
        at = np.minimum(np.arange(start, start + BLOCK_CHUNK), blocks - 1)  # one chunk shape: the last block repeats
        found = run(scenarios[:, at], layouts[:, rows[at]], recomputes, constants)
        times[start:stop], memory[start:stop] = (np.asarray(each)[: stop - start] for each in found)
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
    run, pieces = kernel("transformer_best", 0), []
    chunk = aligned(len(layouts), BLOCK_CHUNK * layouts.shape[2]).reshape(len(layouts), BLOCK_CHUNK, -1)
    for start in range(0, len(rows), BLOCK_CHUNK):
        at = np.minimum(np.arange(start, start + BLOCK_CHUNK), len(rows) - 1)
        np.take(layouts, rows[at], axis=1, out=chunk, mode="clip")
        found = run(scenarios[:, at], hbm_byte[at], chunk, recomputes, constants)
        pieces.append([np.asarray(each) for each in found])  # waits: then the chunk is free again
    time_s, memory, place, least = (np.concatenate(column)[: len(rows)] for column in zip(*pieces, strict=True))
    return time_s, memory, place.astype(np.int64), least


def transformer_layout_outcomes(
    scenario: Matrix, layouts: Matrix, recomputes: Matrix, constants: Constants
) -> dict[str, Matrix]:
    """Return every field of `TransformerOutcome`, arrays (layout, recomputation), of the layouts of one scenario.

    `scenario` has the rows of `transformer_scenario_names`; `layouts` and `recomputes` a column a choice.
    """
    count, names = layouts.shape[1], field_names(TransformerOutcome)
    is_few = count <= LANES
    run, lanes = kernel("transformer_expand", 0, is_quick=is_few), LANES if is_few else EXPAND_LANES
    pieces = []
    for start in range(0, count, lanes):
        at = np.minimum(np.arange(start, start + lanes), count - 1)  # one chunk shape: the last layout repeats
        found = run(scenario, layouts[:, at], recomputes, constants)
        pieces.append([np.asarray(values)[: count - start] for values in found])
    whole = (each[0] if len(pieces) == 1 else np.concatenate(each) for each in zip(*pieces, strict=True))
    return dict(zip(names, whole, strict=True))
