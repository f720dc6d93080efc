"""Tables beside the points of a study: dated prices, published runs, what each export rule makes of each chip.

They are written into the results folder, so that SQL can join them and an old result keeps the facts of its day.
"""

from collections.abc import Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.catalogue import Chip, load_chip, read_entries
from pipeline.economics import RELEASE
from pipeline.policy import FREE, Rule, read_rules, verdict
from pipeline.prices import CLOUD_KINDS, chip_observations, read_day, read_observations
from pipeline.store_files import open_folder
from pipeline.study_config import StudyConfig

FOLDER = "catalogue"
OBTAINABLE = (FREE, "notification", "use_at_risk")  # without asking for a licence
TEXT, NUMBER, DAY, FLAG = pa.string(), pa.float64(), pa.date32(), pa.bool_()
SCHEMAS = {
    "prices": {
        "hardware": TEXT,
        "day": DAY,
        "kind": TEXT,
        "is_rent": FLAG,
        "usd": NUMBER,
        "usd_per_s": NUMBER,
        "ref": TEXT,
        "source_kind": TEXT,
    },
    "runs": {
        "model": TEXT,
        "name": TEXT,
        "organisation": TEXT,
        "released": TEXT,
        "hardware": TEXT,
        "hardware_as_stated": TEXT,
        **{
            name: NUMBER
            for name in (
                "parameter_count",
                "active_parameter_count",
                "training_token",
                "training_flop",
                "global_batch_token",
                "accelerator_count",
                "accelerator_hour",
                "wall_hour",
                "model_flop_utilisation_fraction",
                "cost_usd",
            )
        },
    },
    "export_status": {
        "hardware": TEXT,
        "vendor_country": TEXT,
        "day": DAY,
        "rule": TEXT,
        "outcome": TEXT,
        "is_obtainable": FLAG,
        "reason": TEXT,
    },
}


def study_chips(study: StudyConfig) -> list[Chip]:
    """Return the chips of a study."""
    return [load_chip(entry, f"hardware/{key}.yaml") for key, entry in study.entries["hardware"].items()]


def price_rows(study: StudyConfig) -> list[dict[str, Any]]:
    """Return every dated price observation of the study's chips."""
    rows = []
    for chip in study_chips(study):
        for each in sorted(chip_observations(chip, read_observations()), key=lambda seen: (seen.day, seen.kind)):
            is_rent = each.kind in CLOUD_KINDS
            row = {"hardware": chip.id, "day": each.day, "kind": each.kind, "is_rent": is_rent}
            row |= {"usd": None if is_rent else each.usd, "usd_per_s": each.usd if is_rent else None}
            rows.append(row | {"ref": each.ref, "source_kind": each.source_kind})
    return rows


def run_rows() -> list[dict[str, Any]]:
    """Return what was published of the training run of each named model of the catalogue."""
    rows = []
    for model_id, model in read_entries("model").items():
        published = model.published
        row: dict[str, Any] = {"model": model_id, "name": model.name, "organisation": model.organisation}
        row |= {"hardware": published.hardware_id, "hardware_as_stated": published.hardware}
        row |= {name: getattr(published, name) for name in SCHEMAS["runs"] if name not in row}
        rows.append(row)
    return rows


def status_days(study: StudyConfig, rules: tuple[Rule, ...]) -> list[date]:
    """Return the days at which chips are judged: every day a rule came into force, every price date, and before all."""
    days = {read_day(rule.in_force or "", rule.file) for rule in rules}
    days |= {read_day(each, "price_dates") for each in study.price_dates if each != RELEASE}
    return sorted(days)


def status_rows(study: StudyConfig) -> list[dict[str, Any]]:
    """Return what the rules in force on each day make of each of the study's chips."""
    rules = read_rules()
    rows = []
    for chip in study_chips(study):
        for day in status_days(study, rules):
            found = verdict(chip, day, rules)
            row = {"hardware": chip.id, "vendor_country": chip.vendor_country, "day": day, "rule": found.rule}
            rows.append(
                row
                | {
                    "outcome": found.outcome,
                    "is_obtainable": found.outcome in OBTAINABLE,
                    "reason": found.reason,
                }
            )
    return rows


def write_side_tables(study: StudyConfig, results: str) -> None:
    """Write the tables of a study into its results folder."""
    folder = open_folder(results)
    for name, rows in (("prices", price_rows(study)), ("runs", run_rows()), ("export_status", status_rows(study))):
        folder.write(f"{FOLDER}/{name}.parquet", parquet_bytes(rows, SCHEMAS[name]))


def parquet_bytes(rows: list[dict[str, Any]], columns: Mapping[str, pa.DataType]) -> memoryview:
    """Return rows as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(list(columns.items()))), sink)
    return memoryview(sink.getvalue())
