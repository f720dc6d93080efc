"""All layouts of one model shape on one number of accelerators, as integer arrays.

Whole-number work (divisors, factorisations, divisibility) is settled here in int64 before JAX sees it.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Columns = dict[str, NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the layouts of a run depend on, hashable."""

    layer_count: int
    d_model: int
    d_ff: int
    expert_count: int
    global_batch_token: int
    sequence_token: int


@dataclass(frozen=True, kw_only=True)
class SearchRules:
    """Which layouts a search considers (conf/physics, `search`)."""

    tensor_ff_ratio_maximum: int  # d_ff ranks lie between sqrt(TP) and this multiple of it
    interleaved_microbatch_choices: int  # first divisors >= pipeline ranks, 1F1B
    zero_bubble_microbatch_choices: int  # first divisors >= 2 pipeline ranks, zero bubble


@lru_cache(maxsize=65536)
def prime_powers(number: int) -> tuple[tuple[int, int], ...]:
    """Return the prime factorisation of a positive whole number as (prime, exponent) pairs."""
    factors = []
    twos = (number & -number).bit_length() - 1
    if twos:
        factors.append((2, twos))
        number >>= twos
    prime = 3
    while prime * prime <= number:
        exponent = 0
        while number % prime == 0:
            number //= prime
            exponent += 1
        if exponent:
            factors.append((prime, exponent))
        prime += 2
    if number > 1:
        factors.append((number, 1))
    return tuple(factors)


@lru_cache(maxsize=65536)
def divisors(number: int) -> Int64:
    """Return all divisors of a positive whole number, sorted."""
    result = np.ones(1, dtype=np.int64)
    for prime, exponent in prime_powers(number):
        powers = np.array([prime**e for e in range(exponent + 1)], dtype=np.int64)
        result = np.outer(result, powers).ravel()
    return np.sort(result)


def _integer_square_root(values: Int64) -> Int64:
    root = np.sqrt(values.astype(np.float64)).astype(np.int64)
    root = np.where(root * root > values, root - 1, root)
    return np.where((root + 1) * (root + 1) <= values, root + 1, root)


