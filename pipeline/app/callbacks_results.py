"""The results tab: choose, filter, plot or ask in SQL; everything runs in the sandbox."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from dash import Dash, Input, Output, State, ctx, dcc, no_update

from pipeline.app import sandbox
from pipeline.app.callbacks_downloads import csv_content, parquet_content
from pipeline.app.tabs import table
from pipeline.errors import UserError
from pipeline.figures import Series, finish

FIRST_COLUMNS = (
    "hardware",
    "topology",
    "training_flop",
    "accelerator_count",
    "model_flop_utilisation_fraction",
    "run_time_s",
    "total_usd",
)
SHOWN_ROWS = 200


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def browse_sql(columns: list[str], x: str | None, y: str | None, condition: str | None) -> str:
    """Return the statement behind the menus; the condition is the person's own SQL, checked as all SQL is."""
    chosen = list(dict.fromkeys([*columns, *(each for each in (x, y) if each)]))
    listed = ", ".join(map(_quoted, chosen)) or "*"
    where = f"\nwhere {condition}" if (condition or "").strip() else ""
    return f"select {listed}\nfrom points{where}\nlimit {sandbox.ROW_LIMIT}"


def _columns(place: Path) -> list[str]:
    return [str(name) for name in sandbox.run_sql(place, "select * from points limit 0").column_names]


def register(app: Dash, results: Path) -> None:
    """Attach the callbacks of the results tab."""

    @app.callback(
        Output("results-columns", "options"),
        Output("results-columns", "value"),
        Output("results-x", "options"),
        Output("results-x", "value"),
        Output("results-y", "options"),
        Output("results-y", "value"),
        Output("results-error", "children", allow_duplicate=True),
        Input("results-name", "value"),
        prevent_initial_call="initial_duplicate",
    )
    def choose(name: str | None) -> Any:
        if not name:
            return [], [], [], None, [], None, "No results yet: run flopscape sweep first."
        try:
            names = _columns(sandbox.locate(results, str(name)))
        except UserError as error:
            return [], [], [], None, [], None, str(error)
        first = [each for each in FIRST_COLUMNS if each in names] or names[:6]
        y = "model_flop_utilisation_fraction" if "model_flop_utilisation_fraction" in names else None
        return names, first, names, "training_flop" if "training_flop" in names else None, names, y, ""

    @app.callback(
        Output("results-asked", "data"),
        Input("results-columns", "value"),
        Input("results-x", "value"),
        Input("results-y", "value"),
        Input("results-filter", "value"),
        Input("results-run", "n_clicks"),
        State("results-name", "value"),
        State("results-sql", "value"),
        prevent_initial_call=True,
    )
    def statement(columns: Any, x: Any, y: Any, condition: Any, _run: Any, name: Any, sql: Any) -> Any:
        if ctx.triggered_id == "results-run":
            return {"name": name, "sql": str(sql or ""), "x": None, "y": None}
        if not name or not columns:
            return no_update
        asked = browse_sql([str(each) for each in columns], x, y, condition)
        return {"name": name, "sql": asked, "x": x, "y": y}

    @app.callback(
        Output("results-table", "children"),
        Output("results-graph", "figure"),
        Output("results-error", "children"),
        Input("results-asked", "data"),
        Input("scheme", "data"),
        prevent_initial_call=True,
    )
    def respond(asked: Any, scheme: str) -> Any:
        if not isinstance(asked, dict):
            return no_update, no_update, no_update
        try:
            found = _ask(results, asked)
        except UserError as error:
            return "", _figure(pa.table({}), None, None, scheme == "dark"), str(error)
        rows = list(zip(*(found.slice(0, SHOWN_ROWS)[i].to_pylist() for i in range(found.num_columns)), strict=True))
        more = f"{found.num_rows:,} rows" + (f", the first {SHOWN_ROWS} shown" if found.num_rows > SHOWN_ROWS else "")
        shown = [more, table(found.column_names, rows)]
        return shown, _figure(found, asked.get("x"), asked.get("y"), scheme == "dark"), ""

    @app.callback(
        Output("download-results", "data"),
        Input("results-csv", "n_clicks"),
        Input("results-parquet", "n_clicks"),
        State("results-asked", "data"),
        prevent_initial_call=True,
    )
    def download(_csv: Any, _parquet: Any, asked: Any) -> Any:
        try:
            found = _ask(results, asked if isinstance(asked, dict) else {})
        except UserError:
            return no_update
        if ctx.triggered_id == "results-parquet":
            return dcc.send_bytes(parquet_content(found), "flopscape_results.parquet")
        return dcc.send_bytes(csv_content(found), "flopscape_results.csv")


def _ask(results: Path, asked: dict[str, Any]) -> pa.Table:
    return sandbox.run_sql(sandbox.locate(results, str(asked.get("name") or "")), str(asked.get("sql") or ""))


def _figure(found: pa.Table, x: Any, y: Any, is_dark: bool) -> Any:
    import plotly.graph_objects as go

    from pipeline.figures import style

    figure = go.Figure()
    if x not in found.column_names or y not in found.column_names:
        numeric = [f.name for f in found.schema if pa.types.is_integer(f.type) or pa.types.is_floating(f.type)]
        x, y = (found.column_names[0], numeric[-1]) if numeric and found.num_columns > 1 else (None, None)
    if x and y:
        groups = found["hardware"].to_pylist() if "hardware" in found.column_names else [""] * found.num_rows
        xs, ys = found[x].to_pylist(), found[y].to_pylist()
        for position, name in enumerate(sorted(set(map(str, groups)))):
            rows = [i for i, group in enumerate(groups) if str(group) == name]
            look = style(Series(name, {}, position), is_dark=is_dark) | {"mode": "markers"}
            figure.add_scatter(name=name, x=[xs[i] for i in rows], y=[ys[i] for i in rows], **look)
        wide = [v for v in xs if isinstance(v, int | float) and v > 0]
        is_log = len(wide) == len(xs) and wide and max(wide) / min(wide) > 100
        figure.update_xaxes(title=x, type="log" if is_log else None)
        figure.update_yaxes(title=y)
    return finish(figure, is_dark=is_dark)
