"""From a chip, a date and habits to the numbers that `models.effects.economics` takes, each with its basis in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from models.effects.economics import Economics
from models.packing import field_names
from pipeline.catalogue import CONF_DIRECTORY, Chip
from pipeline.catalogue_load import entry_id, fail, read_fields, read_sources
from pipeline.catalogue_schema import Source, number, text
from pipeline.errors import UserError
from pipeline.prices import (
    CLOUD_KINDS,
    SHARE_KINDS,
    cloud_price,
    constant_dollar_factor,
    purchase_price,
    read_csv,
    read_day,
    read_observations,
)

RELEASE = "release"


@dataclass(frozen=True, kw_only=True)
class EconomicSettings:
    """One option of conf/economics: at which date and by which habits runs are priced."""

    id: str
    file: str
    name: str | None = text("what it is", required=True)
    notes: str | None = text("what to know before believing it")
    price_date: str | None = text("release, or one date for all chips", required=True)
    run_delay_s: float | None = number("s", "from the price date to the run", required=True)
    dollar_year: float | None = number("year", "year of the constant dollars", low=1990, high=2100, required=True)
    lifetime_s: float | None = number("s", "write-off time; null = by year, from energy.csv", low=1.0)
    fleet_utilisation_fraction: float | None = number("1", "share of hours in use", low=0.01, high=1.0, required=True)
    electricity_key: str | None = text("row of energy.csv", required=True)
    pue_key: str | None = text("row of energy.csv", required=True)
    carbon_key: str | None = text("row of energy.csv", required=True)
    cloud_kinds: tuple[str, ...] = CLOUD_KINDS
    sources: Mapping[str, Source] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class EconomicInputs:
    """The fields of `models.effects.economics.Economics` for one chip, in dollars of `dollar_year_of_prices`."""

    values: Mapping[str, float]
    basis: Mapping[str, str]  # the words behind each number
    price_day: date
    constant_dollar_factor: float  # dollars of the settings' dollar_year for one of the price date's year
    is_price_held: bool


def load_economics(mapping: Mapping[str, Any], file: str) -> EconomicSettings:
    """Return checked settings."""
    values = read_fields(EconomicSettings, mapping, file, extra=("sources", "cloud_kinds"))
    kinds = tuple(mapping.get("cloud_kinds") or CLOUD_KINDS)
    for kind in kinds:
        if kind not in CLOUD_KINDS:
            raise fail(file, "cloud_kinds", kind, f"must be among {', '.join(CLOUD_KINDS)}", "correct it")
    if values["price_date"] != RELEASE:
        read_day(values["price_date"], f"{file}: price_date")
    sources = read_sources(mapping.get("sources"), file)
    return EconomicSettings(id=entry_id(file), file=file, cloud_kinds=kinds, sources=sources, **values)


@lru_cache(maxsize=4)
def read_energy(directory: Path = CONF_DIRECTORY) -> tuple[Mapping[str, str], ...]:
    """Return the rows of conf/economics/energy.csv."""
    return tuple(read_csv("energy.csv", directory))


def by_key(quantity: str, key: str, year: int, rows: Sequence[Mapping[str, str]]) -> tuple[float, str]:
    """Return a quantity of a key in the nearest year that has one, and the words for it."""
    found = [row for row in rows if row["quantity"] == quantity and row["key"] == key]
    if not found:
        keys = sorted({row["key"] for row in rows if row["quantity"] == quantity})
        raise UserError(f"economics/energy.csv: {quantity}: no row {key!r}; choose one of {', '.join(keys)}")
    row = min(found, key=lambda each: abs(int(each["year"] or year) - year))
    of_year = f" of {row['year']}" if row["year"] else ""
    return float(row["value"]), f"{key}{of_year}, {row['as_printed']} ({row['ref']})"


def by_chip(quantity: str, chip_id: str, rows: Sequence[Mapping[str, str]]) -> tuple[float, str]:
    """Return a quantity of the first row whose patterns fit the chip; the row for any chip comes last."""
    fitting = [
        row
        for row in rows
        if row["quantity"] == quantity and any(fnmatchcase(chip_id, each) for each in row["applies_to"].split())
    ]
    row = min(fitting, key=lambda each: each["applies_to"] == "*")
    return float(row["value"]), f"{row['key']}, {row['as_printed']} ({row['ref']})"


def price_day(chip: Chip, settings: EconomicSettings) -> date:
    """Return the day at which a chip is priced under the settings."""
    text = (chip.released or "") if settings.price_date == RELEASE else (settings.price_date or "")
    return read_day(text, f"{chip.file} released")


def economics_inputs(
    chip: Chip, settings: EconomicSettings, day: date | None = None, directory: Path = CONF_DIRECTORY
) -> EconomicInputs:
    """Return the economic numbers of a chip at the settings' date (or at `day`), each with its basis in words."""
    day = day or price_day(chip, settings)
    run_year = (day + timedelta(seconds=settings.run_delay_s or 0.0)).year
    rows, observations = read_energy(directory), read_observations(directory)
    price = purchase_price(chip, day, observations)
    rent = cloud_price(chip, day, observations, settings.cloud_kinds)
    if chip.tdp_w is None:
        raise fail(chip.file, "tdp_w", None, "is needed for the energy of a run", "give it with its source")
    found: dict[str, tuple[float, str]] = {
        "chip_price_usd": (price.usd, price.basis),
        "server_cost_ratio": _server_cost_ratio(chip, price.kind, rows),
        "network_cost_fraction": by_key("network_cost_fraction", "all", run_year, rows),
        "lifetime_s": _lifetime(settings, run_year, rows),
        "fleet_utilisation_fraction": (settings.fleet_utilisation_fraction or 1.0, settings.file),
        "value_decay_per_s": by_key("value_decay_per_s", "ml_gpu", run_year, rows),
        "hardware_age_s": (settings.run_delay_s or 0.0, settings.file),
        "tdp_w": (chip.tdp_w, chip.file),
        "power_fraction": by_chip("power_fraction", chip.id, rows),
        "server_power_ratio": by_chip("server_power_ratio", chip.id, rows),
        "pue_ratio": by_key("pue_ratio", settings.pue_key or "", run_year, rows),
        "electricity_price_usd_per_j": by_key(
            "electricity_price_usd_per_j", settings.electricity_key or "", run_year, rows
        ),
        "carbon_kg_per_j": by_key("carbon_kg_per_j", settings.carbon_key or "", run_year, rows),
        "cloud_price_usd_per_s": (rent.usd, rent.basis) if rent else (0.0, "nobody has been seen to rent it out"),
    }
    return EconomicInputs(
        values={key: value for key, (value, _) in found.items()},
        basis={key: words for key, (_, words) in found.items()},
        price_day=day,
        constant_dollar_factor=constant_dollar_factor(day.year, int(settings.dollar_year or day.year), directory),
        is_price_held=price.is_held,
    )


