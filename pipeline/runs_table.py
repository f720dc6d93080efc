"""Tables of published training runs: which columns they have, and what counts as a blank cell."""

import re
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.errors import UserError, short

Row = Mapping[str, Any]

NEEDED = ("gpu", "num_gpus", "n_layers", "d_model", "seq_len")
MEASURED = (
    *("measured_step_time_s", "measured_tokens_per_s_per_gpu", "calc_tokens_per_s_per_gpu"),
    *("measured_model_tflops_per_gpu", "measured_peak_mem_gb", "status"),
)
NUMBERS = (
    *("year", "num_gpus", "gpus_per_node", "params_total", "n_layers", "d_model", "n_heads", "n_kv_heads", "head_dim"),
    *("d_ff", "vocab", "seq_len", "n_experts", "top_k", "n_shared_experts", "moe_d_ff", "global_batch_sequences"),
    *("microbatch_sequences", "tp", "pp", "dp", "cp", "ep", "vpp", "measured_step_time_s"),
    *("measured_tokens_per_s_per_gpu", "measured_model_tflops_per_gpu", "measured_peak_mem_gb"),
    *("calc_tokens_per_s_per_gpu", "measured_mfu", "measured_hfu"),
)
TEXTS = (
    *("run_id", "source", "family", "framework", "gpu", "model_name", "ffn_type", "sequence_parallel"),
    *("zero_stage_or_fsdp", "recompute", "precision", "network_note", "status", "mfu_definition_note", "shape_note"),
    *("notes", "derived_fields", "check_note"),
)
BLANK = ("", "na", "n/a", "nan", "none", "null", "-", "?", "unknown")
WORDS = ("zero_stage_or_fsdp", "recompute", "sequence_parallel")  # here `none` is an answer, not a blank
WHOLE = (
    *("num_gpus", "n_layers", "d_model", "n_heads", "n_kv_heads", "vocab", "seq_len", "n_experts", "top_k"),
    *("tp", "pp", "cp", "ep", "vpp"),
)
"""Counts that have no fractions; microbatches, batches and what is left for data ranks may have."""
LARGEST = 1e9  # no run has more of anything that is counted: a larger number is a misprint, and products of it overflow
MEASUREMENTS = ("measured_step_time_s", "measured_tokens_per_s_per_gpu", "measured_peak_mem_gb")
RAN = ("", "ok", "success", "succeeded", "completed", "complete", "pass", "passed", "done", "ran", "true")

_CHECKOUT = Path(__file__).resolve().parent.parent / "tests" / "data" / "runs"
_INSTALLED = Path(sysconfig.get_path("data")) / "share" / "flopscape" / "runs"
_TABLES = _CHECKOUT if _CHECKOUT.is_dir() else _INSTALLED
PUBLISHED_RUNS = _TABLES / "published_runs.csv"
FURTHER_RUNS = _TABLES / "further_runs.csv"  # of other families, collected from public pages


def read_runs_table(path: Path = PUBLISHED_RUNS) -> list[Row]:
    """Return the rows of a runs table: numbers as floats, the rest as text, blank cells as None or "".

    Columns that are not used are ignored; optional columns may be missing. Raises UserError in one line.
    """
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UserError(f"{path}: ending {path.suffix!r}: must be .csv or .parquet; convert the table")
    try:
        is_csv = path.suffix.lower() == ".csv"
        frame = pl.read_csv(path, infer_schema=False) if is_csv else pl.read_parquet(path).cast(pl.String)
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: cannot be read: {reason}; name a readable table of runs") from error
    frame = frame.rename(plain_headers(frame.columns, path))
    check_has_columns(frame.columns, path)
    if frame.is_empty():
        raise UserError(f"{path}: no rows below the header; give at least one run")
    rows = enumerate(frame.iter_rows(named=True), start=1)
    return [_row(each, number) for number, each in rows if any(_is_given(cell) for cell in each.values())]


def plain_headers(columns: Sequence[str], path: Path) -> dict[str, str]:
    """Return each header without spaces around it and in lower case. Refuses a table that has one of them twice."""
    plain = {name: name.strip().lower() for name in columns}
    twice = sorted({name for name in plain.values() if list(plain.values()).count(name) > 1})
    if twice:
        raise UserError(f"{path}: header: column {twice[0]!r} stands twice, spelling aside; keep one of them")
    return plain


def check_has_columns(columns: Sequence[str], path: Path) -> None:
    """Refuse a table without what every run needs, naming all that is missing in one line."""
    missing = [name for name in NEEDED if name not in columns]
    if len(columns) == 1 and re.search("[;\t]", columns[0]):
        raise UserError(f"{path}: header: one column, {short(columns[0])}: separate cells with commas")
    if missing:
        raise UserError(f"{path}: missing columns: {', '.join(missing)}; a runs table needs {', '.join(NEEDED)}")
    if not any(name in columns for name in MEASURED):
        raise UserError(f"{path}: missing columns: nothing measured; give one of {', '.join(MEASURED)}")


def _row(cells: Mapping[str, str | None], number: int) -> Row:
    row: dict[str, Any] = {name: _number(cells.get(name)) for name in NUMBERS}
    row |= {name: _text(cells.get(name), name) for name in TEXTS}
    row["run_id"] = row["run_id"] or f"row {number}"
    row["family"] = row["family"] or row["source"] or "none given"
    row["status"] = _status(row["status"], [cells.get(name) or "" for name in MEASUREMENTS])
    wrong = [name for name in WHOLE if row[name] is not None and row[name] != int(row[name])]
    wrong += [name for name in NUMBERS if name != "params_total" and (row[name] or 0.0) > LARGEST]
    wrong += [name for name in MEASUREMENTS if row[name] == 0.0]
    row |= dict.fromkeys(wrong)
    unreadable = [name for name in NUMBERS if _is_given(cells.get(name)) and row[name] is None]
    row["unreadable"] = tuple(unreadable)
    return row


def _status(text: str, measured: Sequence[str]) -> str:
    """Return ok, oom (also where a measurement says so), or the text as it stands: then nothing was timed."""
    said = text.lower()
    if any(re.search(r"\boom\b|out[ _-]of[ _-]memory", each.lower()) for each in (said, *measured)):
        return "oom"
    return "ok" if said in RAN else said


def _is_given(cell: str | None) -> bool:
    return (cell or "").strip().lower() not in BLANK


def _number(cell: str | None) -> float | None:
    """Return a cell as a number; None where it is blank, not a number, not finite or below zero."""
    try:
        value = float((cell or "").strip().replace(",", ""))
    except ValueError:
        return None
    return value if 0.0 <= value < float("inf") else None


def _text(cell: str | None, name: str) -> str:
    text = (cell or "").strip()
    return text if _is_given(text) or (name in WORDS and text.lower() == "none") else ""
