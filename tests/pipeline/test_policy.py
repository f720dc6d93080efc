"""Export rules: every chip of the table against its status at four dates, and the rules' own edges."""

import csv
import dataclasses
from datetime import date
from pathlib import Path

import pytest

from pipeline.catalogue import CONF_DIRECTORY, read_entries, read_yaml
from pipeline.errors import UserError
from pipeline.policy import (
    io_both_way_byte_per_s,
    load_rule,
    performance_density,
    read_rules,
    total_processing_performance,
    verdict,
)

with (Path(__file__).parents[1] / "data" / "export_status.csv").open(newline="") as stream:
    ROWS = {row["id"]: row for row in csv.DictReader(stream)}
CHIPS = read_entries("hardware")
RULES = read_rules()
DAYS = {"2022": date(2022, 10, 7), "2023": date(2023, 12, 1), "2025": date(2025, 6, 1), "2026": date(2026, 2, 1)}
TABLE_ROUNDED = 3e-3  # the table multiplies rounded TOPS
NO_DIE_AREA = "its die area is unknown, so is its performance density; the table takes it as not caught"
EXCEPTIONS = {(name, year): NO_DIE_AREA for name in ("trainium1", "mlu370_x8") for year in ("2025", "2026")}


def expected(status: str) -> str:
    """Return the outcome that a sentence of the table means, judged by parameters alone."""
    status = status.split("by parameters: ")[-1]
    if "GP10" in status:
        return "use_at_risk"
    starts = {"restricted": "restricted", "NAC": "notification", "case-by-case": "case_by_case"}
    starts |= {"license": "licence", "undetermined": "undetermined", "not restricted": "not_restricted"}
    return next((outcome for start, outcome in starts.items() if status.startswith(start)), "not_restricted")


@pytest.mark.parametrize("name", ROWS)
def test_every_chip_at_four_dates(name: str) -> None:
    for year, day in DAYS.items():
        found = verdict(CHIPS[name], day, RULES)
        want = "undetermined" if (name, year) in EXCEPTIONS else expected(ROWS[name][f"export_status_{year}"])
        assert found.outcome == want, (year, found, ROWS[name][f"export_status_{year}"])


@pytest.mark.parametrize("name", ROWS)
def test_performance_and_density_agree_with_the_table(name: str) -> None:
    row = ROWS[name]
    assert total_processing_performance(CHIPS[name]) == pytest.approx(float(row["tpp"]), rel=TABLE_ROUNDED)
    density = performance_density(CHIPS[name])
    assert (density is None) == (row["performance_density"] == "")
    if density is not None:
        assert density == pytest.approx(float(row["performance_density"]), rel=TABLE_ROUNDED)


def test_the_reason_names_rule_clause_and_numbers() -> None:
    found = verdict(CHIPS["h200_sxm"], DAYS["2026"], RULES)
    assert found.rule == "bis_2026_01"
    assert all(word in found.reason for word in ("tpp 15832 < 21000", "memory_byte_per_s 4.8e+12", "case by case"))
    assert "no rule in force catches it (TPP 2000" in verdict(CHIPS["v100_sxm2_32"], DAYS["2023"], RULES).reason


def test_dates_decide() -> None:
    a100 = CHIPS["a100_sxm4_80"]
    outcomes = [verdict(a100, day, RULES) for day in (date(2022, 8, 25), date(2022, 8, 26), date(2022, 10, 7))]
    assert [each.rule for each in outcomes] == ["", "bis_2022_08", "bis_2022_10"]
    h20 = CHIPS["h20"]
    assert verdict(h20, date(2025, 4, 8), RULES).outcome == "not_restricted"
    assert verdict(h20, date(2025, 4, 9), RULES).outcome == "licence"


def test_the_a800_was_made_for_the_first_rule_and_caught_by_the_second() -> None:
    a800 = CHIPS["a800_sxm"]
    assert io_both_way_byte_per_s(a800) == 4e11
    assert verdict(a800, date(2023, 1, 1), RULES).outcome == "not_restricted"
    assert verdict(a800, date(2023, 10, 17), RULES).outcome == "restricted"


def test_thresholds_are_met_at_equality() -> None:
    chip = dataclasses.replace(CHIPS["a100_sxm4_80"], peak_dense_int8_flop_per_s=None)
    for name in ("fp16", "bf16"):
        chip = dataclasses.replace(chip, **{f"peak_dense_{name}_flop_per_s": 3e14})  # TPP 4800 exactly
    assert verdict(chip, DAYS["2022"], RULES).outcome == "restricted"
    below = dataclasses.replace(chip, peak_dense_fp16_flop_per_s=2.9999e14, peak_dense_bf16_flop_per_s=2.9999e14)
    assert verdict(below, DAYS["2022"], RULES).outcome == "not_restricted"


def test_a_rule_never_enforced_catches_nothing() -> None:
    assert all(verdict(chip, date(2025, 5, 20), RULES).rule != "ai_diffusion_2025" for chip in CHIPS.values())


def test_every_rule_is_sourced_and_its_file_names_its_package() -> None:
    references = read_yaml(CONF_DIRECTORY / "sources.yaml")
    for rule in RULES:
        assert rule.sources["all"].ref in references
        text = (CONF_DIRECTORY / rule.file).read_text()
        assert text.startswith(f"# @package policy.{rule.id}\n")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"clauses": []}, "clauses = .*at least one"),
        ({"in_force": "soon"}, "must be a date"),
        ({"clauses": [{"name": "x", "outcome": "banned", "consequence": "y"}]}, r"clauses\[0\].outcome = 'banned'"),
        ({"clauses": [{"name": "x", "outcome": "licence", "consequence": "y", "tpp": 1}]}, r"clauses\[0\].tpp = 1"),
    ],
)
def test_mistakes_are_one_line(change: dict, words: str) -> None:
    good = read_yaml(CONF_DIRECTORY / "policy" / "bis_2022_10.yaml")
    with pytest.raises(UserError, match=words):
        load_rule({**good, **change}, "policy/mine.yaml")