def _server_cost_ratio(chip: Chip, kind: str, rows: Sequence[Mapping[str, str]]) -> tuple[float, str]:
    """Return server-level cost / chip price for the kind of price that was found."""
    if kind in SHARE_KINDS:
        return 1.0, f"{kind} contains the server"
    if chip.server_overhead_ratio and chip.price_basis != "server_share":
        return chip.server_overhead_ratio, f"{chip.file} server_overhead_ratio"
    return by_chip("server_cost_ratio", chip.id, rows)


def _lifetime(settings: EconomicSettings, year: int, rows: Sequence[Mapping[str, str]]) -> tuple[float, str]:
    if settings.lifetime_s is not None:
        return settings.lifetime_s, settings.file
    return by_key("lifetime_s", "all", year, rows)


def at_date(settings: EconomicSettings, day: str) -> EconomicSettings:
    """Return the settings with every chip priced at one date, or each at its `release`."""
    if day != RELEASE:
        read_day(day, "price date")
    return replace(settings, price_date=day)


def priced_fields(chip: Chip, settings: EconomicSettings, directory: Path = CONF_DIRECTORY) -> dict[str, float]:
    """Return the fields of `models.effects.economics.Economics` of a chip; not-a-number where it has no price or power.

    Rows of such a chip keep their times and say nothing of cost (null), as for the reference model's own chips.
    """
    names = field_names(Economics)
    try:
        return {
            name: float(value) for name, value in economics_inputs(chip, settings, directory=directory).values.items()
        }
    except UserError:
        return dict.fromkeys(names, math.nan)


def constant_dollars(chip: Chip, settings: EconomicSettings, directory: Path = CONF_DIRECTORY) -> float:
    """Return what a dollar of the price date is worth in dollars of the settings' year; not-a-number if unpriced."""
    try:
        return economics_inputs(chip, settings, directory=directory).constant_dollar_factor
    except UserError:
        return math.nan
