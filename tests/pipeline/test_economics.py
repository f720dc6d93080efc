"""From chip and date to the numbers of a cost, each with its words."""

from dataclasses import fields
from datetime import date

import pytest

from models.effects.economics import Economics
from pipeline.catalogue import CONF_DIRECTORY, read_entries, read_yaml
from pipeline.catalogue_check import unsourced
from pipeline.catalogue_costs import at_release, read_settings
from pipeline.economics import at_date, by_key, economics_inputs, load_economics, read_energy
from pipeline.errors import UserError

CHIPS = read_entries("hardware")
OPTIONS = sorted(path.stem for path in (CONF_DIRECTORY / "economics").glob("*.yaml"))


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_loads_and_its_numbers_are_sourced(option: str) -> None:
    settings = read_settings(option)
    findings = list(unsourced(settings, read_yaml(CONF_DIRECTORY / "sources.yaml")))
    assert [each for each in findings if "dollar_year" not in each] == []  # the year of the dollars is a choice


@pytest.mark.parametrize("option", OPTIONS)
def test_every_priced_chip_has_all_economic_numbers_and_words_for_each(option: str) -> None:
    settings = read_settings(option)
    for chip in CHIPS.values():
        if chip.release_price_usd is None or chip.tdp_w is None:
            continue
        inputs = economics_inputs(chip, settings)
        assert set(inputs.values) == set(inputs.basis) == {each.name for each in fields(Economics)}
        assert all(value >= 0.0 for value in inputs.values.values())


def test_a_price_that_contains_the_server_gets_no_server_on_top() -> None:
    inputs = economics_inputs(CHIPS["h100_sxm5"], at_release(read_settings("own_time")))
    assert inputs.values["server_cost_ratio"] == 1.0
    assert "contains the server" in inputs.basis["server_cost_ratio"]


def test_power_and_lifetime_follow_chip_and_year() -> None:
    settings = read_settings("epoch_costs")
    old, new = (economics_inputs(CHIPS[name], settings) for name in ("v100_sxm2_32", "h100_sxm5"))
    assert (old.values["server_power_ratio"], new.values["server_power_ratio"]) == (1.667, 1.821)
    assert round(old.values["lifetime_s"] / 31557600) == 3 and round(new.values["lifetime_s"] / 31557600) == 4
    assert economics_inputs(CHIPS["tpu_v4"], settings).values["power_fraction"] == 0.43


def test_the_common_date_moves_all_chips() -> None:
    settings = at_date(read_settings("own_time"), "2024-01-01")
    days = {economics_inputs(CHIPS[name], settings).price_day for name in ("gtx580", "h100_sxm5")}
    assert days == {date(2024, 1, 1)}
    assert economics_inputs(CHIPS["gtx580"], settings).is_price_held


def test_mistakes_are_one_line() -> None:
    with pytest.raises(UserError, match="economics=cheap: no such option.*own_time"):
        read_settings("cheap")
    with pytest.raises(UserError, match="energy.csv: pue_ratio: no row 'mars'; choose one of"):
        by_key("pue_ratio", "mars", 2020, read_energy())
    good = read_yaml(CONF_DIRECTORY / "economics" / "own_time.yaml")
    for change, words in (
        ({"price_date": "soon"}, "must be a date"),
        ({"fleet_utilisation_fraction": 90}, "must be <= 1"),
        ({"cloud_kinds": ["free"]}, "must be among"),
        ({"pue": 1.1}, "unknown key"),
    ):
        with pytest.raises(UserError, match=words):
            load_economics({**good, **change}, "economics/mine.yaml")
