"""Every layout of a scenario of the calibrated physics as a row (keep=all), in blocks of rows.

At every cluster size that the search tries: splits in their order, recomputations fastest. Layouts that do not fit in
memory or do not end in time are rows too, flagged.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.evaluate_layouts import transformer_layout_outcomes
from models.packing import field_names, pack, transformer_scenario_names
from pipeline.block import Block
from pipeline.candidate_columns import (
    Spans,
    Table,
    constant_number,
    constant_text,
    costs_of_runs,
    sealed,
    stored_type,
    verdicts,
)
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.result_columns import POINT_BITS, block_texts
from pipeline.transformer_layouts import (
    TransformerSearchRules,
    TransformerShape,
    packed_splits,
    recomputations,
    transformer_layouts,
)
from pipeline.transformer_scenarios import (
    MAXIMUM_ACCELERATORS,
    TransformerScenarios,
    first_counts,
    transformer_scenarios,
)
from pipeline.transformer_table import LAYOUT_COLUMNS, scenario_columns, transformer_table

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
BLOCK_ROWS = 1 << 16
"""Rows made in one go: bounds the memory of a scenario however many layouts it has."""


@dataclass(frozen=True)
class _Scenario:
    """One scenario, as its rows need it."""

    numbers: Float64  # packed
    columns: Mapping[str, float]
    shape: TransformerShape
    hbm_byte: float
    limit_s: float  # infinite where the cluster's size is given: then every run ends in time
    steps: float
    first_count: int
    last_count: int


def transformer_candidate_tables(
    block: Block, entry: CalibratedEntry, columns: Mapping[str, Float64], ids: Int64, offset: int
) -> Iterator[Table]:
    """Yield every layout of some scenarios of one block as rows; a scenario without any is one empty row.

    `offset` is the id of the block's first scenario.
    """
    for at, (scenario_id, one) in enumerate(zip(ids, _scenarios(columns), strict=True)):
        number, texts = 0, block_texts(block)
        texts |= {name: str(values[0]) for name, values in block.labels(ids[[at]] - offset).items()}
        series = offset + int(scenario_id - offset) % (block.size // block.point_count)
        for table in _layout_tables(one, entry):
            rows = len(table["step_time_s"])
            table |= {name: constant_text(text, rows) for name, text in texts.items()}
            shown = {name: one.columns[theirs] for name, theirs in scenario_columns(block).items()}
            if "constant_dollar_ratio" in columns:
                shown["constant_dollar_ratio"] = one.columns["constant_dollar_ratio"]
            table |= {name: constant_number(name, value, rows) for name, value in shown.items()}
            table["scenario_id"] = constant_number("scenario_id", int(scenario_id), rows)
            table["series_id"] = constant_number("series_id", series, rows)
            table["layout_rank"] = np.arange(number, number + rows, dtype=stored_type("layout_rank"))
            first = (int(scenario_id) << POINT_BITS) + number
            table["point_id"] = np.arange(first, first + rows, dtype=np.uint64)
            number += rows
            yield sealed(table)
        if number == 0:
            yield _empty_row(block, entry, {name: values[[at]] for name, values in columns.items()}, ids[[at]])


def _scenarios(columns: Mapping[str, Float64]) -> Iterator[_Scenario]:
    searched: TransformerScenarios = transformer_scenarios(columns)
    packed, counts = pack(dict(columns), transformer_scenario_names()), first_counts(searched)
    for at in range(searched.size):
        is_fixed = bool(searched.accelerator_count[at] > 0)
        yield _Scenario(
            numbers=np.ascontiguousarray(packed[:, at]),
            columns={name: float(values[at]) for name, values in columns.items()},
            shape=searched.shapes[searched.shape_index[at]],
            hbm_byte=float(searched.hbm_byte[at]),
            limit_s=np.inf if is_fixed else float(searched.run_limit_s[at]),
            steps=float(searched.steps[at]),
            first_count=int(counts[at]),
            last_count=int(counts[at]) if is_fixed else MAXIMUM_ACCELERATORS,
        )


def _empty_row(block: Block, entry: CalibratedEntry, columns: Mapping[str, Float64], ids: Int64) -> Table:
    row = transformer_table(block, entry, columns, ids, "best")
    del row["candidate_count"]  # each candidate is a row
    return row | {"point_id": row["scenario_id"] << np.uint64(POINT_BITS)}


def _layout_tables(one: _Scenario, entry: CalibratedEntry) -> Iterator[Table]:
    """Yield the layouts at every size of cluster that the search tries: doubling until one ends in time."""
    count, has_ended, had_layouts = one.first_count, False, False
    economics = np.array([[one.columns[name]] for name in field_names(Economics)])
    while not has_ended and count <= one.last_count:
        splits = packed_splits(one.shape, count, entry.rules)
        number = splits.shape[1]
        if had_layouts and number == 0:
            return  # more accelerators than the batch has work for
        had_layouts = had_layouts or number > 0
        step = max(1, BLOCK_ROWS // len(entry.rules.recompute_layer_fractions))
        for start in range(0, number, step):
            table = _outcome_columns(one, splits[:, start : start + step], entry)
            feasible = table["is_feasible"]
            has_ended = has_ended or bool(feasible.any())
            table |= _layout_columns(one.shape, count, entry.rules, start, start + step)
            table["accelerator_count"] = constant_number("accelerator_count", count, len(feasible))
            table |= costs_of_runs(economics, np.array([count]), Spans(np.array([len(feasible)])), table["run_time_s"])
            yield table
        count *= 2


def _outcome_columns(one: _Scenario, splits: Float64, entry: CalibratedEntry) -> Table:
    found = transformer_layout_outcomes(one.numbers, splits, recomputations(entry.rules), entry.constants_bundle)
    table: Table = {name: values.ravel() for name, values in found.items()}
    table["bubble_fraction"] = table["bubble_time_s"] / table["step_time_s"]
    table["run_time_s"] = table["step_time_s"] * one.steps / table["goodput_fraction"]
    fits = table["memory_byte"] <= one.hbm_byte
    judged = verdicts(fits, table["run_time_s"] < one.limit_s)
    del judged["fits_in_memory"]
    least = constant_number("nearest_memory_byte", float(table["memory_byte"].min()), len(fits))
    return table | judged | {"nearest_memory_byte": least}


@lru_cache(maxsize=512)
def _layout_columns(shape: TransformerShape, count: int, rules: TransformerSearchRules, start: int, stop: int) -> Table:
    """Return the columns that say what the layout is, which every scenario of the shape shares."""
    columns, fractions = transformer_layouts(shape, count, rules), rules.recompute_layer_fractions
    table: Table = {}
    for theirs, ours in LAYOUT_COLUMNS.items():
        table[ours] = pa.array(np.repeat(columns[theirs][start:stop].astype(stored_type(ours)), len(fractions)))
    rows = len(table["data_ranks"])
    table["tensor_model_ranks"] = constant_number("tensor_model_ranks", 1, rows)
    table["tensor_ff_ranks"] = table["tensor_ranks"]
    table["recompute_layer_fraction"] = pa.array(np.tile(np.array(fractions), rows // len(fractions)))
    return table
