"""The batch interface of the calibrated physics: transformers with their layouts in, outcomes out."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.evaluate_layouts import transformer_outcomes
from models.packing import field_names, pack, transformer_names
from models.transformer_point import Accelerator, Constants, Links, Software, Transformer, TransformerLayout
from pipeline.accelerators import accelerator_fields, capacity_byte, link_fields, precision_fields
from pipeline.catalogue import load_chip, load_model, load_topology, resolved_precision
from pipeline.errors import UserError
from pipeline.physics_calibrated import CalibratedEntry, constants_bundle
from pipeline.shapes import transformer_fields
from pipeline.table_input import check_columns, read_entry, read_numbers

Columns = dict[str, NDArray[np.float64]]
TEXT_COLUMNS = ("hardware", "topology", "precision", "model")
REQUIRED = ("hardware", "tensor_ranks", "pipeline_ranks", "data_ranks", "microbatch_sequence", "microbatch_count")


def known_columns() -> dict[str, str]:
    """Return every column a table may have with what it is: required, optional or override."""
    known = dict.fromkeys(REQUIRED, "required")
    known |= dict.fromkeys(("model", "topology", "precision", "recompute_layer_fraction", "hbm_byte"), "optional")
    known |= dict.fromkeys((name for name in field_names(TransformerLayout) if name not in known), "optional")
    for cls in (Transformer, Accelerator, Links, Software, Constants):
        known |= dict.fromkeys((name for name in field_names(cls) if name not in known), "override")
    return known


def evaluate_transformers(frame: pl.DataFrame, entry: CalibratedEntry, file: str = "table") -> pl.DataFrame:
    """Return the outcome of each row (columns of `TransformerOutcome`, and fits_in_memory), in order.

    Rows of one (hardware, topology, precision, model, constants) are one vectorised call.
    """
    check_columns(frame, known_columns(), file)
    overrides = [name for name in field_names(Constants) if name in frame.columns]
    defaults = {"topology": "vendor", "precision": "auto", "model": ""}
    missing = [pl.lit(value).alias(name) for name, value in defaults.items() if name not in frame.columns]
    whole = frame.with_columns(missing).with_row_index("row")
    results = []
    for _, group in whole.group_by([*TEXT_COLUMNS, *overrides], maintain_order=True):
        results.append(_evaluate_group(group, entry, overrides, file))
    return pl.concat(results).sort("row").drop("row")


def _evaluate_group(group: pl.DataFrame, entry: CalibratedEntry, overrides: list[str], file: str) -> pl.DataFrame:
    columns = scenario_columns(group, entry, file)
    columns |= layout_columns(group, file)
    constants = constants_bundle({**entry.constants, **{name: float(group[name][0]) for name in overrides}})
    outcome: dict[str, NDArray[Any]] = dict(transformer_outcomes(pack(columns, transformer_names()), constants))
    outcome["fits_in_memory"] = outcome["memory_byte"] <= columns["hbm_byte"]
    return pl.DataFrame({"row": group["row"], **outcome})


def scenario_columns(group: pl.DataFrame, entry: CalibratedEntry, file: str) -> Columns:
    """Return accelerator, links, transformer and software of each row; columns of the table override the entries."""
    hardware, topology, precision, model = (str(group[name][0]) for name in TEXT_COLUMNS)
    chip = load_chip(*read_entry("hardware", hardware, file))
    fixed = accelerator_fields(chip, precision) | link_fields(
        chip, load_topology(*read_entry("topology", topology, file))
    )
    fixed |= {
        **entry.software,
        **precision_fields(resolved_precision(chip, precision)),
        "hbm_byte": capacity_byte(chip),
    }
    if model:
        fixed |= transformer_fields(load_model(*read_entry("model", model, file)))
    columns = {name: np.full(group.height, value) for name, value in fixed.items()}
    names = [*field_names(Transformer), *fixed]
    columns |= {name: read_numbers(group, name, file) for name in names if name in group.columns}
    if "sequence_token" in group.columns and "window_token" not in group.columns and "window_token" in columns:
        columns["window_token"] = np.minimum(columns["window_token"], columns["sequence_token"])
    for name in field_names(Transformer):
        if name not in columns:
            raise UserError(f"{file}: column {name} is missing; give it, or name a model of conf/model in column model")
    return columns


def layout_columns(group: pl.DataFrame, file: str) -> Columns:
    """Return the layout of each row; what is left out is the plainest: one rank, 1F1B, no recomputation, ZeRO-1."""
    ones, zeros = np.ones(group.height), np.zeros(group.height)
    given = {name: read_numbers(group, name, file) for name in field_names(TransformerLayout) if name in group.columns}
    again = (
        read_numbers(group, "recompute_layer_fraction", file) if "recompute_layer_fraction" in group.columns else zeros
    )
    recompute = ("recompute_matmul_fraction", "recompute_attention_fraction", "recompute_elementwise_fraction")
    defaults = {name: ones for name in field_names(TransformerLayout)}
    defaults |= {"sequence_ranks": given["tensor_ranks"], "end_stage_layer_credit": zeros, "is_gpipe": zeros}
    defaults |= dict.fromkeys(recompute, again) | {"stored_activation_fraction": 1.0 - again}
    defaults["shard_ranks"] = given["data_ranks"] * given.get("context_ranks", ones)
    columns = defaults | given
    uneven = columns["context_ranks"] % columns["context_all_to_all_ranks"] != 0
    if uneven.any():
        row, name = int(np.argmax(uneven)), "context_all_to_all_ranks"
        value = f"{columns[name][row]:g}"
        raise UserError(f"{file}: row {row + 1}: {name} = {value}: must divide context_ranks; correct it")
    for name, values in columns.items():
        if (values < 0).any() or ("_ranks" in name and (values < 1).any()):
            row = int(np.argmax((values < 0) | (values < 1)))
            raise UserError(f"{file}: row {row + 1}: {name} = {values[row]:g}: must be positive; correct it")
    return columns
