"""The price rule: nearest of the kind, in the logarithm between two, never extrapolated; and the deflator."""

import dataclasses
from datetime import date
from pathlib import Path

import pytest

from pipeline.catalogue import CONF_DIRECTORY, read_entries, read_yaml
from pipeline.errors import UserError
from pipeline.prices import (
    Observation,
    cloud_price,
    constant_dollar_factor,
    price_at,
    purchase_price,
    read_csv,
    read_day,
    read_observations,
)

ROUNDING = 1e-12
CHIPS = read_entries("hardware")
REFERENCES = read_yaml(CONF_DIRECTORY / "sources.yaml")


def seen(day: str, usd: float, kind: str = "purchase_chip", chip: str = "h100_sxm5") -> Observation:
    """Return an observation of a day."""
    return Observation(chip=chip, day=date.fromisoformat(day), kind=kind, usd=usd, ref="x", source_kind="list_price")


def test_between_two_days_the_logarithm_is_interpolated() -> None:
    price = price_at([seen("2020-01-01", 100.0), seen("2020-01-11", 400.0)], "purchase_chip", date(2020, 1, 6))
    assert price is not None and price.usd == pytest.approx(200.0, rel=ROUNDING)
    assert not price.is_held and "interpolated in log between 100 USD (2020-01-01)" in price.basis


def test_several_on_one_day_count_as_their_geometric_mean() -> None:
    price = price_at([seen("2020-01-01", 100.0), seen("2020-01-01", 400.0)], "purchase_chip", date(2020, 1, 1))
    assert price is not None and price.usd == pytest.approx(200.0, rel=ROUNDING)


@pytest.mark.parametrize(
    ("day", "usd", "words"), [("2019-01-01", 100.0, "12 months later"), ("2021-01-11", 400.0, "12 months earlier")]
)
def test_outside_the_observations_the_nearest_is_held_and_says_so(day: str, usd: float, words: str) -> None:
    found = [seen("2020-01-01", 100.0), seen("2020-01-11", 400.0)]
    price = price_at(found, "purchase_chip", date.fromisoformat(day))
    assert price is not None and price.is_held
    assert price.usd == pytest.approx(usd, rel=ROUNDING)
    assert words in price.basis and "not extrapolated" in price.basis


def test_kinds_are_never_mixed() -> None:
    found = [seen("2020-01-01", 100.0), seen("2020-01-11", 400.0, kind="purchase_server_share")]
    price = price_at(found, "purchase_chip", date(2020, 1, 11))
    assert price is not None and price.usd == pytest.approx(100.0, rel=ROUNDING)
    assert price_at(found, "cloud_on_demand", date(2020, 1, 1)) is None


def test_a_kind_with_observations_around_the_day_goes_first() -> None:
    chip = dataclasses.replace(CHIPS["a100_sxm4_80"], release_price_usd=None)
    estimates = [
        seen("2022-01-01", 9.0, "purchase_chip_annual_estimate", chip.id),
        seen("2023-01-01", 9.0, "purchase_chip_annual_estimate", chip.id),
    ]
    price = purchase_price(chip, date(2022, 6, 1), [seen("2018-01-01", 5.0, chip=chip.id), *estimates])
    assert price.kind == "purchase_chip_annual_estimate"


def test_a_price_that_contains_the_server_goes_first_where_the_chips_own_does() -> None:
    assert purchase_price(CHIPS["h100_sxm5"], date(2023, 6, 1), read_observations()).kind == "purchase_server_share"


def test_the_price_in_a_chips_own_file_is_an_observation() -> None:
    price = purchase_price(CHIPS["gtx680"], date(2012, 3, 1), [])
    assert price.usd == pytest.approx(499.0, rel=ROUNDING) and not price.is_held


def test_a_chip_that_nobody_has_priced_is_refused() -> None:
    with pytest.raises(UserError, match="hardware/tpu_v7.yaml: release_price_usd = None: no price"):
        purchase_price(CHIPS["tpu_v7"], date(2026, 1, 1), read_observations())
    assert cloud_price(CHIPS["gtx580"], date(2012, 1, 1), read_observations(), ("cloud_on_demand",)) is None


def test_every_observation_has_a_source_that_resolves() -> None:
    for name in ("prices.csv", "energy.csv", "deflator.csv"):
        for row in read_csv(name, CONF_DIRECTORY):
            assert row["ref"] in REFERENCES, row
            assert row["source_kind"], row
    assert len(read_observations()) == 843


@pytest.mark.parametrize(
    "line",
    [
        "x,2020-01-01,gift,5,,,,,,r,w,k,",
        "x,2020-01-01,purchase_chip,-5,,,,,,r,w,k,",
        "x,soon,purchase_chip,5,,,,,,r,w,k,",
    ],
)
def test_a_bad_row_is_one_line(tmp_path: Path, line: str) -> None:
    head = (CONF_DIRECTORY / "economics" / "prices.csv").read_text().splitlines()[0]
    (tmp_path / "economics").mkdir()
    (tmp_path / "economics" / "prices.csv").write_text(f"{head}\n{line}\n")
    with pytest.raises(UserError) as caught:
        read_observations(tmp_path)
    assert "prices.csv line 2" in str(caught.value) and "\n" not in str(caught.value)


def test_one_deflator() -> None:
    assert constant_dollar_factor(2012, 2012) == 1.0
    assert constant_dollar_factor(2010, 2024) == pytest.approx(313.689 / 218.056, rel=ROUNDING)
    with pytest.raises(UserError, match="year 1990: not in 2007 to 2026"):
        constant_dollar_factor(1990, 2020)


def test_days_may_be_months_or_years() -> None:
    assert [read_day(text, "x") for text in ("2020", "2020-05", "2020-05-07")] == [
        date(2020, 1, 1),
        date(2020, 5, 1),
        date(2020, 5, 7),
    ]
    with pytest.raises(UserError, match="x: 'May 2020': must be a date"):
        read_day("May 2020", "x")
