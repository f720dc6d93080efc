"""A finished sweep for people: a table in the terminal, report.html with its pictures, tables/*.csv.

Every figure is the answer of a question in `pipeline/queries`; nothing is computed here but labels.
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.query import ask, connect
from pipeline.query_files import parse_query, read_query
from pipeline.query_format import table_text, write_csv
from pipeline.store_files import is_remote, open_folder
from pipeline.studies import StudyAnswers, answers_text, study_answers

Row = Mapping[str, Any]
GPT4_TRAINING_FLOP = 2.1e25  # Epoch AI's estimate for GPT-4 (2023), 2.1e25 FLOP
BASELINES = ("h100_sxm5", "epoch_h100_sxm")
TABLES = (
    "headline",
    "utilisation_curve",
    "end_of_linear_scaling",
    "largest_feasible_run",
    "best_layout",
    "cost_ratio",
    "frontier",
    "parallelism_shares",
    "network_effect",
    "assumed_inputs",
)
ROW_LIMIT = 100_000  # rows of one answer in the report; `flopscape query` has no limit
LOG_LIMIT = 20_000  # rows of tables/points.csv, which holds every column
LINE_LIMIT = 40  # lines of the terminal's table
SERIES = ("hardware", "topology", "model", "physics", "price_date", "variant", "series_id")


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the report shows: the answers, the manifest, and names for people."""

    manifest: Mapping[str, Any]
    chip_names: Mapping[str, str]
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]
    baseline: str | None
    study: StudyAnswers = StudyAnswers()

    def rows(self, table: str) -> list[Row]:
        """Return a table's rows by column name."""
        columns, rows = self.tables[table]
        return [dict(zip(columns, row, strict=True)) for row in rows]

    @cached_property
    def varied(self) -> list[str]:
        """What beside the chip tells the study's series apart; the number of the series only if nothing else does."""
        headline = self.rows("headline")
        varied = [each for each in SERIES if len({row[each] for row in headline}) > 1]
        distinct = len({tuple(row[each] for each in SERIES[:-1]) for row in headline})
        return [each for each in varied if each != "hardware" and (each != "series_id" or distinct < len(headline))]

    def label(self, row: Row) -> str:
        """Return a series' name for people: the chip, and whatever else tells the study's series apart."""
        parts = [self.chip_names.get(row["hardware"], row["hardware"])]
        parts += [f"series {row[each]}" if each == "series_id" else str(row[each]) for each in self.varied]
        return ", ".join(parts)


def gather(results: str) -> Answers:
    """Ask every question of the report."""
    manifest = json.loads(open_folder(results).read("manifest.json") or b"{}")
    connection = connect(results)
    names = dict(connection.execute("select hardware, coalesce(name, hardware) from chips").fetchall())
    baseline = next((each for each in BASELINES if each in names), None)
    tables = {}
    for name in TABLES:
        wanted: dict[str, str | float] = {}
        if name in ("headline", "cost_ratio", "network_effect"):
            wanted["training_flop"] = GPT4_TRAINING_FLOP
        if baseline and name in ("headline", "cost_ratio"):
            wanted["baseline"] = baseline
        tables[name] = ask(connection, read_query(name), wanted, ROW_LIMIT)
    log = parse_query("points", "select * from scenarios order by scenario_id")
    tables["points"] = ask(connection, log, {}, LOG_LIMIT)
    study = study_answers(connection, manifest.get("config", {}).get("study") or {})
    return Answers(manifest=manifest, chip_names=names, tables=tables, baseline=baseline, study=study)


def headline_text(answers: Answers) -> str:
    """Return the terminal's table: for each chip what it can do, and what a run of GPT-4's size takes."""
    against = f"cost / {answers.chip_names[answers.baseline]}" if answers.baseline else "cost ratio"
    columns = ["chip and network", "linear up to, FLOP", "largest run, FLOP"]
    columns += ["chips", "MFU", "days", "purchase, million USD", against]
    rows = [
        [
            answers.label(row),
            row["end_of_linear_training_flop"] or "nowhere",
            row["largest_training_flop"] or "none",
            row["accelerator_count"] if row["accelerator_count"] is not None else "infeasible",
            row["model_flop_utilisation_fraction"],
            row["run_time_day"],
            row["purchase_million_usd"],
            row["purchase_ratio"],
        ]
        for row in answers.rows("headline")[:LINE_LIMIT]
    ]
    sizes = sorted({row["training_flop"] for row in answers.rows("headline") if row["training_flop"]})
    size = " and ".join(f"{each:.3g}" for each in sizes[:3]) or "none"
    prices = (answers.manifest.get("config", {}).get("economics") or {}).get("name", "as of each chip's release")
    title = (
        f"Linear: MFU at least 80% of the sustained ceiling. From `chips` on: the run of {size} FLOP,\n"
        f"the first swept at or above GPT-4's {GPT4_TRAINING_FLOP:.1e}. "
        f"Purchase of accelerators, servers and network: {prices}.\n"
    )
    more = len(answers.rows("headline")) - len(rows)
    rest = f"and {more:,} more: flopscape query headline\n" if more else ""
    return "\n" + title + "\n" + table_text(columns, rows) + rest + "\n" + assumed_text(answers) + "\n"


def assumed_text(answers: Answers) -> str:
    """Return one line a person should read before believing a figure: the share of inputs that is assumed."""
    rows = answers.rows("assumed_inputs")
    inputs = sum(row["input_count"] for row in rows)
    assumed = sum(row["assumption_count"] for row in rows)
    unverified = sum(row["unverified_count"] for row in rows)
    if not inputs:
        return "No input of this study carries a source record."
    share = (assumed + unverified) / inputs
    return (
        f"Of {inputs} sourced inputs {share:.0%} are not established: "
        f"{assumed} assumptions, {unverified} stated but unverified (flopscape query assumed_inputs)."
    )


def answer_text(answers: Answers) -> str:
    """Return what a study says in the terminal: its own tables and sentence, or the table of all chips."""
    if not answers.study.tables:
        return headline_text(answers)
    return f"\n{answers_text(answers.study)}\n{assumed_text(answers)}\n"


def csv_bytes(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> bytes:
    """Return rows as comma-separated values."""
    stream = io.StringIO()
    write_csv(columns, rows, stream)
    return stream.getvalue().encode()


def write_report(results: str) -> str:
    """Write report.html and tables/*.csv into a results folder; return the text for the terminal."""
    from pipeline.report_html import page

    answers = gather(results)
    folder = open_folder(results)
    for name, (columns, rows) in answers.tables.items():
        folder.write(f"tables/{name}.csv", csv_bytes(columns, rows))
    for number, table in enumerate(answers.study.tables, start=1):
        folder.write(f"tables/study_{number}.csv", csv_bytes(table.columns, table.rows))
    folder.write("report.html", page(answers, answer_text(answers)).encode())
    place = results.partition("?")[0].rstrip("/") + "/report.html"
    hint = "" if is_remote(results) else " (open it in a browser, no network needed)"
    return f"{answer_text(answers)}Report: {place}{hint}\n"
