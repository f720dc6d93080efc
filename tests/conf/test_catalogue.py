"""The catalogue as it stands: every file loads, every number has a source, nothing is implausible."""

import dataclasses
from typing import Any

import pytest

from pipeline.catalogue import (
    CONF_DIRECTORY,
    Chip,
    hardware_fields,
    load_chip,
    network_fields,
    read_entries,
    read_yaml,
)
from pipeline.catalogue_bands import implausible_rows
from pipeline.catalogue_check import entry_numbers, findings, printed_value, source_of, uncertain_keys

REFERENCES = read_yaml(CONF_DIRECTORY / "sources.yaml")
ENTRIES = {(group, e.id): e for group in ("hardware", "topology", "model") for e in read_entries(group).values()}
CHIPS: dict[str, Chip] = {name: e for (group, name), e in ENTRIES.items() if group == "hardware"}
ACCELERATOR_COUNT = 64  # of the catalogue proper, beside the reference model's own
UNCERTAIN_SHARE_ACCEPTED = 0.5  # of all numbers of the catalogue; a rise is a review comment


def test_the_catalogue_is_whole() -> None:
    assert sum(not chip.reference_name for chip in CHIPS.values()) == ACCELERATOR_COUNT
    assert {"gtx580", "p100_sxm2", "v100_sxm2_32", "a100_sxm4_40", "h100_sxm5", "h200_sxm", "b200"} <= set(CHIPS)


@pytest.mark.parametrize("name", ENTRIES, ids="/".join)
def test_every_number_is_sourced_and_plausible(name: tuple[str, str]) -> None:
    assert findings(ENTRIES[name], REFERENCES) == []


@pytest.mark.parametrize("name", CHIPS)
def test_every_chip_gives_the_physics_what_it_needs(name: str) -> None:
    chip = CHIPS[name]
    assert all(value is not None for value in hardware_fields(chip, "auto").values())
    for topology in read_entries("topology").values():
        fits = topology.id == "vendor" or chip.scale_up_one_way_byte_per_s is not None
        levels = network_fields(chip, topology) if fits else []
        assert all(level["one_way_byte_per_s"] > 0 for level in levels)


@pytest.mark.parametrize("path", sorted(CONF_DIRECTORY.glob("hardware/*.yaml")), ids=lambda p: p.stem)
def test_every_file_names_its_package(path: Any) -> None:
    assert path.read_text().startswith(f"# @package hardware.{path.stem}\n")


def test_ranges_hold_their_value() -> None:
    for entry in ENTRIES.values():
        for key, value in entry_numbers(entry).items():
            source = source_of(entry, key)
            if source and source.low is not None and isinstance(value, float):
                slack = 1e-5 * abs(value)  # low and high are rounded to six digits
                assert source.low - slack <= value <= (source.high or 0.0) + slack, (entry.file, key)


def test_the_share_of_uncertain_numbers_is_known() -> None:
    total = sum(len(entry_numbers(e)) for e in ENTRIES.values())
    assert sum(len(uncertain_keys(e)) for e in ENTRIES.values()) / total < UNCERTAIN_SHARE_ACCEPTED


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale_out_one_way_byte_per_s": 4e11}, ["the best adapter of 2022", "bytes not bits", "typed in bits?"]),
        ({"scale_up_one_way_byte_per_s": 3.6e12}, ["slower than memory", "bytes not bits", "typed in bits?"]),
        ({"release_price_usd": 33.6}, ["outside 400 to 200000", "dollars not thousands", "typed in thousands"]),
        ({"hbm_byte": 80 * 2.0**30}, ["not a multiple of 0.5 GB", "GiB", "GiB taken for GB?"]),
        ({"hbm_byte": 80.0}, ["outside 1e+09", "giga-units"]),
        ({"peak_dense_bf16_flop_per_s": 1.979e15}, ["sparse"]),
        ({"hbm_byte_per_s": 3350.0}, ["outside", "giga-units"]),
    ],
)
def test_unit_mistakes_are_caught_and_named(change: dict[str, float], words: list[str]) -> None:
    chip = dataclasses.replace(CHIPS["h100_sxm5"], **change)
    text = "\n".join(findings(chip, REFERENCES))
    assert all(word in text for word in words), text


def test_topologies_and_models_have_bands_too() -> None:
    topology, model = ENTRIES["topology", "gtx580_2012_b"], ENTRIES["model", "llama3_70b"]
    level = dataclasses.replace(topology.levels[1], one_way_byte_per_s=1.35e9 * 8)  # typed in bits
    text = "\n".join(findings(dataclasses.replace(topology, levels=(topology.levels[0], level)), REFERENCES))
    assert "networks get slower with distance" in text
    wider = dataclasses.replace(model, d_model=8192.0 * 2)
    assert "the shape makes the model" in "\n".join(findings(wider, REFERENCES))
    cheaper = dataclasses.replace(model.published, cost_usd=5.0)
    found = findings(dataclasses.replace(model, published=cheaper), REFERENCES)
    assert "dollars, not thousands or millions" in "\n".join(found)


def test_rows_of_data_files_have_bands_too() -> None:
    assert "used card" in next(iter(implausible_rows("prices.csv", [{"usd": "2.5", "usd_per_s": ""}])))
    cents = [{"quantity": "electricity_price_usd_per_j", "value": "0.08"}]
    assert "1 cent to 1 dollar a kWh" in next(iter(implausible_rows("energy.csv", cents)))


def test_an_unsourced_number_is_refused() -> None:
    chip = CHIPS["h100_sxm5"]
    kept = {key: source for key, source in chip.sources.items() if key != "hbm_byte"}
    assert "hbm_byte" in findings(dataclasses.replace(chip, sources=kept), REFERENCES)[0]
    renamed = {**chip.sources, "tdp_w": dataclasses.replace(chip.sources["tdp_w"], ref="nowhere")}
    assert "not in sources.yaml" in findings(dataclasses.replace(chip, sources=renamed), REFERENCES)[0]
    surplus = {**chip.sources, "hbm_bytes": chip.sources["hbm_byte"]}
    assert "no such number" in findings(dataclasses.replace(chip, sources=surplus), REFERENCES)[0]


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("3.35 TB/s", "hbm_byte_per_s", 3.35e12),
        ("80 GB", "hbm_byte", 8e10),
        ("50 MB", "l2_byte", 50 * 2.0**20),
        ("$33,600", "release_price_usd", 33600.0),
        ("400 Gb/s", "scale_out_one_way_byte_per_s", 5e10),
        ("up to 8", "scale_up_ranks", None),
    ],
)
def test_what_is_printed_is_read_in_base_units(text: str, key: str, value: float | None) -> None:
    assert printed_value(text, key) == value


def test_a_chip_of_ones_own_needs_one_file(tmp_path: Any) -> None:
    text = (CONF_DIRECTORY / "hardware" / "h100_sxm5.yaml").read_text()
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "mine.yaml").write_text(text.replace("hardware.h100_sxm5", "hardware.mine"))
    entries = read_entries("hardware", (CONF_DIRECTORY, tmp_path))
    assert hardware_fields(entries["mine"], "fp8") == hardware_fields(entries["h100_sxm5"], "fp8")
    assert load_chip(read_yaml(tmp_path / "hardware" / "mine.yaml"), "hardware/mine.yaml") == entries["mine"]
