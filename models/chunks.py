"""Packed points into a kernel, a chunk of one shape at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Columns = NDArray[np.int64]
FEW_POINTS = 256
NEVER_DIVIDES = 1e30
ALIGNMENT_BYTE = 64  # at such an address XLA reads an array where it lies; any other it copies first


@dataclass(frozen=True)
class Joined:
    """A packed matrix that is not laid out: below one another, columns picked from several tables.

    `picked[t]` are the columns of `tables[t]`, one for each point. A chunk is laid out as it is needed.
    """

    tables: tuple[Matrix, ...]
    picked: tuple[Columns, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Return (rows, points)."""
        return sum(len(table) for table in self.tables), len(self.picked[0])

    def only(self, chosen: NDArray[Any]) -> "Joined":
        """Return the chosen points."""
        return Joined(self.tables, tuple(each[chosen] for each in self.picked))

    def fill(self, part: Matrix, start: int, stop: int) -> None:
        """Write the points from start to stop into the matrix."""
        row = 0
        for table, picked in zip(self.tables, self.picked, strict=True):
            end = row + len(table)
            np.take(table, picked[start:stop], axis=1, out=part[row:end], mode="clip")  # other modes buffer the output
            row = end


def aligned(rows: int, columns: int) -> Matrix:
    """Return an empty matrix at an address that XLA reads without a copy."""
    room = np.empty(rows * columns * 8 + ALIGNMENT_BYTE, dtype=np.uint8)
    first = -room.ctypes.data % ALIGNMENT_BYTE
    return room[first : first + rows * columns * 8].view(np.float64).reshape(rows, columns)


def in_chunks(run: Callable[..., Any], points: Matrix | Joined, chunk: int, *constants: Any) -> list[NDArray[Any]]:
    """Return the outputs of a kernel over all points; few take a small chunk, so that most is not padding."""
    is_few = points.shape[1] <= FEW_POINTS
    return in_equal_chunks(run, points, min(chunk, FEW_POINTS) if is_few else chunk, *constants)


def in_equal_chunks(
    run: Callable[..., Any], points: Matrix | Joined, chunk: int, *constants: Any
) -> list[NDArray[Any]]:
    """Return the outputs of a kernel over all points: one chunk shape, the tail padded with its last point.

    All chunks share one buffer: each has ended, and given back what it found, before the next is laid out.
    """
    rows, count = points.shape
    part, pieces = aligned(rows, chunk), []
    for start in range(0, count, chunk):
        size = min(chunk, count - start)
        if isinstance(points, Joined):
            points.fill(part[:, :size], start, start + size)
        else:
            part[:, :size] = points[:, start : start + size]
        part[:, size:] = part[:, size - 1 : size]
        pieces.append([np.asarray(each) for each in run(part, *constants)])
    return [joined(column)[:count] for column in zip(*pieces, strict=True)]


def joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return pieces one after another; a single one as it is, which must not be written to."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def padded_placements(lowers: Matrix) -> Matrix:
    """Return placements padded to one of few widths (four an octave) with such as divide nothing."""
    padding = np.full((lowers.shape[0], padded_width(lowers.shape[1]) - lowers.shape[1]), NEVER_DIVIDES)
    return np.concatenate([lowers, padding], axis=1)


def padded_width(count: int) -> int:
    """Return to how many placements so many are padded."""
    step = max(2, (1 << (count - 1).bit_length()) // 8)
    return max(8, -(-count // step) * step)
