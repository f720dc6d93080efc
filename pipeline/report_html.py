"""report.html: one file that opens from disk with no network. Pictures by Plotly, its script inlined once."""

import json
from html import escape
from itertools import cycle
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from pipeline.figures import COLOURS, DASHES, GRAPH, LEGEND_BELOW, LEGEND_LINE_PIXELS, MARKERS, PATTERNS
from pipeline.query_files import read_query
from pipeline.query_format import short_number, table_text
from pipeline.study_figures import draw

if TYPE_CHECKING:
    from pipeline.report import Answers, Row

SHARES = ("data_share", "tensor_share", "pipeline_share", "expert_share")
PANEL_LIMIT, LINE_LIMIT = 12, 24
PANEL_PIXELS, PANEL_GAP_PIXELS = 320, 100
STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff;max-width:1100px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem} h2{font-size:1.2rem;margin-top:2.2rem}
.scroll{overflow-x:auto} table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}
td.number,th.number{text-align:right} .note{color:#555;font-size:.9rem} pre{overflow-x:auto;font-size:.8rem}
"""
LAYOUT = {"template": "plotly_white", "font": {"size": 14}, "legend": LEGEND_BELOW, "margin": {"t": 40}}


def by_series(answers: "Answers", table: str) -> dict[str, list["Row"]]:
    """Return a table's rows by the label of their series, in order of appearance."""
    series: dict[str, list[Row]] = {}
    for row in answers.rows(table):
        series.setdefault(answers.label(row), []).append(row)
    return series


def utilisation_figure(answers: "Answers") -> go.Figure:
    """Return training FLOP against MFU, a line for each series; dash and marker tell lines apart without colour."""
    figure = go.Figure()
    styles = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False)
    series = list(by_series(answers, "utilisation_curve").items())[:LINE_LIMIT]
    for (label, rows), (colour, dash, marker) in zip(series, styles, strict=False):
        figure.add_scatter(
            name=label,
            x=[row["training_flop"] for row in rows],
            y=[row["model_flop_utilisation_fraction"] for row in rows],
            customdata=[[row["accelerator_count"], row["run_time_day"]] for row in rows],
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": marker, "size": 8},
            hovertemplate="%{x:.3g} FLOP: MFU %{y:.3f}<br>%{customdata[0]:,} accelerators, %{customdata[1]:.1f} days",
        )
    figure.update_xaxes(type="log", title="training compute, FLOP", exponentformat="power", dtick=1)
    figure.update_yaxes(rangemode="tozero", title="model FLOP utilisation (share of dense nominal peak)")
    figure.update_layout(**LAYOUT, height=440 + LEGEND_LINE_PIXELS * len(series))
    return figure


