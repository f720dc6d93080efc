"""Pictures of one or several configurations: colour, dash and marker together tell lines apart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.subplots import make_subplots

from pipeline.columns import GLOSSARY

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")  # Okabe and Ito: for all eyes
DARK_COLOURS = ("#56B4E9", "#F0803C", "#2FBF92", "#E39CC4", "#9AD2F5", "#E69F00", "#BFBFBF")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "cross", "triangle-down")
PATTERNS = ("", "/", ".", "x", "\\", "-", "|", "+")
DEGREES = ("data_ranks", "tensor_ranks", "pipeline_ranks", "expert_ranks", "context_ranks")
PANEL_PIXELS, PANEL_TITLE_PIXELS = 300, 32
MODEBAR_PIXELS = 32
LEGEND = {"orientation": "h", "x": 0, "yref": "container"}
"""A legend whose place is counted from the figure's edge: Plotly then makes room for as many lines as the width needs.
Counted from the plot, its lines grow over the titles of axes on a narrow screen."""
LEGEND_BELOW = {**LEGEND, "y": 0, "yanchor": "bottom"}
LEGEND_LINE_PIXELS = 22
GRAPH: Any = {  # nothing that would upload a chart
    "displaylogo": False,
    "responsive": True,
    "toImageButtonOptions": {"format": "svg", "filename": "flopscape"},
    "modeBarButtonsToRemove": ["lasso2d", "select2d", "sendChartToCloud"],
    "plotlyServerURL": "",
}
NOT_PARTS = ("step_time_s", "run_time_s")
AXES = {
    "training_flop": "training compute, FLOP",
    "accelerator_count": "accelerators",
    "run_time_day": "run time, days",
    "total_usd": "total cost, USD",
}


@dataclass(frozen=True)
class Series:
    """One configuration's feasible rows, and its place on the page (which gives colour, dash and marker)."""

    name: str
    columns: Mapping[str, NDArray[Any]]
    position: int

    @property
    def label(self) -> str:
        """The name as text that Plotly does not take for markup."""
        return escape(self.name)

    def values(self, name: str) -> NDArray[Any]:
        """Return a column, days for run_time_day, the product for tensor_ranks."""
        if name == "run_time_day":
            return self.columns["run_time_s"] / 86400
        if name == "tensor_ranks" and name not in self.columns:
            return np.multiply(self.columns["tensor_model_ranks"], self.columns["tensor_ff_ranks"], dtype=np.float64)
        missing = np.ones(len(self.columns["training_flop"]))
        return self.columns.get(name, missing)


def style(series: Series, *, is_dark: bool = False) -> dict[str, Any]:
    """Return the line and marker of a series."""
    place = series.position
    colour = (DARK_COLOURS if is_dark else COLOURS)[place % len(COLOURS)]
    return {
        "line": {"color": colour, "dash": DASHES[place % len(DASHES)], "width": 2},
        "marker": {"symbol": MARKERS[place % len(MARKERS)], "size": 8, "color": colour},
        "mode": "lines+markers",
    }


def finish(figure: go.Figure, *, is_dark: bool = False, height: int = 480) -> go.Figure:
    """Give a figure the page's look."""
    ink, grid = ("#e8e8e8", "#3a3f47") if is_dark else ("#1a1a1a", "#d9d9d9")
    figure.update_layout(
        template="plotly_dark" if is_dark else "plotly_white",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 13, "color": ink},
        height=height,
        margin={"l": 64, "r": 12, "t": 48, "b": 56},
        legend={**LEGEND, "y": 1 - MODEBAR_PIXELS / height, "yanchor": "top"},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#888888", "activecolor": ink},
        uirevision="kept",
        showlegend=True,
    )
    figure.update_xaxes(gridcolor=grid, exponentformat="power", automargin=True, tickangle=0)
    figure.update_yaxes(gridcolor=grid, exponentformat="power", automargin=True)
    return figure


def _hover(series: Series) -> tuple[list[list[Any]], str]:
    """Return the layout of each row and the template that shows it."""
    names = ("scenario_id", "accelerator_count", "run_time_day", "parameter_count", "global_batch_token", *DEGREES)
    rows = np.stack([series.values(name).astype(np.float64) for name in names], axis=1).tolist()
    text = "<b>%{fullData.name}</b><br>%{x:.3g}, MFU %{y:.3f}<br>%{customdata[1]:,.0f} accelerators, "
    text += "%{customdata[2]:.1f} days<br>%{customdata[3]:.3s} parameters, batch %{customdata[4]:.3s} tokens<br>"
    text += "data %{customdata[5]:,.0f} · tensor %{customdata[6]:,.0f} · pipeline %{customdata[7]:,.0f} · "
    return rows, text + "expert %{customdata[8]:,.0f} · context %{customdata[9]:,.0f}<extra></extra>"


def utilisation_figure(series: Sequence[Series], x: str = "training_flop", *, is_dark: bool = False) -> go.Figure:
    """Return MFU against training compute (or another axis of AXES); hover shows the layout."""
    figure = go.Figure()
    for each in series:
        rows, template = _hover(each)
        figure.add_scatter(
            name=each.label,
            x=each.values(x),
            y=each.values("model_flop_utilisation_fraction"),
            customdata=rows,
            hovertemplate=template,
            **style(each, is_dark=is_dark),
        )
    figure.update_xaxes(type="log", title=AXES[x])
    figure.update_yaxes(rangemode="tozero", title="model FLOP utilisation, share of dense peak")
    return finish(figure, is_dark=is_dark)


