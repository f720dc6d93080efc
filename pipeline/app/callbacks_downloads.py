"""What leaves the page as a file: every row as CSV or Parquet, a configuration as the YAML of a study."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from dash import ALL, Dash, Input, Output, State, ctx, dcc, no_update
from pyarrow import csv

from pipeline.app import tabs
from pipeline.app.configurations import read_page, study_yaml


def register(app: Dash) -> None:
    """Attach the callbacks of the download buttons."""

    @app.callback(
        Output("download", "data"),
        Input("csv", "n_clicks"),
        Input("parquet", "n_clicks"),
        State("answers", "data"),
        prevent_initial_call=True,
    )
    def download(_csv: Any, _parquet: Any, answers: Any) -> Any:
        table = complete_table(answers)
        if ctx.triggered_id == "parquet":
            return dcc.send_bytes(parquet_content(table), "flopscape.parquet")
        return dcc.send_bytes(csv_content(table), "flopscape.csv")

    @app.callback(
        Output("download", "data", allow_duplicate=True),
        Input({"type": "yaml", "configuration": ALL}, "n_clicks"),
        State("state", "data"),
        prevent_initial_call=True,
    )
    def study(_clicks: Any, state: Any) -> Any:
        if not ctx.triggered or not ctx.triggered[0]["value"] or not isinstance(ctx.triggered_id, dict):
            return no_update
        identity = ctx.triggered_id["configuration"]
        for each in read_page((state or {}).get("configurations")):
            if each.id == identity and not each.errors:
                return {"content": study_yaml(each), "filename": f"{each.slug}.yaml", "type": "text/yaml"}
        return no_update


def complete_table(answers: Any) -> pa.Table:
    """Return every row of every configuration, with its name first."""
    parts = []
    for configuration, result, _ in tabs.shown(answers):
        names = pa.array([_plain_text(configuration.name)] * result.arrow.num_rows)
        parts.append(result.arrow.add_column(0, "configuration", names))
    return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({"configuration": pa.array([])})


def _plain_text(name: str) -> str:
    """Return a name that a spreadsheet does not take for a formula."""
    return f"'{name}" if name[:1] in "=+-@" else name


def parquet_content(table: pa.Table) -> bytes:
    """Return a table as the bytes of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def csv_content(table: pa.Table) -> bytes:
    """Return a table as comma-separated values."""
    sink = pa.BufferOutputStream()
    plain = pa.table({name: _undictionary(table[name]) for name in table.column_names})
    csv.write_csv(plain, sink, csv.WriteOptions(quoting_style="needed"))
    return sink.getvalue().to_pybytes()


def _undictionary(column: Any) -> Any:
    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
