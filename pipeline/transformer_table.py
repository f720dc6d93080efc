"""Result rows of the calibrated physics: decode, search, evaluate the kept layouts."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.evaluate import POINT_CHUNK
from models.evaluate_layouts import transformer_outcomes
from models.packing import pack, transformer_names
from pipeline.block import Block
from pipeline.costs import cost_columns
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.result_columns import block_texts
from pipeline.transformer_keep import Keep, keep_best, keep_pareto, keep_top
from pipeline.transformer_layouts import TransformerSearchRules
from pipeline.transformer_scenarios import first_counts, transformer_scenarios
from pipeline.transformer_search import TransformerWinners, layout_count, search_transformers

Table = dict[str, NDArray[Any]]
Float64 = NDArray[np.float64]
FEW_POINTS = 256  # up to here winners are evaluated in one small chunk
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
RENAMED = {"peak_flop_per_s": "peak_linear_flop_per_s", "sustained_fraction": "achievable_matmul_fraction"}
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


def scenario_columns(block: Block) -> dict[str, str]:
    """Return which of a scenario's numbers its rows show (usual ones, what the axes vary), and what they are called."""
    axes = block.varied
    return {name: name for name in (*SCENARIO_COLUMNS, *axes)} | RENAMED


def keep_function(keep: str) -> Keep:
    """Return what `keep` of the configuration means for one scenario's layouts."""
    top = re.fullmatch(r"top:(\d+)", keep)
    if top:
        return partial(keep_top, number=int(top[1]))
    return {"best": keep_best, "pareto": keep_pareto}[keep]


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
    table |= {name: np.full(len(at), text) for name, text in block_texts(block).items()}
    table |= {name: columns[theirs][at] for name, theirs in scenario_columns(block).items()}
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
