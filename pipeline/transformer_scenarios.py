"""Scenarios of the calibrated physics in the form that its search takes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.transformer_layouts import TransformerShape

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
SHAPE_COLUMNS = ("layer_count", "score_head_count", "ffn_width", "expert_count", "expert_ffn_width")
MAXIMUM_ACCELERATORS = 1 << 30
"""No search grows beyond this: about a thousand million accelerators."""


@dataclass(frozen=True, kw_only=True)
class TransformerScenarios:
    """Scenarios to search, one entry each."""

    columns: Mapping[str, Float64]  # every scenario number, named like the bundles' fields
    shapes: tuple[TransformerShape, ...]
    shape_index: Int64
    hbm_byte: Float64
    run_limit_s: Float64
    steps: Float64
    accelerator_count: Int64  # fixed, or 0: the smallest power of two that ends in time
    floor_accelerators: Float64

    @property
    def size(self) -> int:
        """Number of scenarios."""
        return len(self.hbm_byte)


def transformer_scenarios(columns: Mapping[str, Float64]) -> TransformerScenarios:
    """Return the searchable form of scenarios (all columns of one length)."""
    sequences = np.maximum(np.rint(columns["global_batch_token"] / columns["sequence_token"]), 1.0)
    numbers = [columns[name] for name in SHAPE_COLUMNS]
    keys = np.stack([*numbers, sequences, columns["sequence_token"]]).astype(np.int64)
    distinct, shape_index = np.unique(keys, axis=1, return_inverse=True)
    names = ("layer_count", "head_count", "ffn_width", "expert_count", "expert_ffn_width")
    names = (*names, "batch_sequence", "sequence_token")
    sustained = columns["peak_linear_flop_per_s"] * columns["achievable_matmul_fraction"]
    return TransformerScenarios(
        columns=columns,
        shapes=tuple(TransformerShape(**dict(zip(names, map(int, each), strict=True))) for each in distinct.T),
        shape_index=shape_index.ravel(),
        hbm_byte=columns["hbm_byte"],
        run_limit_s=columns["run_limit_s"],
        steps=columns["dataset_token"] / columns["global_batch_token"],
        accelerator_count=np.rint(columns["accelerator_count"]).astype(np.int64),
        floor_accelerators=columns["training_flop"] / (columns["run_limit_s"] * sustained),
    )


def first_counts(scenarios: TransformerScenarios) -> Int64:
    """Return the first cluster size to try: the fixed one, or the smallest power of two that could end in time."""
    exponent = np.ceil(np.log2(np.maximum(scenarios.floor_accelerators, 1.0)) - 1e-9)
    exponent = np.minimum(exponent, np.log2(MAXIMUM_ACCELERATORS) + 1)  # beyond it nothing is searched anyway
    smallest = np.int64(1) << exponent.astype(np.int64)
    return np.where(scenarios.accelerator_count > 0, scenarios.accelerator_count, smallest)
