"""The batch interface for other programs: a table of fully specified points in, the same table with outcomes out."""

import argparse
import json
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from models.evaluate import outcomes
from models.packing import DEGREES, field_names, layout_names, pack, placement_names, scenario_names
from models.point import Architecture, Hardware, Physics
from pipeline.arguments import Parser
from pipeline.catalogue import (
    hardware_fields,
    load_chip,
    load_topology,
    network_fields,
    resolved_precision,
    word_byte,
)
from pipeline.errors import UserError
from pipeline.evaluate_transformers import evaluate_transformers
from pipeline.evaluate_transformers import known_columns as transformer_columns
from pipeline.physics import PhysicsEntry, physics_bundle
from pipeline.physics_calibrated import CalibratedEntry, load_preset
from pipeline.table_input import check_columns, read_entry, read_numbers, read_table

Columns = dict[str, NDArray[Any]]
TEXT_COLUMNS = ("hardware", "topology", "precision")
LAYOUT_COLUMNS = ("microbatch_count", "interleave_count", "is_zero_bubble")
TOKENS_PER_PARAMETER = 20.0  # dataset where none is given: Hoffmann et al. 2022 (arXiv 2203.15556), table 3


def read_ranks(value: object, file: str, key: str) -> list[int]:
    """Return ranks by level, lowest first, from `8`, `2x16` or `[2, 16]`."""
    parts = re.findall(r"\d+", str(value))
    if not parts or re.sub(r"[\d\s,x\[\]]", "", str(value)) or 0 in map(int, parts):
        raise UserError(f"{file}: {key} = {value!r}: must be ranks by level, lowest first; write 8, 2x16 or [2, 16]")
    return [int(part) for part in parts]


def known_columns() -> dict[str, str]:
    """Return every column a table may have with what it is: required, optional or override."""
    known = dict.fromkeys(("hardware", *field_names(Architecture), "global_batch_token", *DEGREES), "required")
    known |= dict.fromkeys((*LAYOUT_COLUMNS, "topology", "precision", "dataset_token"), "optional")
    for level in range(4):
        known |= {f"level_{level}_{name}": "override" for name in ("one_way_byte_per_s", "latency_s")}
    known |= dict.fromkeys((*field_names(Hardware), *field_names(Physics)), "override")
    return known


def evaluate_frame(frame: pl.DataFrame, physics: PhysicsEntry, file: str = "table") -> pl.DataFrame:
    """Return the outcome of each row (columns of `models.outcome.Outcome`, and run_time_s), in order.

    Rows of one (hardware, topology, precision, physics override) are one vectorised call.
    """
    check_columns(frame, known_columns(), file)
    overrides = [name for name in field_names(Physics) if name in frame.columns]
    defaults = {"topology": "vendor", "precision": "auto", **dict.fromkeys(LAYOUT_COLUMNS, 1)}
    defaults["is_zero_bubble"] = 0
    missing = [pl.lit(value).alias(name) for name, value in defaults.items() if name not in frame.columns]
    whole = frame.with_columns(missing).with_row_index("row")
    results = []
    for _, group in whole.group_by([*TEXT_COLUMNS, *overrides], maintain_order=True):
        results.append(_evaluate_group(group, physics, overrides, file))
    return pl.concat(results).sort("row").drop("row")


def _evaluate_group(group: pl.DataFrame, physics: PhysicsEntry, overrides: list[str], file: str) -> pl.DataFrame:
    hardware, topology, precision = (str(group[name][0]) for name in TEXT_COLUMNS)
    columns, level_count = _scenario_columns(group, hardware, topology, precision, file)
    columns |= _layout_columns(group, columns, level_count, file)
    names = (*scenario_names(level_count), *layout_names(), *placement_names(level_count))
    constants = {**physics.constants, **{name: float(group[name][0]) for name in overrides}}
    outcome = outcomes(pack(columns, names), physics_bundle(constants), level_count)
    outcome["run_time_s"] = outcome["step_time_s"] * columns["dataset_token"] / columns["global_batch_token"]
    return pl.DataFrame({"row": group["row"], **outcome})


