"""Every study: its file says what it is, and in a tiny form it runs and its headline holds.

FLOPSCAPE_UPDATE_STUDIES=1 runs each study in full and writes what it found (rows, seconds, headline) into its file;
FLOPSCAPE_FULL_STUDIES=1 runs each in full and compares.
"""

import os
import re
import textwrap
import time
from pathlib import Path

import pytest
import yaml

from pipeline import cli
from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.query import ask, connect
from pipeline.query_files import read_query
from pipeline.report import gather

FOLDER = CONF_DIRECTORY / "study"
NOT_SWEPT = ("plan",)  # what `flopscape plan` begins with: tests/pipeline/test_plan.py
STUDIES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem not in NOT_SWEPT)
NINE = (
    "gtx580_vs_modern utilisation what_holds_it_back multi_datacenter export_controls cost_by_year "
    "batch_and_parallelism frontiers sensitivity"
).split()
UPDATE, FULL = (bool(os.environ.get(f"FLOPSCAPE_{name}_STUDIES")) for name in ("UPDATE", "FULL"))
PRINTED_TO_3_DIGITS = 5e-3
ALLOWED_S = 120.0  # on 2 cores
TINY = {
    "gtx580_vs_modern": [
        "hardware=[gtx580,h100_sxm5]",
        "topology=[vendor,gtx580_2012_b,gtx580_2012_c]",
        "run.training_flop_near=[2.1e25,1.1e26]",
    ],
    "utilisation": ["hardware=h100_sxm5", "model=dense", "run.training_flop_near=[1e24,2.1e25,1e28,1e31]"],
    "what_holds_it_back": ["hardware=h100_sxm5", "run.training_flop_near=[1e27,4e28,1e30,2e31]"],
    "multi_datacenter": [
        "run.training_flop_near=[2.1e25]",
        "axes.accelerator_count=262144",
        "axes.level_2_latency_s=1e-3",
        "axes.level_2_one_way_byte_per_s=[5e6,5e8]",
        "axes.local_step_count=[1,100]",
    ],
    "export_controls": [
        "hardware=[a100_sxm4_80,a800_sxm,h100_sxm5,h800_sxm5,h20,l20]",
        "run.training_flop_near=[2.1e25]",
        'price_dates=["2022-07-01","2023-07-01","2023-12-01","2026-02-01"]',
    ],
    "cost_by_year": [
        "hardware=[gtx580,gtx680,v100_sxm2_32,h100_sxm5]",
        "run.training_flop_near=[4.7e17,2.1e25]",
        'price_dates=["2012-07-01","2019-07-01","2026-07-01"]',
    ],
    "batch_and_parallelism": [
        "axes.accelerator_count=[1024,1048576]",
        "axes.global_batch_token_ratio=[0.0625,16]",
    ],
    "frontiers": [
        "hardware=[gtx_titan_x,h100_sxm5,b200]",
        "run.training_flop_near=[2.1e25]",
        "axes.accelerator_count={log2: [4096, 65536]}",
        'price_dates=["2016-07-01","2026-07-01"]',
    ],
    "sensitivity": [
        "hardware=[gtx580,h100_sxm5]",
        "topology=[vendor,gtx580_2012_b]",
        "run.training_flop_near=[2.1e25,5e28]",
    ],
    "reference_model": ["hardware=epoch_h100_sxm", "run.training_flop_near=[2e28,4e28]"],
}


def answers(folder, name, **parameters):
    columns, rows = ask(connect(str(folder)), read_query(name), parameters)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def one(rows, **wanted):
    (found,) = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    return found


def gtx580_vs_modern(folder):
    """What is about ten times dearer is the cards alone; all in, the factor is several tens, energy hundreds."""
    rows = answers(folder, "cost_ratio", training_flop=2.1e25, baseline="h100_sxm5", baseline_topology="vendor")
    ratio = one(rows, hardware="gtx580", topology="gtx580_2012_b", price_date="release")
    assert 8 < ratio["chip_ratio"] < 16
    assert 30 < ratio["total_ratio"] < 60 and 150 < ratio["energy_ratio"] < 400
    layouts = answers(folder, "best_layout", training_flop=1.1e26, hardware="gtx580")
    published = one(layouts, topology="gtx580_2012_c", price_date="release")
    assert (
        published["accelerator_count"]
        >= 2**24
        > one(layouts, topology="gtx580_2012_b", price_date="release")["accelerator_count"] / 2
    )