def _panels(series: Sequence[Series], columns: int = 1) -> go.Figure:
    lines = max(1, -(-len(series) * columns // columns))
    titles = [each.label for each in series for _ in range(columns)]
    height = PANEL_PIXELS * lines
    return make_subplots(
        rows=lines, cols=columns, subplot_titles=titles, vertical_spacing=min(0.9 / lines, 90 / height)
    )


def _finish_panels(figure: go.Figure, panels: int, *, is_dark: bool) -> go.Figure:
    """Give a figure of panels the page's look, with room for the first panel's title under the legend."""
    height = PANEL_PIXELS * max(1, panels) + 190
    finish(figure, is_dark=is_dark, height=height)
    inside = 1 - PANEL_TITLE_PIXELS / height
    figure.for_each_yaxis(lambda axis: axis.update(domain=[inside * end for end in axis.domain]))
    figure.for_each_annotation(lambda title: title.update(y=inside * title.y))
    return figure


def parallelism_figure(
    series: Sequence[Series], kind: str = "share", x: str = "training_flop", *, is_dark: bool = False
) -> go.Figure:
    """Return a panel for each configuration: shares of log(accelerators) by kind of parallelism, or degrees."""
    figure = _panels(series)
    colours = DARK_COLOURS if is_dark else COLOURS
    for row, each in enumerate(series, 1):
        total = np.log(np.maximum(each.values("accelerator_count").astype(np.float64), 2.0))
        for place, name in enumerate(DEGREES):
            degree = each.values(name).astype(np.float64)
            shared = {"x": each.values(x), "name": name.removesuffix("_ranks"), "legendgroup": name}
            shared |= {"showlegend": row == 1, "row": row, "col": 1}
            if kind == "share":
                pattern = {"shape": PATTERNS[place], "fgcolor": colours[place], "fillmode": "overlay", "size": 6}
                figure.add_scatter(
                    y=np.log(degree) / total,
                    stackgroup=str(row),
                    line={"color": colours[place], "width": 1},
                    fillpattern=pattern,
                    hovertemplate="%{x:.3g}: %{y:.2f}",
                    **shared,
                )
            else:
                look = style(Series("", {}, place), is_dark=is_dark)
                figure.add_scatter(y=degree, hovertemplate="%{x:.3g}: %{y:,.0f}", **look, **shared)
    figure.update_xaxes(type="log", title=AXES[x])
    if kind == "share":
        figure.update_yaxes(range=[0, 1], title="share of log(accelerators)")
    else:
        figure.update_yaxes(type="log", title="degree", dtick=1)
    return _finish_panels(figure, len(series), is_dark=is_dark)


def time_parts(columns: Mapping[str, NDArray[Any]]) -> list[str]:
    """Return the parts of the step time that a table has and that are not zero everywhere."""
    return [
        name
        for name in columns
        if name.endswith("_time_s") and name not in NOT_PARTS and name in GLOSSARY and np.nansum(columns[name]) > 0
    ]


def bottleneck_figure(series: Sequence[Series], x: str = "training_flop", *, is_dark: bool = False) -> go.Figure:
    """Return a panel for each configuration: each part's time / step time, stacked. Above 1: parts overlap."""
    figure = _panels(series)
    colours = DARK_COLOURS if is_dark else COLOURS
    names = list(dict.fromkeys(name for each in series for name in time_parts(each.columns)))
    shown: set[str] = set()
    for row, each in enumerate(series, 1):
        sizes = [f"{value:.3g}" for value in each.values(x)]
        for name in time_parts(each.columns):
            place = names.index(name)
            pattern = {"shape": PATTERNS[place % len(PATTERNS)], "fgcolor": "rgba(255,255,255,.7)", "size": 6}
            figure.add_bar(
                x=sizes,
                y=each.columns[name] / each.columns["step_time_s"],
                name=name.removesuffix("_time_s").replace("_", " "),
                marker={"color": colours[place % len(colours)], "pattern": pattern},
                legendgroup=name,
                showlegend=name not in shown,
                hovertemplate="%{x}: %{y:.3f} of the step<extra>%{fullData.name}</extra>",
                row=row,
                col=1,
            )
            shown.add(name)
    figure.update_layout(barmode="stack")
    figure.update_xaxes(type="category", title=AXES[x], nticks=8)
    figure.update_yaxes(title="part / step time")
    return _finish_panels(figure, len(series), is_dark=is_dark)


def line_figure(
    series: Sequence[Series], x: str, y: str, title: str, *, is_log: bool = True, is_dark: bool = False
) -> go.Figure:
    """Return one column against another, a line for each configuration."""
    figure = go.Figure()
    for each in series:
        look = style(each, is_dark=is_dark)
        figure.add_scatter(
            name=each.label, x=each.values(x), y=each.values(y), hovertemplate="%{x:.3g}: %{y:.4g}", **look
        )
    figure.update_xaxes(type="log", title=AXES.get(x, x))
    figure.update_yaxes(type="log" if is_log else "linear", title=title)
    return finish(figure, is_dark=is_dark)