def _scenario_columns(
    group: pl.DataFrame, hardware: str, topology: str, precision: str, file: str
) -> tuple[Columns, int]:
    chip = load_chip(*read_entry("hardware", hardware, file))
    network = network_fields(chip, load_topology(*read_entry("topology", topology, file)))
    fixed = {**hardware_fields(chip, precision), "word_byte": word_byte(resolved_precision(chip, precision))}
    for level, numbers in enumerate(network):
        fixed |= {f"level_{level}_{name}": value for name, value in numbers.items()}
    columns = {name: np.full(group.height, value) for name, value in fixed.items()}
    given = (*field_names(Architecture), "global_batch_token", "dataset_token", *fixed)
    columns |= {name: read_numbers(group, name, file) for name in given if name in group.columns}
    if "dataset_token" not in columns:
        weights = 2.0 * columns["d_model"] * columns["d_ff"] * columns["layer_count"] * columns["expert_count"]
        columns["dataset_token"] = TOKENS_PER_PARAMETER * weights
    for name, values in columns.items():
        if not (values > 0).all() and name not in ("has_distributed_shared_memory", "matmul_latency_s"):
            row = int(np.argmin(values > 0))
            raise UserError(f"{file}: {name} = {values[row]:g}: must be > 0; correct row {row + 1} of {hardware}")
    return columns, len(network)


def _layout_columns(group: pl.DataFrame, scenario: Columns, level_count: int, file: str) -> Columns:
    """Return degrees by level, their products, and what follows from them in whole numbers."""
    columns: Columns = {}
    for degree in DEGREES:
        ranks = [read_ranks(value, file, degree) for value in group[degree]]
        for each in ranks:
            if len(each) != level_count:
                raise UserError(
                    f"{file}: {degree} = {each}: the network of {group['hardware'][0]} has {level_count} levels; "
                    "give one number a level"
                )
        by_level = np.array(ranks, dtype=np.int64)
        columns |= {f"{degree}_level_{level}": by_level[:, level] for level in range(level_count)}
        columns[degree] = by_level.prod(axis=1)
    columns |= {name: read_numbers(group, name, file) for name in LAYOUT_COLUMNS}
    whole = {
        name: values.astype(np.int64) for name, values in {**scenario, **columns}.items() if np.isfinite(values).all()
    }
    sharing = whole["data_ranks"] * whole["microbatch_count"] * whole["expert_count"]
    derived = {
        "shard_d_model": whole["d_model"] // whole["tensor_model_ranks"],
        "shard_d_ff": whole["d_ff"] // whole["tensor_ff_ranks"],
        "rank_layers": whole["layer_count"] // whole["pipeline_ranks"],
        "rank_experts": whole["expert_count"] // whole["expert_ranks"],
        "nanobatch_token": whole["global_batch_token"] // sharing,
    }
    for name, values in derived.items():
        if (values < 1).any():
            row = int(np.argmax(values < 1))
            raise UserError(f"{file}: row {row + 1}: {name} is 0: more ranks than there is to split; use fewer ranks")
    return {**columns, **derived}


def write_table(frame: pl.DataFrame, destination: Path | None) -> None:
    """Write a frame as CSV, Parquet or JSON by its ending, or as CSV to standard output."""
    if destination is None:
        sys.stdout.write(frame.write_csv())
    elif destination.suffix == ".parquet":
        frame.write_parquet(destination)
    elif destination.suffix == ".json":
        destination.write_text(json.dumps(frame.to_dicts(), indent=1))
    elif destination.suffix == ".csv":
        frame.write_csv(destination)
    else:
        raise UserError(f"--out {destination}: ending {destination.suffix!r}: must be .csv, .parquet or .json")


COLUMN_KINDS = {  # kind of a column -> how the help calls it
    "required": "required",
    "optional": "optional",
    "override": "in place of what the entries, or the physics, say",
}


def columns_text(columns: Mapping[str, str]) -> str:
    """Return the names of columns by kind, for the help of the command."""
    lines = []
    for kind, words in COLUMN_KINDS.items():
        names = ", ".join(name for name, its in columns.items() if its == kind)
        lines += [f"  {words}:", textwrap.fill(names, 100, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Run `flopscape evaluate TABLE [--physics NAME] [--out FILE]`."""
    parser = Parser(
        prog="flopscape evaluate",
        description="Evaluate a table of fully specified points.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n\n".join(
            f"Columns with {physics}\n{columns_text(columns)}"
            for physics, columns in (("epoch2024", known_columns()), ("calibrated", transformer_columns()))
        ),
    )
    parser.add_argument("table", type=Path, help="CSV or Parquet file, one point a row")
    parser.add_argument("--physics", default="epoch2024", help="an entry of conf/physics")
    parser.add_argument("--out", type=Path, help="CSV, Parquet or JSON file; standard output if left out")
    options = parser.parse_args(argv)
    frame = read_table(options.table)
    entry, file = read_entry("physics", options.physics, "command line")
    physics = load_preset(entry, file, options.physics)
    if isinstance(physics, CalibratedEntry):
        result = evaluate_transformers(frame, physics, str(options.table))
    else:
        result = evaluate_frame(frame, physics, str(options.table))
    result = result.drop([name for name in result.columns if name in frame.columns])
    write_table(pl.concat([frame, result], how="horizontal"), options.out)
    return 0
