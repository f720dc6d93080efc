"""Tables of points from a person: reading them, and refusing what is wrong with them in one line."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.errors import UserError, closest


def read_table(path: Path) -> pl.DataFrame:
    """Return a CSV or Parquet file as a frame; raises UserError in one line."""
    readers = {".csv": pl.read_csv, ".parquet": pl.read_parquet}
    if path.suffix not in readers:
        raise UserError(f"{path}: ending {path.suffix!r}: must be .csv or .parquet; convert the table")
    try:
        frame = readers[path.suffix](path)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot be read: {reason}; name a readable table") from error
    if frame.height == 0:
        raise UserError(f"{path}: no rows: there is nothing to evaluate; give at least one point")
    return frame


def check_columns(frame: pl.DataFrame, known: Mapping[str, str], file: str) -> None:
    """Refuse unknown and missing columns and missing values in one line."""
    for name in frame.columns:
        if name not in known:
            raise UserError(f"{file}: column {name}: unknown; known columns: {', '.join(known)}")
        if frame[name].null_count():
            row = int(frame[name].is_null().arg_true()[0])
            raise UserError(f"{file}: row {row + 1}: {name} is empty; give a value or leave the column out")
    for name, kind in known.items():
        if kind == "required" and name not in frame.columns:
            raise UserError(f"{file}: column {name} is missing; every point needs it")


def read_entry(group: str, name: str, file: str) -> tuple[Any, str]:
    """Return the mapping of a conf entry and its file, or refuse an unknown name in one line."""
    path = CONF_DIRECTORY / group / f"{name}.yaml"
    if not re.fullmatch(r"[\w.-]+", name) or not path.is_file():
        known = sorted(each.stem for each in (CONF_DIRECTORY / group).glob("*.yaml"))
        close = closest(name, known)
        remedy = f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(known)}"
        raise UserError(f"{file}: {group} = {name!r}: no such entry in conf/{group}/; {remedy}")
    return read_yaml(path), f"{group}/{name}.yaml"


def read_numbers(group: pl.DataFrame, name: str, file: str) -> NDArray[np.float64]:
    """Return a column as float64, or refuse it in one line."""
    try:
        return group[name].cast(pl.Float64).to_numpy()
    except pl.exceptions.PolarsError as error:
        raise UserError(f"{file}: column {name}: must hold numbers; correct the column") from error
