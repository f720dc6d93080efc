"""All layouts of a transformer on a number of accelerators, as float64 columns named like `TransformerLayout`.

Tensor, context, pipeline, data and expert degrees under their divisibility rules, then microbatch, schedule,
interleaving, recomputation and sharding. Whole-number work is settled here, before JAX sees it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.packing import pack, transformer_split_names
from pipeline.layouts import divisors

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
Columns = dict[str, NDArray[np.int64]]
STAGE_FULL = 3  # ZeRO-3 / FSDP: weights are sharded too


@dataclass(frozen=True, kw_only=True)
class TransformerShape:
    """What the layouts depend on, hashable."""

    layer_count: int
    head_count: int
    ffn_width: int
    expert_count: int
    expert_ffn_width: int
    batch_sequence: int
    sequence_token: int


@dataclass(frozen=True, kw_only=True)
class TransformerSearchRules:
    """Which layouts a search considers (conf/physics, `search`)."""

    tensor_ranks_maximum: int
    context_ranks_maximum: int
    context_token_minimum: int  # tokens of a sequence that a context rank keeps at least
    context_all_to_all_maximum: int  # context ranks that may exchange heads instead; 1: rings only
    pipeline_ranks_maximum: int
    expert_ranks_maximum: int
    microbatch_sequences: tuple[int, ...]
    interleave_counts: tuple[int, ...]
    recompute_layer_fractions: tuple[float, ...]
    sharding_stages: tuple[int, ...]
    zero_bubble_ratio: float  # bubble of the zero-bubble schedule over 1F1B's; 0 or below: not considered


def _expand(columns: Columns, name: str, choices: Sequence[int]) -> Columns:
    """Return every row once for each choice of a further column."""
    size = len(next(iter(columns.values())))
    expanded = {each: np.repeat(values, len(choices)) for each, values in columns.items()}
    expanded[name] = np.tile(np.asarray(choices, dtype=np.int64), size)
    return expanded


def _where(columns: Columns, keep: NDArray[np.bool_]) -> Columns:
    return {name: values[keep] for name, values in columns.items()}


def _degrees(shape: TransformerShape, accelerators: int, rules: TransformerSearchRules) -> Columns:
    """Return tensor, context, pipeline, data and expert ranks whose product rules hold."""
    choices = divisors(accelerators)
    width = shape.ffn_width if shape.ffn_width else shape.expert_ffn_width
    splits = (shape.head_count % choices == 0) & (width % choices == 0)
    tensor = choices[splits & (choices <= rules.tensor_ranks_maximum)]
    kept_token = shape.sequence_token // choices
    context_fits = (shape.sequence_token % choices == 0) & (kept_token >= rules.context_token_minimum)
    context = choices[(context_fits & (choices <= rules.context_ranks_maximum)) | (choices == 1)]
    pipeline = choices[choices <= min(rules.pipeline_ranks_maximum, shape.layer_count)]
    grids = np.meshgrid(tensor, context, pipeline, indexing="ij")
    columns: Columns = {}
    for name, grid in zip(("tensor_ranks", "context_ranks", "pipeline_ranks"), grids, strict=True):
        columns[name] = grid.ravel()
    product = columns["tensor_ranks"] * columns["context_ranks"] * columns["pipeline_ranks"]
    columns["data_ranks"] = accelerators // product
    columns = _where(columns, (accelerators % product == 0) & (columns["data_ranks"] <= shape.batch_sequence))
    columns = _context_kinds(columns, shape, rules)
    experts = divisors(shape.expert_count) if shape.expert_count > 1 else np.ones(1, dtype=np.int64)
    columns = _expand(columns, "expert_ranks", experts[experts <= rules.expert_ranks_maximum].tolist())
    holders = columns["tensor_ranks"] * columns["context_ranks"] * columns["data_ranks"]
    return _where(columns, holders % columns["expert_ranks"] == 0)


def _context_kinds(columns: Columns, shape: TransformerShape, rules: TransformerSearchRules) -> Columns:
    """Return every row with its context ranks in a ring, and, where heads divide among them, in an all-to-all."""
    columns = _expand(columns, "is_exchanged", (0, 1))
    context, is_exchanged = columns["context_ranks"], columns.pop("is_exchanged") == 1
    heads = shape.head_count // columns["tensor_ranks"]
    may = (context > 1) & (context <= rules.context_all_to_all_maximum) & (heads % context == 0)
    columns["context_all_to_all_ranks"] = np.where(is_exchanged, context, 1)
    return _where(columns, ~is_exchanged | may)


def _schedules(columns: Columns, shape: TransformerShape, rules: TransformerSearchRules) -> Columns:
    """Return the degrees with microbatch, interleaving and schedule."""
    columns = _expand(columns, "microbatch_sequence", rules.microbatch_sequences)
    per_rank = -(-shape.batch_sequence // columns["data_ranks"])
    columns["microbatch_count"] = -(-per_rank // columns["microbatch_sequence"])
    columns = _where(columns, (columns["microbatch_sequence"] <= per_rank))
    columns = _expand(columns, "interleave_ratio", rules.interleave_counts)
    pipeline, chunks = columns["pipeline_ranks"], columns["pipeline_ranks"] * columns["interleave_ratio"]
    even = (shape.layer_count % chunks == 0) | ((shape.layer_count + 2) % chunks == 0)
    full_rounds = columns["microbatch_count"] % pipeline == 0
    interleaves = (pipeline > 1) & even & full_rounds & (chunks <= shape.layer_count)
    columns = _where(columns, (columns["interleave_ratio"] == 1) | interleaves)
    columns = _expand(columns, "is_zero_bubble", (0, 1) if rules.zero_bubble_ratio > 0 else (0,))
    allowed = (columns["pipeline_ranks"] > 1) & (columns["interleave_ratio"] == 1)
    return _where(columns, (columns["is_zero_bubble"] == 0) | allowed)


@lru_cache(maxsize=2048)
def transformer_layouts(
    shape: TransformerShape, accelerators: int, rules: TransformerSearchRules
) -> dict[str, Float64]:
    """Return every split, in a fixed order: columns of `transformer_split_names`, and is_zero_bubble.

    Each goes with every column of `recomputations`. A data rank's sequences are rounded up to whole microbatches: the
    last one may be padding.
    """
    columns = _schedules(_degrees(shape, accelerators, rules), shape, rules)
    columns = _expand(columns, "sharding_stage", rules.sharding_stages)
    columns = _where(columns, (columns["sharding_stage"] < STAGE_FULL) | (columns["pipeline_ranks"] == 1))
    chunks = columns["pipeline_ranks"] * columns["interleave_ratio"]
    ends_count = (shape.layer_count % chunks != 0) & ((shape.layer_count + 2) % chunks == 0) & (chunks > 1)
    result = {name: values.astype(np.float64) for name, values in columns.items()}
    result["sequence_ranks"] = result["tensor_ranks"]
    result["shard_ranks"] = result["data_ranks"] * result["context_ranks"]
    result["end_stage_layer_credit"] = np.where(ends_count, 2.0, 0.0)
    result["is_gpipe"] = np.zeros(len(chunks))
    result["bubble_ratio"] = np.where(columns["is_zero_bubble"] == 1, rules.zero_bubble_ratio, 1.0)
    for values in result.values():
        values.flags.writeable = False
    return result


@lru_cache(maxsize=512)
def packed_splits(shape: TransformerShape, accelerators: int, rules: TransformerSearchRules) -> Float64:
    """Return every split as a packed matrix (rows of `transformer_split_names`)."""
    return pack(transformer_layouts(shape, accelerators, rules), transformer_split_names())


@lru_cache(maxsize=64)
def recomputations(rules: TransformerSearchRules) -> Float64:
    """Return the choices of recomputation, a column each: rows of RECOMPUTE_NAMES."""
    fraction = np.array(rules.recompute_layer_fractions, dtype=np.float64)
    return np.stack([fraction, fraction, fraction, 1.0 - fraction])
