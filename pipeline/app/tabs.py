"""The tables of the tabs, from the configurations' answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np
from dash import html

from pipeline.app.answers import Answer, answer
from pipeline.app.configurations import Configuration, read_page
from pipeline.app.page import OVERLAP
from pipeline.columns import GLOSSARY
from pipeline.errors import UserError
from pipeline.explain import explain
from pipeline.figures import Series
from pipeline.query import ask
from pipeline.query_files import read_query
from pipeline.query_format import short_number

Shown = tuple[Configuration, Answer, int]  # a configuration, its answer, its place on the page


def shown(answers: Mapping[str, Any] | None) -> list[Shown]:
    """Return the configurations that have an answer. Answers are cached; what fell out of the cache is run again."""
    found = []
    items = (answers or {}).get("items") or []
    ready = {str(item.get("id")) for item in items if isinstance(item, Mapping) and item.get("is_ready")}
    for position, configuration in enumerate(read_page([item.get("raw") for item in items])):
        if configuration.id in ready:
            try:
                found.append((configuration, answer(configuration), position))
            except UserError:
                continue
    return found


def series(answers: Mapping[str, Any] | None) -> list[Series]:
    """Return the feasible rows of each configuration that has any."""
    found = [Series(each.name, result.feasible, position) for each, result, position in shown(answers)]
    return [each for each in found if len(each.columns["training_flop"])]


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], titles: Mapping[str, str] | None = None) -> html.Table:
    """Return an HTML table with rounded numbers; a column's title attribute explains it."""
    heads = [html.Th(column, title=(titles or {}).get(column, "")) for column in columns]
    body = [
        html.Tr(
            [
                html.Td(
                    value if hasattr(value, "to_plotly_json") else short_number(value),
                    className="number" if isinstance(value, int | float) else "",
                )
                for value in row
            ]
        )
        for row in rows
    ]
    return html.Table([html.Thead(html.Tr(heads)), html.Tbody(body)])


def _asked(result: Answer, query: str, parameters: Mapping[str, str | float]) -> dict[str, Any]:
    """Return the first row of one of flopscape's own questions on an answer."""
    connection = duckdb.connect()
    try:
        connection.register("scenarios", result.arrow)
        names, rows = ask(connection, read_query(query), parameters)
        return dict(zip(names, rows[0], strict=True)) if rows else {}
    finally:
        connection.close()


STOPS = {
    "time": "no cluster ends in time",
    "memory": "memory",
    "no_layout": "no layout divides the model",
    "": "the sweep ends",
}


def largest_table(answers: Mapping[str, Any] | None, linear_share: float) -> html.Table:
    """Return for each configuration the end of linear scaling and the largest run at all."""
    rows = []
    for configuration, result, _ in shown(answers):
        linear = _asked(result, "end_of_linear_scaling", {"linear_share": linear_share})
        most = _asked(result, "largest_feasible_run", {})
        linear_flop = linear.get("end_of_linear_training_flop")
        beyond = " or more" if linear.get("is_beyond_sweep") else ""
        rows.append(
            [
                configuration.name,
                f"{linear_flop:.4g}{beyond}" if linear_flop else "nowhere",
                linear.get("accelerator_count"),
                linear.get("model_flop_utilisation_fraction"),
                most.get("largest_training_flop") or "none",
                most.get("accelerator_count"),
                most.get("model_flop_utilisation_fraction"),
                most.get("run_time_day"),
                STOPS.get(most.get("stopped_by") or "", ""),
            ]
        )
    share = f"{linear_share:.0%}"
    columns = ["configuration", f"linear ({share}) up to, FLOP", "chips", "MFU"]
    columns += ["largest run at all, FLOP", "its chips", "its MFU", "days", "stopped by"]
    meaning = f"largest run whose MFU is at least {share} of the share of peak that large matmuls reach"
    return table(columns, rows, {columns[1]: meaning})


def sizes(answers: Mapping[str, Any] | None) -> list[float]:
    """Return the training compute of all feasible runs of the page."""
    found = [each.values("training_flop") for each in series(answers)]
    return sorted(set(np.concatenate(found).tolist())) if found else []


def _at(each: Series, training_flop: float) -> int | None:
    """Return the row of the smallest run at least as large; the cheapest where several clusters do it."""
    sizes_flop = each.values("training_flop")
    at_least = sizes_flop[sizes_flop >= training_flop * (1 - 1e-9)]
    if not len(at_least):
        return None
    rows = np.flatnonzero(sizes_flop == at_least.min())
    costs = np.nan_to_num(each.values("total_usd")[rows], nan=np.inf)
    return int(rows[np.argmin(costs)])


