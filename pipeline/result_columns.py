"""The columns of a result row: keys, scenario, layout, placement, outcome, cost."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.packing import layout_names, placement_names
from pipeline.block import Block
from pipeline.costs import cost_columns
from pipeline.search_table import ScenarioTable, Winners

Table = dict[str, NDArray[Any]]
SCENARIO_COLUMNS = (
    "training_flop",
    "parameter_count",
    "d_model",
    "d_ff",
    "layer_count",
    "expert_count",
    "sequence_token",
    "global_batch_token",
    "dataset_token",
    "run_limit_s",
    "peak_flop_per_s",
    "sustained_fraction",
    "hbm_byte",
)
LAYOUT_COLUMNS = (
    "data_ranks",
    "tensor_model_ranks",
    "tensor_ff_ranks",
    "pipeline_ranks",
    "expert_ranks",
    "microbatch_count",
    "interleave_count",
    "is_zero_bubble",
)
POINT_BITS = 32
"""point_id = scenario_id 2^32 + number of the layout within its scenario."""


def block_texts(block: Block) -> dict[str, str]:
    """Return the texts that all rows of a block share."""
    texts = {name: getattr(block, name) for name in ("hardware", "topology", "model", "precision")}
    return texts | {"physics": block.physics.id}


def scenario_names(block: Block) -> list[str]:
    """Return which of a scenario's numbers its rows show: the usual ones and what the axes vary."""
    return list(dict.fromkeys((*SCENARIO_COLUMNS, *block.varied)))


def result_columns(
    block: Block,
    ids: NDArray[np.int64],
    columns: Mapping[str, NDArray[np.float64]],
    scenarios: ScenarioTable,
    winners: Winners,
    outcome: Mapping[str, NDArray[np.float64]],
) -> Table:
    """Return the result table: keys, scenario, layout, placement, outcome. Infeasible rows hold null (NaN) outcomes."""
    size = len(ids)
    table: Table = {"scenario_id": ids.astype(np.uint64)}
    table |= {name: np.full(size, text) for name, text in block_texts(block).items()}
    table |= {name: columns[name] for name in scenario_names(block)}
    table["accelerator_count"] = winners.accelerator_count
    table["is_feasible"] = winners.is_feasible
    table["infeasible_reason"] = winners.infeasible_reason
    table["candidate_count"] = winners.candidate_count
    layout = dict(zip(layout_names(), winners.layout, strict=True))
    table |= {name: layout[name].astype(np.int64) for name in LAYOUT_COLUMNS}
    placement = dict(zip(placement_names(block.level_count), winners.placement, strict=True))
    table |= {name: values.astype(np.int64) for name, values in placement.items()}
    for name, values in outcome.items():
        spread = np.full(size, np.nan)
        spread[winners.is_feasible] = values
        table[name] = spread
    table["run_time_s"] = table["step_time_s"] * scenarios.steps
    table |= cost_columns(columns, table["accelerator_count"], table["run_time_s"])
    return table
