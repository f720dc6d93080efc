"""Chunks: of one shape, padded with what is there, laid out from tables only as they are needed."""

import numpy as np
import pytest

from models.chunks import ALIGNMENT_BYTE, Joined, aligned, in_chunks, in_equal_chunks


def recorder():
    """Return a kernel that sums each point's rows, and the list of what it is given."""
    parts = []

    def run(part, factor):
        parts.append(part.copy())
        return (part.sum(axis=0) * factor,)

    return run, parts


def joined(points: int = 10) -> Joined:
    random = np.random.default_rng(1)
    tables = (random.random((3, 4)), random.random((2, 7)))
    return Joined(tables, (random.integers(0, 4, points), random.integers(0, 7, points)))


def laid_out(points: Joined) -> np.ndarray:
    return np.concatenate([table[:, picked] for table, picked in zip(points.tables, points.picked, strict=True)])


@pytest.mark.parametrize("chunk", [1, 3, 5, 10, 16])
def test_joined_tables_are_the_matrix_they_stand_for(chunk):
    points, (ours, our_parts), (theirs, their_parts) = joined(), recorder(), recorder()
    assert points.shape == (5, 10)
    (found,) = in_equal_chunks(ours, points, chunk, 2.0)
    (expected,) = in_equal_chunks(theirs, laid_out(points), chunk, 2.0)
    assert np.array_equal(found, expected) and np.array_equal(found, laid_out(points).sum(axis=0) * 2.0)
    assert all(np.array_equal(*pair) for pair in zip(our_parts, their_parts, strict=True))
    assert {part.shape for part in our_parts} == {(5, chunk)}


def test_a_tail_is_padded_with_its_last_point():
    points, (run, parts) = joined(), recorder()
    in_equal_chunks(run, points, 4, 1.0)
    assert (parts[-1][:, 1:] == laid_out(points)[:, 9:]).all()


def test_chosen_points_are_columns_of_the_matrix():
    points = joined()
    for chosen in (np.array([7, 2, 2]), np.arange(10) % 2 == 0):
        assert np.array_equal(laid_out(points.only(chosen)), laid_out(points)[:, chosen])


def test_few_points_take_a_small_chunk():
    run, parts = recorder()
    in_chunks(run, np.ones((2, 256)), 8192, 1.0)
    in_chunks(run, np.ones((2, 257)), 8192, 1.0)
    assert [part.shape[1] for part in parts] == [256, 8192]


@pytest.mark.parametrize("shape", [(1, 1), (39, 819), (5, 3)])
def test_a_chunk_lies_where_it_need_not_be_copied(shape):
    part = aligned(*shape)
    assert part.shape == shape and part.ctypes.data % ALIGNMENT_BYTE == 0 and part.flags.c_contiguous
