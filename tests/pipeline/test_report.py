"""The report: every figure is a query's, the page needs no network, the pictures need no colour."""

import csv
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline import report
from pipeline.query import ask, connect
from pipeline.query_files import parse_query, read_query
from pipeline.report_html import shares_figure, utilisation_figure


@pytest.fixture(scope="module")
def folder(results_folder, tmp_path_factory) -> Path:
    copy = tmp_path_factory.mktemp("report") / "made_up"
    shutil.copytree(results_folder, copy)
    return copy


@pytest.fixture(scope="module")
def text(folder) -> str:
    return report.write_report(str(folder))


def test_terminal_names_every_chip_and_the_place_of_the_report(folder, text):
    assert "Old chip" in text and "New chip" in text
    assert f"{folder}/report.html" in text
    assert "Of 10 sourced inputs 30% are not established: 2 assumptions, 1 stated but unverified" in text


def test_page_is_complete_and_asks_nothing_of_the_network(folder, text):
    page = (folder / "report.html").read_text()
    own = page.replace(re.findall(r"<script>.*?</script>", page, flags=re.S)[0], "")  # Plotly's own script set aside
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", own)
    assert "Utilisation against training compute" in own and "How the best layouts divide" in own
    for name in ("Old chip", "New chip"):
        assert name in own
    assert json.loads((folder / "manifest.json").read_text())["config_sha256"] in own


def test_tables_are_the_answers_of_the_questions(folder, text):
    columns, rows = ask(connect(str(folder)), read_query("utilisation_curve"))
    read = list(csv.reader((folder / "tables/utilisation_curve.csv").open()))
    assert read[0] == columns
    at = columns.index("training_flop")
    assert [float(row[at]) for row in read[1:]] == [row[at] for row in rows]
    assert {path.stem for path in (folder / "tables").iterdir()} == {*report.TABLES, "points"}


def test_curves_are_told_apart_without_colour_and_hold_every_row(folder):
    answers = report.gather(str(folder))
    figure = utilisation_figure(answers)
    traces = list(figure.data)
    styles = {(trace.line.dash, trace.marker.symbol) for trace in traces}  # pyright: ignore[reportAttributeAccessIssue]
    assert len(styles) == len(traces) == 2
    points = sum(len(trace.x) for trace in traces)  # pyright: ignore[reportAttributeAccessIssue]
    assert points == len(answers.rows("utilisation_curve"))
    assert sum(1 for _ in shares_figure(answers).select_traces()) == 2 * 4


def test_legend_below_a_curve_gets_room_of_its_own(folder):
    layout: Any = utilisation_figure(report.gather(str(folder))).layout
    # Counted from the figure's edge, not from the plot: Plotly makes room, and the axis's title stays clear
    assert (layout.legend.yref, layout.legend.y, layout.legend.yanchor) == ("container", 0, "bottom")


def test_names_are_escaped(folder, tmp_path):
    copy = tmp_path / "made_up"
    shutil.copytree(folder, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["study"] = "<script>alert(1)</script>"
    (copy / "manifest.json").write_text(json.dumps(manifest))
    report.write_report(str(copy))
    assert "<script>alert(1)" not in (copy / "report.html").read_text()


def test_points_csv_holds_every_column_of_every_scenario(folder, text):
    columns, rows = ask(connect(str(folder)), parse_query("all", "select * from scenarios order by scenario_id"))
    read = list(csv.reader((folder / "tables/points.csv").open()))
    assert read[0] == columns and {"data_ranks", "tensor_time_s", "bubble_fraction", "memory_byte"} <= set(columns)
    assert len(read) == 1 + len(rows)