def shares_figure(answers: "Answers") -> go.Figure:
    """Return, in a panel for each series, how the accelerators divide over the kinds of parallelism."""
    series = dict(list(by_series(answers, "parallelism_shares").items())[:PANEL_LIMIT])
    columns = 2 if len(series) > 1 else 1
    lines = max(1, -(-len(series) // columns))
    height = PANEL_PIXELS * lines
    figure = make_subplots(
        rows=lines, cols=columns, subplot_titles=list(series), vertical_spacing=PANEL_GAP_PIXELS / height
    )
    for position, rows in enumerate(series.values()):
        for name, colour, pattern in zip(SHARES, COLOURS, PATTERNS, strict=False):
            figure.add_scatter(
                name=name.removesuffix("_share"),
                x=[row["training_flop"] for row in rows],
                y=[row[name] for row in rows],
                stackgroup=str(position),
                line={"color": colour, "width": 1},
                fillpattern={"shape": pattern, "fgcolor": colour, "fillmode": "overlay", "size": 6},
                legendgroup=name,
                showlegend=position == 0,
                hovertemplate="%{x:.3g} FLOP: %{y:.2f}",
                row=position // columns + 1,
                col=position % columns + 1,
            )
    figure.update_xaxes(type="log", exponentformat="power", title="training compute, FLOP")
    figure.update_yaxes(range=[0, 1], title="share of log(accelerators)")
    legend = {"orientation": "h", "y": 1.0 + PANEL_GAP_PIXELS / 2 / height, "yanchor": "bottom"}
    figure.update_layout(**{**LAYOUT, "legend": legend, "margin": {"t": 100}}, height=height + 2 * PANEL_GAP_PIXELS)
    return figure


def table_html(answers: "Answers", name: str, limit: int = 60) -> str:
    """Return one answer as an HTML table, with each column's unit and meaning on hover."""
    columns, rows = answers.tables[name]
    described = {each.name: each for each in read_query(name).columns}
    numeric = [any(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    heads = "".join(
        f'<th{_right(right)} title="{escape(described[each].meaning)}">{escape(_head(each, described[each].unit))}</th>'
        for each, right in zip(columns, numeric, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{_right(right)}>{escape(short_number(value))}</td>" for value, right in zip(row, numeric, strict=True)
        )
        + "</tr>"
        for row in rows[:limit]
    )
    more = f'<p class="note">The first {limit} of {len(rows)} rows; all are in tables/{name}.csv.</p>'
    table = f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>'
    return table + (more if len(rows) > limit else "")


def _right(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _head(name: str, unit: str) -> str:
    words = name.replace("_", " ")
    return words if unit in ("", "1", "0/1") or words.endswith(unit) or "usd" in words else f"{words}, {unit}"


def page(answers: "Answers", headline: str) -> str:
    """Return the whole page."""
    from pipeline.report import assumed_text

    manifest, assumed = answers.manifest, assumed_text(answers)
    question = str(manifest.get("question") or "")
    topologies = {row["topology"] for row in answers.rows("headline")}
    general = [
        ("Utilisation against training compute", _figure(utilisation_figure(answers))),
        ("In short", f"<pre>{escape(headline.strip())}</pre>"),
    ]
    sections = [
        *(study_sections(answers) or general),
        ("What each chip can do", table_html(answers, "headline")),
        ("How the best layouts divide the accelerators", _figure(shares_figure(answers))),
        *([("What each network changes", table_html(answers, "network_effect"))] if len(topologies) > 1 else []),
        ("What the figures rest on", f"<p>{escape(assumed)}</p>{table_html(answers, 'assumed_inputs')}"),
        ("How they came about", _origin(manifest)),
    ]
    body = "".join(f"<section><h2>{escape(title)}</h2>{content}</section>" for title, content in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(str(manifest.get('study', 'study')))}</title><style>{STYLE}</style>"
        f"<script>{get_plotlyjs()}</script></head><body>"
        f"<h1>{escape(str(manifest.get('study', 'study')))}</h1><p>{escape(question)}</p>{body}</body></html>\n"
    )


def study_sections(answers: "Answers") -> list[tuple[str, str]]:
    """Return what the study itself shows: its answer in one sentence, its figures and short tables."""
    study = answers.study
    sections = [("The answer", f"<p><strong>{escape(study.sentence)}</strong></p>")] if study.sentence else []
    names = answers.chip_names
    sections += [(str(each.spec.get("title", "")), _figure(draw(each, names))) for each in study.figures if each.rows]
    tables = [each for each in study.tables if each.rows]
    return sections + [(each.title, f"<pre>{escape(table_text(each.columns, each.rows))}</pre>") for each in tables]


def _figure(figure: go.Figure) -> str:
    return figure.to_html(full_html=False, include_plotlyjs=False, config=GRAPH)


def _origin(manifest: Any) -> str:
    shown = (
        "row_count",
        "scenario_count",
        "candidate_count",
        "seconds",
        "flopscape_version",
        "git_commit",
        "git_dirty",
    )
    shown += ("config_sha256", "catalogue_sha256", "versions")
    kept = {key: manifest[key] for key in shown if key in manifest}
    return f"<pre>{escape(json.dumps(kept, indent=1))}</pre>"