def utilisation(folder):
    rows = {row["physics"]: row for row in answers(folder, "headline", training_flop=2.1e25)}
    ideal, real = (rows[name]["model_flop_utilisation_fraction"] for name in ("epoch2024", "calibrated"))
    assert 0.75 < ideal < 0.81 and 0.3 < real < 0.5
    wall = one(answers(folder, "largest_feasible_run"), physics="epoch2024")
    assert wall["largest_training_flop"] < 1e31 and wall["stopped_by"] == "time"


def what_holds_it_back(folder):
    effect = {row["variant"]: row for row in answers(folder, "variant_effect")}
    assert effect["batch_without_limit"]["end_of_linear_ratio"] > effect["infinite_network"]["end_of_linear_ratio"] >= 1
    assert effect["no_latency"]["largest_ratio"] > 1


def multi_datacenter(folder):
    rows = answers(folder, "multi_site_penalty")
    by_link = {(row["link_gigabyte_per_s"], row["local_step_count"]): row["time_ratio"] for row in rows}
    assert 1.0 <= by_link[0.5, 1] < 1.2 < by_link[0.005, 1]
    assert by_link[0.005, 100] < by_link[0.005, 1]
    assert {row["site_count"] for row in rows} == {8}


def export_controls(folder):
    effect = {row["price_date"]: row for row in answers(folder, "export_rule_effect")}
    assert effect["2022-07-01"]["total_ratio"] == 1 and effect["2022-07-01"]["free_rule"] == ""
    assert effect["2023-07-01"]["bound_hardware"] == "h800_sxm5" and effect["2023-12-01"]["bound_hardware"] == "l20"
    assert effect["2023-12-01"]["total_ratio"] > effect["2023-07-01"]["total_ratio"] > 1
    assert effect["2023-12-01"]["free_rule"] == "bis_2023_10"


def cost_by_year(folder):
    rows = answers(folder, "cost_by_year", training_flop=2.1e25)
    costs = [row["constant_cost_million_usd"] for row in rows]
    assert [row["hardware"] for row in rows] == ["gtx680", "v100_sxm2_32", "h100_sxm5"]
    assert costs[0] > 3 * costs[1] > 9 * costs[2]


def batch_and_parallelism(folder):
    rows = [row for row in answers(folder, "batch_effect") if row["hardware"] == "h100_sxm5"]
    large = max(rows, key=lambda row: (row["accelerator_count"], row["global_batch_token"]))
    assert 5 < large["batch_speedup_ratio"] < 12 and large["data_ranks"] > 100


def frontiers(folder):
    rows = answers(folder, "frontier", cost="total")
    dates = {row["price_date"]: [each for each in rows if each["price_date"] == row["price_date"]] for row in rows}
    cheapest = {day: min(row["total_million_usd"] for row in found) for day, found in dates.items()}
    assert {row["hardware"] for row in dates["2016-07-01"]} == {"gtx_titan_x"}
    assert cheapest["2016-07-01"] > 8 * cheapest["2026-07-01"]


def sensitivity(folder):
    rows = answers(folder, "sensitivity")
    for row in rows:
        assert row["low"] is not None and row["swing"] >= 1
    swings = {(row["hardware"], row["input"]): row["swing"] for row in rows if row["topology"] == "vendor"}
    assert swings["h100_sxm5", "fleet_utilisation_fraction"] > 1.4
    assert swings["gtx580", "server_overhead_ratio"] == pytest.approx(1.146, abs=0.02)


def reference_model(folder):
    (end,) = answers(folder, "end_of_linear_scaling")
    assert end["end_of_linear_training_flop"] is None and end["first_below_training_flop"] == pytest.approx(
        2.05e28, rel=5e-3
    )


def header(name: str) -> dict[str, str]:
    lines = (FOLDER / f"{name}.yaml").read_text().splitlines()
    found = [re.fullmatch(r"# ([A-Z]\w+):\s+(.+)", line) for line in lines]
    return {match[1]: match[2] for match in found if match}


def test_all_nine_are_there_and_each_has_a_tiny_form():
    assert set(NINE) <= set(STUDIES) == set(TINY)