def _tensor_splits(tensor: Int64, shape: Shape, rules: SearchRules, choices: Int64) -> tuple[Int64, Int64]:
    """Return (index into tensor, d_ff ranks) of every admissible split of each tensor degree over two axes."""
    root = _integer_square_root(tensor)[:, None]
    over_ff = choices[None, :]
    over_model = np.where(tensor[:, None] % over_ff == 0, tensor[:, None] // over_ff, 0)
    admissible = (over_model > 0) & (over_ff >= root) & (over_ff <= rules.tensor_ff_ratio_maximum * root)
    admissible &= shape.d_ff % over_ff == 0
    admissible &= shape.d_model % np.maximum(over_model, 1) == 0
    index, column = np.nonzero(admissible)
    return index, choices[column]


def _microbatch_choices(data: Int64, pipeline: Int64, shape: Shape, rules: SearchRules) -> dict[str, Int64]:
    """Return (index, microbatches, is_zero_bubble) of both schedules for each (data, pipeline) pair.

    Microbatches divide the sequences' tokens a data rank and expert holds. 1F1B takes the first few divisors at or
    above the pipeline ranks, zero bubble the first few at or above twice that (it keeps 2 p - 1 in flight).
    """
    indices, counts, flags = [], [], []
    unique, inverse = np.unique(data, return_inverse=True)
    per_expert = shape.global_batch_token // (shape.expert_count * unique)
    lists = [divisors(int(token)) if token > 0 else np.zeros(0, dtype=np.int64) for token in per_expert]
    longest = max((len(each) for each in lists), default=0)
    table = np.full((len(lists), longest + 1), np.iinfo(np.int64).max, dtype=np.int64)
    for row, each in enumerate(lists):
        table[row, : len(each)] = each
    for flag, floor, take in (
        (0, pipeline, rules.interleaved_microbatch_choices),
        (1, 2 * pipeline, rules.zero_bubble_microbatch_choices),
    ):
        first = (table[inverse] < floor[:, None]).sum(axis=1)
        for offset in range(take):
            column = np.minimum(first + offset, longest)
            value = table[inverse, column]
            found = np.nonzero(value < np.iinfo(np.int64).max)[0]
            indices.append(found)
            counts.append(value[found])
            flags.append(np.full(len(found), flag, dtype=np.int64))
    return {
        "index": np.concatenate(indices),
        "microbatch_count": np.concatenate(counts),
        "is_zero_bubble": np.concatenate(flags),
    }


@lru_cache(maxsize=64)
def layouts(shape: Shape, accelerator_count: int, rules: SearchRules) -> Columns:
    """Return every layout as float64 columns named like `models.point.Layout`, in a fixed order.

    Experts take gcd(N, E) ranks; (tensor, data, pipeline) are all ordered factorisations of the rest with
    tensor | d_model d_ff, data | batch tokens, pipeline | layers.
    Source: arXiv 2411.01137's public code (the search it describes in its appendix).
    """
    expert_ranks = gcd(accelerator_count, shape.expert_count)
    rest = accelerator_count // expert_ranks
    choices = divisors(rest)
    pipeline_choices = choices[shape.layer_count % choices == 0]
    data_choices = choices[shape.global_batch_token % choices == 0]
    pipeline, data = (grid.ravel() for grid in np.meshgrid(pipeline_choices, data_choices, indexing="ij"))
    tensor, remainder = np.divmod(rest, pipeline * data)
    tensor = np.maximum(tensor, 1)
    valid = (remainder == 0) & ((shape.d_model * shape.d_ff) % tensor == 0) & (pipeline * data <= rest)
    pipeline, data, tensor = pipeline[valid], data[valid], tensor[valid]

    split, over_ff = _tensor_splits(tensor, shape, rules, choices)
    pipeline, data, tensor = pipeline[split], data[split], tensor[split]
    schedule = _microbatch_choices(data, pipeline, shape, rules)
    at = schedule["index"]
    pipeline, data, tensor, over_ff = pipeline[at], data[at], tensor[at], over_ff[at]
    over_model = tensor // over_ff
    microbatches, zero_bubble = schedule["microbatch_count"], schedule["is_zero_bubble"]
    rank_layers = shape.layer_count // pipeline
    integers = {
        "data_ranks": data,
        "tensor_model_ranks": over_model,
        "tensor_ff_ranks": over_ff,
        "pipeline_ranks": pipeline,
        "expert_ranks": np.full_like(data, expert_ranks),
        "microbatch_count": microbatches,
        "interleave_count": np.where((zero_bubble == 1) | (pipeline == 1), 1, rank_layers),
        "is_zero_bubble": zero_bubble,
        "shard_d_model": shape.d_model // over_model,
        "shard_d_ff": shape.d_ff // over_ff,
        "rank_layers": rank_layers,
        "rank_experts": np.full_like(data, shape.expert_count // expert_ranks),
        "nanobatch_token": shape.global_batch_token // (data * microbatches * shape.expert_count),
    }
    columns = {name: values.astype(np.float64) for name, values in integers.items()}
    for values in columns.values():
        values.flags.writeable = False
    return columns


def used_group_ranks(accelerator_count: int, group_ranks: tuple[float, ...]) -> tuple[int, ...]:
    """Return how many units each bounded network level joins: filled as far as the count allows.

    The largest divisor of what is left that is at most the level's size, from the lowest level up.
    """
    left = accelerator_count
    used = []
    for size in group_ranks:
        fitting = divisors(left)
        fitting = fitting[fitting <= size]
        used.append(int(fitting[-1]))
        left //= used[-1]
    return tuple(used)


@lru_cache(maxsize=512)
def ordered_factorisations(number: int, parts: int) -> Int64:
    """Return all ways to write `number` as an ordered product of `parts` factors, one a row."""
    if parts == 1:
        return np.array([[number]], dtype=np.int64)
    rows = []
    for first in divisors(number):
        rest = ordered_factorisations(number // int(first), parts - 1)
        rows.append(np.column_stack([np.full(len(rest), first), rest]))
    return np.concatenate(rows)


@lru_cache(maxsize=128)
def placements(used: tuple[int, ...], limits: tuple[int, ...]) -> Int64:
    """Return every way to lay the degrees over the bounded levels: array (placement, level, degree), fixed order.

    Levels are filled exactly; the parts of a degree multiply to a divisor of its limit.
    """
    positions = [index for index, limit in enumerate(limits) if limit > 1]
    result = np.ones((1, 0, len(limits)), dtype=np.int64)
    for size in used:
        ways = ordered_factorisations(size, max(len(positions), 1))
        level = np.ones((len(ways), len(limits)), dtype=np.int64)
        if positions:
            level[:, positions] = ways
        together = result.prod(axis=1)[:, None, :] * level[None, :, :]
        below, here = np.nonzero((np.array(limits, dtype=np.int64) % together == 0).all(axis=2))
        result = np.concatenate([result[below], level[here][:, None, :]], axis=1)
    return result
