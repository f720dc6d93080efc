"""The layouts of many searches side by side, and how many candidates each search has."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.packing import DEGREES, layout_names, pack
from pipeline.layouts import SearchRules, Shape, layouts, prime_powers, used_group_ranks

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Key = tuple[Shape, int, tuple[float, ...]]


@dataclass(frozen=True)
class LayoutTables:
    """The layouts of several (shape, cluster size, network) keys, side by side, and where each key's rows are."""

    matrix: Float64
    start: Int64
    count: Int64
    candidates: Int64


def layout_tables(keys: list[Key], rules: SearchRules) -> LayoutTables:
    """Return the layouts of each key; one enumeration a distinct key, however many scenarios share it."""
    tables = [packed_layouts(shape, count, rules) for shape, count, _ in keys]
    sizes = np.array([each.shape[1] for each in tables], dtype=np.int64)
    candidates = np.array([candidate_count(*key, rules) for key in keys], dtype=np.int64)
    matrix = np.concatenate(tables, axis=1) if tables else np.zeros((len(layout_names()), 0))
    return LayoutTables(matrix, np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes, candidates)


@lru_cache(maxsize=256)  # about 250 kB each
def packed_layouts(shape: Shape, count: int, rules: SearchRules) -> Float64:
    """Return the layouts of one shape on one cluster size as a packed matrix (rows of layout_names)."""
    return pack(layouts(shape, count, rules), layout_names())


def degree_rows(layout: Float64) -> Float64:
    """Return the rows of a packed layout matrix that a placement spreads, in the order of DEGREES."""
    names = layout_names()
    return layout[[names.index(each) for each in DEGREES]]


def degree_limits(degrees: Float64, used: tuple[int, ...]) -> tuple[int, ...]:
    """Return, for each degree, the least multiple of what any of the layouts could lay below the top level."""
    within = int(np.prod(used, dtype=np.int64))
    return tuple(int(np.lcm.reduce(np.gcd(np.unique(row).astype(np.int64), within))) for row in degrees)


@lru_cache(maxsize=65536)
def _ways(level_exponents: tuple[int, ...], capacities: tuple[int, ...]) -> int:
    """Return how many ways lay one prime's exponents of each level over degrees that can take so many of them."""
    if not level_exponents:
        return 1
    total = 0
    for parts in _compositions(level_exponents[0], capacities):
        left = tuple(sorted(capacity - part for capacity, part in zip(capacities, parts, strict=True)))
        total += _ways(level_exponents[1:], left)
    return total


def _compositions(total: int, capacities: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all ways to write total as a sum of parts, each at most its capacity."""
    if not capacities:
        return [()] if total == 0 else []
    first, *rest = capacities
    return [
        (part, *others) for part in range(min(first, total) + 1) for others in _compositions(total - part, tuple(rest))
    ]


def _exponents(values: Int64, prime: int, highest: int) -> Int64:
    """Return how often a prime divides each value, at most `highest` times."""
    return sum((values % prime**power == 0).astype(np.int64) for power in range(1, highest + 1))  # type: ignore[return-value]


def placement_counts(degrees: Float64, used: tuple[int, ...]) -> Int64:
    """Return how many placements each layout has: parts on the bounded levels that fill them and divide the degrees.

    Primes are independent, and degrees alike, so each distinct set of exponents is counted once.
    """
    whole = degrees.astype(np.int64)
    result = np.ones(whole.shape[1], dtype=np.int64)
    for prime, highest in prime_powers(int(np.prod(used, dtype=np.int64))):
        of_levels = tuple(next((e for p, e in prime_powers(size) if p == prime), 0) for size in used)
        capacities = np.sort(np.stack([_exponents(row, prime, highest) for row in whole]), axis=0)
        codes = (capacities * (highest + 1) ** np.arange(len(capacities))[:, None]).sum(axis=0)
        _, first, code = np.unique(codes, return_index=True, return_inverse=True)
        counts = [_ways(tuple(filter(None, of_levels)), tuple(map(int, capacities[:, at]))) for at in first]
        result *= np.array(counts, dtype=np.int64)[code.ravel()]
    return result


@lru_cache(maxsize=65536)
def candidate_count(shape: Shape, count: int, group_ranks: tuple[float, ...], rules: SearchRules) -> int:
    """Return how many (layout, placement) pairs the search considers: placements whose parts divide their degrees."""
    degrees = degree_rows(packed_layouts(shape, count, rules))
    return int(placement_counts(degrees, used_group_ranks(count, group_ranks)).sum())