@pytest.mark.parametrize("name", STUDIES)
def test_header_states_question_command_and_what_to_expect(name):
    said = header(name)
    assert said["Question"].endswith((".", "?")) and said["Command"] == f"flopscape sweep study={name}"
    assert re.fullmatch(r"[\d,]+ rows, about \d+ s on 2 cores", said["Expected"])
    study = read_yaml(FOLDER / f"{name}.yaml")["study"]
    assert study["name"] == name and re.search(r"\d", study["headline"])


@pytest.mark.parametrize("name", STUDIES)
def test_it_runs_in_a_tiny_form_and_its_headline_holds(name, tmp_path, capsys):
    folder = tmp_path / name
    assert cli.main(["sweep", f"study={name}", f"results={folder}", *TINY[name]]) == 0
    said = capsys.readouterr().out
    study = gather(str(folder)).study
    if name in NINE:
        assert study.sentence in said and study.sentence.count("none") <= said.count("nonetheless")
        assert len(study.tables) and all(table.rows for table in study.tables)
        assert len(study.figures) and study.figures[0].rows
        assert (folder / "tables" / "study_1.csv").is_file() and "plotly" in (folder / "report.html").read_text()
    globals()[name](folder)


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("study.sentence={text: a, values: {b: {query: nothing}}}", "no such question"),
        ("study.tables=[{query: headline, colour: red}]", "study.tables[0].colour: unknown key"),
        ("study.figures=[{query: headline, kind: pie}]", "must be one of line, bar, scatter"),
        ("study.tables=[headline]", "must be a mapping"),
    ],
)
def test_a_study_that_cannot_be_meant_is_refused_before_it_runs(override, said):
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        compose_study(["study=reference_model", f"++{override}"])
    assert "\n" not in str(caught.value)


def test_findings_in_the_readme_are_the_headlines():
    text = (CONF_DIRECTORY.parent / "README.md").read_text()
    section = re.search(r"^## What we found\n(.*?)^## ", text, re.M | re.S)
    if not section:
        pytest.skip("the README has no section `What we found`")
    found = re.findall(r"^- (.+?) \(`flopscape sweep study=(\w+)`\)$", " ".join(section[1].split("\n  ")), re.M)
    assert len(found) == 5
    for sentence, name in found:
        headline = read_yaml(FOLDER / f"{name}.yaml")["study"]["headline"]
        assert " ".join(sentence.split()) == " ".join(headline.split())


def measured(name, folder):
    """Run a study in full; return (rows, seconds, its sentence)."""
    started = time.monotonic()
    assert cli.main(["sweep", f"study={name}", f"results={folder}"]) == 0
    seconds = time.monotonic() - started
    found = gather(str(folder))
    return found.manifest["row_count"], seconds, " ".join(found.study.sentence.split())


@pytest.mark.skipif(not (UPDATE or FULL), reason="runs every study in full: FLOPSCAPE_FULL_STUDIES=1")
@pytest.mark.parametrize("name", STUDIES)
def test_in_full_it_says_what_its_file_says(name, tmp_path):
    rows, seconds, sentence = measured(name, tmp_path / name)
    assert seconds < ALLOWED_S
    if UPDATE:
        write_header(FOLDER / f"{name}.yaml", f"{rows:,} rows, about {seconds:.0f} s on 2 cores", sentence)
    assert header(name)["Expected"].startswith(f"{rows:,} rows")
    if sentence:
        assert " ".join(read_yaml(FOLDER / f"{name}.yaml")["study"]["headline"].split()) == sentence


def write_header(path: Path, expected: str, sentence: str) -> None:
    text = re.sub(r"^# Expected:.*\n", "", path.read_text(), flags=re.M)
    text = re.sub(r"^(# Command:.*\n)", rf"\1# Expected: {expected}\n", text, count=1, flags=re.M)
    if sentence:
        lines = textwrap.fill(sentence, 112, initial_indent="    ", subsequent_indent="    ")
        text = re.sub(
            r"^  headline: (?:\"\"|>-\n(?:    .*\n)+|.*\n)", "  headline: >-\n" + lines + "\n", text, flags=re.M
        )
        text = re.sub(r"(    .*\n)\n(  sentence:)", r"\1\2", text)
    assert yaml.safe_load(text)
    path.write_text(text)
