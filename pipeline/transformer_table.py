"""Result rows of the calibrated physics: decode, search, evaluate the kept layouts."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.evaluate import POINT_CHUNK, transformer_outcomes
from models.packing import pack, transformer_names
from pipeline.costs import cost_columns
from pipeline.grid import Block
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.transformer_layouts import TransformerSearchRules, TransformerShape
from pipeline.transformer_search import (
    Keep,
    TransformerScenarios,
    TransformerWinners,
    first_counts,
    keep_all,
    keep_best,
    keep_pareto,
    keep_top,
    layout_count,
    search_transformers,
)

Table = dict[str, NDArray[Any]]
Float64 = NDArray[np.float64]
FEW_POINTS = 256  # up to here winners are evaluated in one small chunk
SHAPE_COLUMNS = ("layer_count", "score_head_count", "ffn_width", "expert_count", "expert_ffn_width")
SCENARIO_COLUMNS = (
    "training_flop",
    "parameter_count",
    "active_parameter_count",
    "d_model",
    "d_ff",
    "layer_count",
    "expert_count",
    "sequence_token",
    "global_batch_token",
    "dataset_token",
    "run_limit_s",
    "hbm_byte",
)
LAYOUT_COLUMNS = {
    "data_ranks": "data_ranks",
    "tensor_ranks": "tensor_ranks",
    "pipeline_ranks": "pipeline_ranks",
    "expert_ranks": "expert_ranks",
    "context_ranks": "context_ranks",
    "context_all_to_all_ranks": "context_all_to_all_ranks",
    "microbatch_count": "microbatch_count",
    "microbatch_sequence": "microbatch_sequence",
    "interleave_ratio": "interleave_count",
    "is_zero_bubble": "is_zero_bubble",
    "sharding_stage": "sharding_stage",
}


def keep_function(keep: str) -> Keep:
    """Return what `keep` of the configuration means for one scenario's layouts."""
    top = re.fullmatch(r"top:(\d+)", keep)
    if top:
        return partial(keep_top, number=int(top[1]))
    return {"best": keep_best, "all": keep_all, "pareto": keep_pareto}[keep]


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


def transformer_candidates(columns: Mapping[str, Float64], rules: TransformerSearchRules) -> int:
    """Return how many layouts a search looks at for the first cluster size of each scenario."""
    scenarios = transformer_scenarios(columns)
    keys = np.stack([scenarios.shape_index, first_counts(scenarios)])
    distinct, repeats = np.unique(keys, axis=1, return_counts=True)
    sizes = [layout_count(scenarios.shapes[shape], int(count), rules) for shape, count in distinct.T]
    return int((np.array(sizes) * repeats).sum())


def transformer_table(
    block: Block, entry: CalibratedEntry, columns: Mapping[str, Float64], ids: NDArray[np.int64], keep: str
) -> Table:
    """Return the kept layouts of some scenarios of one block, with everything a reader of the row needs."""
    scenarios = transformer_scenarios(columns)
    winners = search_transformers(scenarios, entry.constants_bundle, entry.rules, keep_function(keep))
    at = winners.scenario
    table: Table = {"scenario_id": ids[at].astype(np.uint64), "layout_rank": winners.rank}
    for name in ("hardware", "topology", "model", "precision"):
        table[name] = np.full(len(at), getattr(block, name))
    table["physics"] = np.full(len(at), entry.id)
    table |= {name: columns[name][at] for name in SCENARIO_COLUMNS}
    for name, _ in block.axes:
        base = name.removesuffix("_ratio")
        table[base] = columns[base][at]
    table["peak_flop_per_s"] = columns["peak_linear_flop_per_s"][at]
    table["sustained_fraction"] = columns["achievable_matmul_fraction"][at]
    table["accelerator_count"] = winners.accelerator_count
    table["is_feasible"] = winners.is_feasible
    table["infeasible_reason"] = winners.reason
    table["candidate_count"] = winners.candidate_count
    table["nearest_memory_byte"] = np.where(np.isfinite(winners.nearest_byte), winners.nearest_byte, np.nan)
    table |= {ours: winners.layout[theirs].astype(np.int64) for theirs, ours in LAYOUT_COLUMNS.items()}
    table["tensor_model_ranks"] = np.where(winners.is_feasible, 1, 0)
    table["tensor_ff_ranks"] = table["tensor_ranks"]
    table["recompute_layer_fraction"] = winners.layout["recompute_matmul_fraction"]
    table |= winner_columns(columns, winners, entry.constants_bundle)
    is_too_large = winners.is_feasible & (table["memory_byte"] > table["hbm_byte"])  # only keep=all has such rows
    table["is_feasible"] = winners.is_feasible & ~is_too_large
    table["infeasible_reason"] = np.where(is_too_large, "memory", winners.reason)
    table["run_time_s"] = table["step_time_s"] * scenarios.steps[at] / table["goodput_fraction"]
    table |= cost_columns(
        {name: values[at] for name, values in columns.items()}, table["accelerator_count"], table["run_time_s"]
    )
    return table


def winner_columns(columns: Mapping[str, Float64], winners: TransformerWinners, constants: Any) -> Table:
    """Return the outcome of every kept layout; NaN where the scenario has none."""
    at = winners.scenario[winners.is_feasible]
    numbers = {name: values[at] for name, values in columns.items()}
    numbers |= {name: values[winners.is_feasible] for name, values in winners.layout.items()}
    chunk = FEW_POINTS if len(at) <= FEW_POINTS else POINT_CHUNK
    outcome = transformer_outcomes(pack(numbers, transformer_names()), constants, chunk)
    spread = {}
    for name, values in outcome.items():
        spread[name] = np.full(len(winners.scenario), np.nan)
        spread[name][winners.is_feasible] = values
    spread["bubble_fraction"] = spread["bubble_time_s"] / spread["step_time_s"]
    return spread
