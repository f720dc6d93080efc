"""Which of a scenario's layouts are kept: the best, the K fastest, or those that no other beats in time and memory."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Keep = Callable[[Float64, Float64, Int64], Int64]
"""From step times (inf where a layout does not fit), memory and owner of layouts, sorted by owner, to which to keep."""


def keep_best(times: Float64, memory: Float64, owner: Int64) -> Int64:
    """Keep each owner's fastest layout that fits; of equal times the one with the least memory, then the first."""
    starts = np.nonzero(np.diff(owner, prepend=-1))[0]
    sizes = np.diff(starts, append=len(owner))
    tied = times == np.repeat(np.minimum.reduceat(times, starts), sizes)
    needed = np.where(tied, memory, np.inf)
    first = np.nonzero(tied & (needed == np.repeat(np.minimum.reduceat(needed, starts), sizes)))[0]
    return first[np.unique(owner[first], return_index=True)[1]]


def keep_top(times: Float64, memory: Float64, owner: Int64, number: int) -> Int64:
    """Keep each owner's fastest `number` layouts that fit, fastest first."""
    order = np.lexsort((memory, times, owner))
    order = order[np.isfinite(times[order])]
    starts = np.nonzero(np.diff(owner[order], prepend=-1))[0]
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    return order[rank < number]


def keep_pareto(times: Float64, memory: Float64, owner: Int64) -> Int64:
    """Keep the layouts that no other of their owner beats in both step time and memory, fastest first."""
    order = np.lexsort((memory, times, owner))
    order = order[np.isfinite(times[order])]
    # Memory ranks, offset so that every owner starts above all of the owners before it: one running least for all
    rank = np.unique(memory[order], return_inverse=True)[1].ravel()
    falling = rank - owner[order] * (rank.max(initial=0) + 1)
    least_before = np.concatenate([[np.iinfo(np.int64).max], np.minimum.accumulate(falling)[:-1]])
    return order[falling < least_before]