def cost_table(
    answers: Mapping[str, Any] | None, training_flop: float, baseline: str, bases: Sequence[str]
) -> html.Table:
    """Return every basis of one size of run, and its ratio to the baseline configuration."""
    found = {each.position: each for each in series(answers)}
    ids = {configuration.id: place for configuration, _, place in shown(answers)}
    rows_at = {place: _at(each, training_flop) for place, each in found.items()}

    def value(place: int, name: str) -> float | None:
        row = rows_at.get(place)
        number = float(found[place].values(name)[row]) if row is not None else np.nan
        return number if np.isfinite(number) else None

    against = ids.get(baseline)
    against = against if against in found else None
    names = ["training_flop", "accelerator_count", "run_time_day", *bases]
    rows = []
    for name in names:
        cells: list[Any] = [name.replace("_", " ").removesuffix(" day") + (", days" if name.endswith("_day") else "")]
        for place in found:
            mine, other = value(place, name), value(against, name) if against is not None else None
            cells.append(mine if mine is not None else "no run" if rows_at[place] is None else "unknown")
            if against is not None:
                cells.append(f"{mine / other:,.4g} ×" if mine is not None and other else "")
        rows.append(cells)
    columns = ["basis"]
    for each in found.values():
        columns += [each.name, *(["ratio"] if against is not None else [])]
    return table(columns, rows)


def points(answers: Mapping[str, Any] | None, identity: str | None) -> list[dict[str, Any]]:
    """Return the menu of a configuration's runs."""
    for configuration, result, _ in shown(answers):
        if configuration.id == identity:
            rows = result.feasible
            columns = (rows["scenario_id"], rows["training_flop"], rows["accelerator_count"])
            return [
                {"label": f"{flop:.4g} FLOP on {count:,} accelerators", "value": int(scenario)}
                for scenario, flop, count in zip(*(each.tolist() for each in columns), strict=True)
            ]
    return []


def run_page(answers: Mapping[str, Any] | None, identity: str | None, scenario: int | None) -> html.Div:
    """Return one run taken apart: time, layout, cost, and every input with its source."""
    chosen = next((each for each in shown(answers) if each[0].id == identity), None)
    if chosen is None or scenario is None:
        return html.Div("Click a point of the utilisation curve, or choose a run above.", className="note")
    configuration, result, _ = chosen
    whole = explain(result.grid, int(scenario))
    outcome = whole["outcome"]
    step_s = outcome["step_time_s"]
    times = {name: value for name, value in outcome.items() if name.endswith("_time_s") and name != "run_time_s"}
    others = {name: value for name, value in outcome.items() if name not in times}
    changed = {name.rsplit(".", 1)[1] for name in configuration.numbers}
    blocks = [
        (
            "One step",
            ["part", "seconds", "share of the step"],
            [[_word(k), v, _share(v, step_s)] for k, v in times.items()],
        ),
        ("Outcome", ["quantity", "value", "unit"], [[_word(k), v, _unit(k)] for k, v in others.items()]),
        (
            f"Layout: best of {whole['candidate_count']:,} on {whole['accelerator_count']:,} accelerators",
            ["degree", "value"],
            [[_word(k), v] for k, v in {**whole["layout"], **whole["placement"]}.items()],
        ),
        ("Cost and energy", ["basis", "value", "unit"], [[_word(k), v, _unit(k)] for k, v in whole["cost"].items()]),
    ]
    inputs = [
        [_word(each["name"]), each["value"], each["unit"], each["meaning"], _origin(each, changed)]
        for each in whole["inputs"]
    ]
    found: list[Any] = [
        html.Div([html.H3(title), table(heads, rows)], className="block") for title, heads, rows in blocks
    ]
    found.insert(1, html.P(OVERLAP.get(configuration.choices["physics"], ""), className="note"))
    share = f"{whole['assumed_input_fraction']:.0%} of them are assumptions or unverified"
    heads = ["input", "value", "unit", "meaning", "source"]
    return html.Div([*found, html.Div([html.H3(f"Inputs: {share}"), table(heads, inputs)], className="block wide")])


def _word(name: str) -> str:
    return name.replace("_", " ")


def _share(value: float | None, whole: float | None) -> str:
    return f"{value / whole:.1%}" if value is not None and whole else ""


def _unit(name: str) -> str:
    return GLOSSARY[name].unit if name in GLOSSARY else ""


def _origin(each: Mapping[str, Any], changed: set[str]) -> str:
    source = each["source"]
    if each["name"] in changed or each["name"].split("_", 2)[-1] in changed:
        return "your own number"
    printed = f', printed "{source["as_printed"]}"' if source["as_printed"] else ""
    return f"{source['kind']}: {source['ref']} {source['where']}{printed}"
