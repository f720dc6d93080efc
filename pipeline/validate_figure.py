"""Predicted against measured, as one HTML file that opens from disk with no network."""

from itertools import cycle
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from pipeline.figures import GRAPH
from pipeline.query_format import short_number
from pipeline.validate_scores import GROUPS

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # Okabe and Ito: for all eyes
MARKERS = ("circle", "square", "diamond", "triangle-up")
BAND = 0.2
GB_BYTE = 1e9
TITLE = "Flopscape against measured training runs"


def hover_text(row: dict[str, object]) -> str:
    """Return what the figure says of one run when it is pointed at."""
    names = ("run_id", "family", "chip", "model", "precision", "accelerator_count", "tensor_ranks", "pipeline_ranks")
    names += ("data_ranks", "microbatch_sequence", "sequence_token", "aside")
    lines = [f"{name.replace('_', ' ')}: {short_number(row[name])}" for name in names if row[name] not in (None, "")]
    return "<br>".join(lines)


def add_runs(figure: go.Figure, frame: pl.DataFrame, measured: str, predicted: str, scale: float, column: int) -> None:
    """Add the runs of a frame as points by group, hollow where set aside, with the diagonal and a band about it."""
    shown = frame.filter(pl.col(measured).is_not_null() & (pl.col("status") != "oom"))
    styles = zip(cycle(COLOURS), cycle(MARKERS), strict=False)
    for group, (colour, marker) in zip(GROUPS[:-1], styles, strict=False):
        for is_aside in (False, True):
            part = shown.filter((pl.col("group") == group) & ((pl.col("aside") != "") == is_aside))
            if part.height:
                symbol = f"{marker}-open" if is_aside else marker
                figure.add_scatter(
                    x=(part[measured] / scale).to_list(),
                    y=(part[predicted] / scale).to_list(),
                    customdata=[hover_text(row) for row in part.to_dicts()],
                    hovertemplate="measured %{x:.4g}, predicted %{y:.4g}<br>%{customdata}",
                    mode="markers",
                    name=group.replace("_", " ") + (", set aside" if is_aside else ""),
                    legendgroup=group,
                    showlegend=column == 1,
                    marker={"symbol": symbol, "size": 7, "color": colour, "opacity": 0.7},
                    row=1,
                    col=column,
                )
    if shown.height:
        values = np.concatenate([shown[measured].to_numpy(), shown[predicted].to_numpy()]) / scale
        ends = [float(values.min()), float(values.max())]
        for ratio, dash in ((1.0, "solid"), (1.0 + BAND, "dot"), (1.0 / (1.0 + BAND), "dot")):
            line = {"color": "#555", "dash": dash, "width": 1}
            y = [ratio * each for each in ends]
            figure.add_scatter(
                x=ends, y=y, mode="lines", line=line, showlegend=False, hoverinfo="skip", row=1, col=column
            )


def write_figure(frame: pl.DataFrame, path: Path) -> None:
    """Write predicted against measured step time and peak memory."""
    figure = make_subplots(rows=1, cols=2, subplot_titles=("Step time, s", "Peak memory, GB"))
    add_runs(figure, frame, "measured_step_s", "step_time_s", 1.0, 1)
    add_runs(figure, frame, "measured_byte", "memory_byte", GB_BYTE, 2)
    for axis in (figure.update_xaxes, figure.update_yaxes):
        axis(type="log", row=1, col=1)
    figure.update_xaxes(title="measured")
    figure.update_yaxes(title="predicted")
    note = f"{TITLE}. Line: predicted = measured; dotted: {BAND:.0%} either way."
    legend = {"orientation": "h", "y": -0.15}
    figure.update_layout(template="plotly_white", font={"size": 14}, title=note, height=640, legend=legend)
    figure.write_html(path, include_plotlyjs=True, full_html=True, config=GRAPH)
