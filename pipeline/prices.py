"""What a chip cost at a date, by one written rule, and what money was worth.

The rule. Only observations of one kind are compared (a bare chip is not a share of a server). Several on one day count
as their geometric mean. Between two dates the price is interpolated in the logarithm. Before the first and after the
last the nearest observation is taken as it is: never extrapolated, and the basis text says how far away it is.
"""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from pipeline.catalogue import CONF_DIRECTORY, Chip
from pipeline.errors import UserError

CHIP_KINDS = ("purchase_chip", "purchase_chip_annual_estimate", "purchase_imputed", "purchase_equivalent_estimate")
SHARE_KINDS = ("purchase_server_share", "purchase_rack_share")  # server, and rack, already inside
PURCHASE_KINDS = (*CHIP_KINDS, *SHARE_KINDS, "all_in_cluster_share")
CLOUD_KINDS = ("cloud_on_demand", "cloud_1yr_commit", "cloud_3yr_commit", "cloud_assumed")
BASIS_KIND = {
    "chip": "purchase_chip",
    "server_share": "purchase_server_share",
    "estimate": "purchase_equivalent_estimate",
}
NEAR_DAYS = 366  # an observation this near is as good as two around the date
DAYS_PER_MONTH = 30.4


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One dated price: USD of that day, per accelerator (purchase) or per accelerator and second (cloud)."""

    chip: str
    day: date
    kind: str
    usd: float
    ref: str
    source_kind: str


@dataclass(frozen=True, kw_only=True)
class Price:
    """A price at a date, in dollars of that date, with the words that say how it was found."""

    usd: float
    kind: str
    basis: str
    is_held: bool  # taken from outside the range of observations


def read_day(text: str, where: str) -> date:
    """Return a date from yyyy-mm-dd, yyyy-mm or yyyy (the first of the month, the first of the year)."""
    try:
        return date.fromisoformat(text + "-01-01"[3 * (text.count("-")) :] if len(text) < 10 else text)
    except ValueError as error:
        raise UserError(f"{where}: {text!r}: must be a date; write yyyy-mm-dd, yyyy-mm or yyyy") from error


def read_csv(name: str, directory: Path) -> list[dict[str, str]]:
    """Return the rows of a data file of conf/economics."""
    path = directory / "economics" / name
    if not path.is_file():
        raise UserError(f"{path}: no such file; it belongs to the configuration folder")
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@lru_cache(maxsize=4)
def read_observations(directory: Path = CONF_DIRECTORY) -> tuple[Observation, ...]:
    """Return the dated price observations of conf/economics/prices.csv."""
    observations = []
    for number, row in enumerate(read_csv("prices.csv", directory), start=2):
        where = f"economics/prices.csv line {number}"
        usd = float(row["usd"] or row["usd_per_s"] or 0.0)
        if row["kind"] not in (*PURCHASE_KINDS, *CLOUD_KINDS):
            raise UserError(f"{where}: kind = {row['kind']!r}: unknown kind; known: {PURCHASE_KINDS + CLOUD_KINDS}")
        if not usd > 0.0:
            raise UserError(f"{where}: price = {usd}: must be > 0; give usd or usd_per_s")
        day = read_day(row["date"], where)
        fields = {key: row[key] for key in ("chip", "kind", "ref", "source_kind")}
        observations.append(Observation(day=day, usd=usd, **fields))
    return tuple(observations)


def price_at(observations: Iterable[Observation], kind: str, day: date) -> Price | None:
    """Return the price of one kind at a day by the rule above; None where there is no observation of the kind."""
    by_day: dict[date, list[float]] = {}
    for each in observations:
        if each.kind == kind:
            by_day.setdefault(each.day, []).append(math.log(each.usd))
    if not by_day:
        return None
    logs = {each: sum(values) / len(values) for each, values in by_day.items()}
    before = max((each for each in logs if each <= day), default=None)
    after = min((each for each in logs if each >= day), default=None)
    if before is None or after is None:
        nearest = after if before is None else before
        assert nearest is not None  # logs is not empty
        usd = math.exp(logs[nearest])
        months = abs((nearest - day).days) / DAYS_PER_MONTH
        side = "later" if before is None else "earlier"
        basis = f"{kind} {usd:.6g} USD of {nearest}, the nearest, {months:.0f} months {side}, not extrapolated"
        return Price(usd=usd, kind=kind, basis=basis, is_held=True)
    if before == after:
        return Price(usd=math.exp(logs[day]), kind=kind, basis=f"{kind} observed on {day}", is_held=False)
    share = (day - before).days / (after - before).days
    usd = math.exp(logs[before] + share * (logs[after] - logs[before]))
    ends = f"{math.exp(logs[before]):.6g} USD ({before}) and {math.exp(logs[after]):.6g} USD ({after})"
    return Price(usd=usd, kind=kind, basis=f"{kind} interpolated in log between {ends}", is_held=False)


def chip_observations(chip: Chip, observations: Iterable[Observation]) -> list[Observation]:
    """Return the observations of a chip, with the price in its own file unless one of its kind lies within a year."""
    own = [each for each in observations if each.chip == chip.id]
    if not chip.release_price_usd or not chip.released:
        return own
    kind = BASIS_KIND.get(chip.price_basis or "chip", "purchase_chip")
    day = read_day(chip.price_day or chip.released, f"{chip.file} price_day")
    if any(each.kind == kind and abs((each.day - day).days) <= NEAR_DAYS for each in own):
        return own
    source = chip.sources.get("release_price_usd")
    ref, source_kind = (source.ref, source.kind) if source else ("", "unverified")
    usd = chip.release_price_usd
    return [*own, Observation(chip=chip.id, day=day, kind=kind, usd=usd, ref=ref, source_kind=source_kind)]


def preferred_kinds(chip: Chip) -> tuple[str, ...]:
    """Return the kinds of purchase price in the order they are tried: first those of the chip's own price basis."""
    return (*SHARE_KINDS, *CHIP_KINDS) if chip.price_basis == "server_share" else (*CHIP_KINDS, *SHARE_KINDS)


