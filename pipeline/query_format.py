"""Rows as text or files: a table for people with rounded numbers, everything else in full."""

import csv
import datetime
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.errors import UserError

FORMATS = ("table", "csv", "json", "parquet", "markdown")
Rows = Sequence[Sequence[Any]]


def short_number(value: Any) -> str:
    """Return a value for people: numbers to four digits, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
    return str(value)


def table_text(columns: Sequence[str], rows: Rows) -> str:
    """Return an aligned table, numbers to the right."""
    body = [[short_number(value) for value in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(columns, *body, strict=True)]
    numeric = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]

    def line(cells: Sequence[str]) -> str:
        placed = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ]
        return "  ".join(placed).rstrip()

    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, body)]) + "\n"


def markdown_text(columns: Sequence[str], rows: Rows) -> str:
    """Return a markdown table with rounded numbers."""
    lines = [columns, ["---"] * len(columns), *([short_number(value) for value in row] for row in rows)]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def json_text(columns: Sequence[str], rows: Rows) -> str:
    """Return a JSON list of objects."""
    return json.dumps([dict(zip(columns, row, strict=True)) for row in rows], indent=1, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date | datetime.datetime) else str(value)


def write_rows(columns: Sequence[str], rows: Rows, form: str, output: str | None) -> None:
    """Write rows in one of FORMATS to a file, or print them."""
    if form == "parquet":
        _write_parquet(columns, rows, output)
        return
    try:
        stream = open(output, "w", encoding="utf-8", newline="") if output else sys.stdout
    except OSError as error:
        raise UserError(f"{output}: cannot be written ({error.strerror}); choose another --output") from error
    try:
        if form == "csv":
            write_csv(columns, rows, stream)
        else:
            text = {"table": table_text, "markdown": markdown_text, "json": json_text}[form]
            stream.write(text(columns, rows))
    finally:
        if output:
            stream.close()


def write_csv(columns: Sequence[str], rows: Rows, stream: Any) -> None:
    """Write comma-separated values in full precision."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)


def _write_parquet(columns: Sequence[str], rows: Rows, output: str | None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(columns)})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    if output:
        Path(output).write_bytes(memoryview(sink.getvalue()))
    else:
        sys.stdout.buffer.write(memoryview(sink.getvalue()))
