"""Figures of a study, drawn as its file describes them; lines are told apart without colour too."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import plotly.graph_objects as go

from pipeline.figures import COLOURS, DASHES, LEGEND_BELOW, LEGEND_LINE_PIXELS, MARKERS, PATTERNS
from pipeline.query_format import short_number
from pipeline.studies import Row, StudyFigure

HEIGHT_PIXELS = 380  # and the legend's lines, one below another on a narrow screen


def series_of(figure: StudyFigure, names: Mapping[str, str]) -> dict[str, list[Row]]:
    """Return the figure's rows by the label of their series, in order of appearance."""
    columns = figure.spec.get("series") or []
    grouped: dict[str, list[Row]] = {}
    for row in figure.rows:
        label = ", ".join(_label(column, row[column], names) for column in columns)
        grouped.setdefault(label, []).append(row)
    return grouped


def _label(column: str, value: Any, names: Mapping[str, str]) -> str:
    if column == "hardware":
        return names.get(value, str(value))
    return str(value) if isinstance(value, str) else f"{column.replace('_', ' ')} {short_number(value)}"


def draw(figure: StudyFigure, names: Mapping[str, str]) -> go.Figure:
    """Return the figure: lines or points with colour, dash and marker, or bars with colour and pattern."""
    spec, drawn = figure.spec, go.Figure()
    styles = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), cycle(PATTERNS), strict=False)
    series = series_of(figure, names)
    for (label, rows), (colour, dash, marker, pattern) in zip(series.items(), styles, strict=False):
        x, y = ([_shown(row[spec[axis]], spec[axis], names) for row in rows] for axis in ("x", "y"))
        hover = [_hover(row, names) for row in rows]
        kind = spec.get("kind", "line")
        if kind == "bar":
            drawn.add_bar(name=label, x=x, y=y, customdata=hover, marker={"color": colour, "pattern_shape": pattern})
        else:
            drawn.add_scatter(
                name=label,
                x=x,
                y=y,
                customdata=hover,
                mode="lines+markers" if kind == "line" else "markers",
                line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": marker, "size": 8, "color": colour},
            )
    drawn.update_traces(hovertemplate="%{customdata}")
    for axis, update in (("x", drawn.update_xaxes), ("y", drawn.update_yaxes)):
        is_log = bool(spec.get(f"{axis}_log"))
        shape: dict[str, Any] = {"type": "log", "exponentformat": "power"} if is_log else {}
        update(title=spec.get(f"{axis}_title", spec[axis].replace("_", " ")), **shape)
    drawn.update_xaxes(automargin=True)
    height = HEIGHT_PIXELS + LEGEND_LINE_PIXELS * len(series)
    drawn.update_layout(
        template="plotly_white", font={"size": 14}, legend=LEGEND_BELOW, margin={"t": 40}, height=height
    )
    return drawn


def _shown(value: Any, column: str, names: Mapping[str, str]) -> Any:
    return names.get(value, value) if column.endswith("hardware") else value


def _hover(row: Row, names: Mapping[str, str]) -> str:
    cells: Sequence[str] = [
        f"{name.replace('_', ' ')}: {short_number(_shown(value, name, names))}"
        for name, value in row.items()
        if value not in (None, "")
    ]
    return "<br>".join(cells)