def purchase_price(chip: Chip, day: date, observations: Sequence[Observation]) -> Price:
    """Return the purchase price of a chip at a day.

    The first kind in order of preference that has observations around the day, or one within a year of it; failing
    that the first kind that has any. Raises UserError for a chip that nobody has priced.
    """
    own = chip_observations(chip, observations)
    found = [price for kind in preferred_kinds(chip) if (price := price_at(own, kind, day))]
    if not found:
        raise UserError(
            f"{chip.file}: release_price_usd = None: no price of any kind is known; "
            "give release_price_usd with its source, or an observation in economics/prices.csv"
        )
    near = (price for price in found if not price.is_held or _is_near(price, own, day))
    return next(near, found[0])


def _is_near(price: Price, own: Iterable[Observation], day: date) -> bool:
    return any(each.kind == price.kind and abs((each.day - day).days) <= NEAR_DAYS for each in own)


def cloud_price(chip: Chip, day: date, observations: Sequence[Observation], kinds: Sequence[str]) -> Price | None:
    """Return the rent of a chip in USD per second at a day, of the first kind that was observed; None if never."""
    own = [each for each in observations if each.chip == chip.id]
    return next((price for kind in kinds if (price := price_at(own, kind, day))), None)


@lru_cache(maxsize=4)
def read_price_index(directory: Path = CONF_DIRECTORY) -> Mapping[int, float]:
    """Return the consumer price index by year: the one deflator of the project (conf/economics/deflator.csv)."""
    return {int(row["year"]): float(row["consumer_price_index"]) for row in read_csv("deflator.csv", directory)}


def constant_dollar_factor(from_year: int, to_year: int, directory: Path = CONF_DIRECTORY) -> float:
    """Return what one dollar of a year is worth in dollars of another, by the price index."""
    index = read_price_index(directory)
    for year in (from_year, to_year):
        if year not in index:
            raise UserError(
                f"economics/deflator.csv: year {year}: not in {min(index)} to {max(index)}; add its index with a source"
            )
    return index[to_year] / index[from_year]
