"""Axes of names: each value sets several numbers of a scenario at once (one thing ideal, one assumption moved, a date).

A change is `number: value`, `number_ratio: factor`, or `number: other_number` (takes what the other one is).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.catalogue import Chip, Topology
from pipeline.economics import RELEASE, EconomicSettings, at_date, constant_dollars, priced_fields
from pipeline.errors import UserError
from pipeline.prices import read_day

Float64 = NDArray[np.float64]
Change = Mapping[str, float | str]
RATIO = "_ratio"
AS_IS = "as_is"
PRICE_DATE = "price_date"
ASSUMPTIONS = "assumptions"  # `variants: assumptions`: each uncertain input at its low and at its high
UNCERTAIN = ("assumption", "unverified")


@dataclass(frozen=True, kw_only=True)
class NamedAxis:
    """An axis of names; the name becomes a column of the results, its change is applied to the scenario."""

    name: str
    labels: tuple[str, ...]
    changes: tuple[Change, ...]

    def apply(self, columns: dict[str, Float64], position: NDArray[np.int64]) -> None:
        """Apply to every scenario the change at its position, in place."""
        for label in np.unique(position):
            rows = position == label
            for name, value in self.changes[label].items():
                set_number(columns, rows, name, value)


def set_number(columns: dict[str, Float64], rows: NDArray[np.bool_], name: str, value: float | str) -> None:
    """Set, multiply or copy one number of some scenarios."""
    base = name.removesuffix(RATIO) if name not in columns else name
    changed = np.array(columns[base], dtype=np.float64)
    if isinstance(value, str):
        changed[rows] = columns[value][rows]
    elif base != name:
        changed[rows] = changed[rows] * value
    else:
        changed[rows] = value
    columns[base] = changed


def read_variants(given: object) -> tuple[tuple[str, Change], ...] | str:
    """Return the variants of a configuration as (name, change), or the word that asks for those of the catalogue."""
    if given is None or given == ASSUMPTIONS:
        return given or ()  # pyright: ignore[reportReturnType]
    if not isinstance(given, Mapping):
        raise UserError(f"config.yaml: variants = {given!r}: must map names to changes, or be {ASSUMPTIONS}; see conf")
    variants = []
    for name, change in given.items():
        for key, value in dict(change or {}).items():
            if isinstance(value, bool) or not isinstance(value, int | float | str):
                raise UserError(
                    f"config.yaml: variants.{name}.{key} = {value!r}: must be a number or the name of one; correct it"
                )
        variants.append((str(name), dict(change or {})))
    return tuple(variants)


def variant_axis(variants: Sequence[tuple[str, Change]], known: Sequence[str], where: str) -> NamedAxis:
    """Return the axis of variants for one block; a variant that names a number the block lacks is refused."""
    for name, change in variants:
        for key, value in change.items():
            for number in [key, *([value] if isinstance(value, str) else [])]:
                if number not in known and number.removesuffix(RATIO) not in known:
                    raise UserError(
                        f"config.yaml: variants.{name}.{number}: {where} has no such number; "
                        f"choose one of {', '.join(sorted(known))}, or one of them with {RATIO}"
                    )
    chosen = variants or ((AS_IS, {}),)
    return NamedAxis(
        name="variant", labels=tuple(name for name, _ in chosen), changes=tuple(change for _, change in chosen)
    )


def price_axis(chip: Chip, settings: EconomicSettings, dates: Sequence[str]) -> NamedAxis:
    """Return the axis of price dates of a chip; each sets every number of `models.effects.economics.Economics`.

    Before its release a chip has no price, whatever it costs later: the runs of that date say nothing of cost.
    """
    chosen = dates or (settings.price_date or RELEASE,)
    changes = []
    for day in chosen:
        dated = at_date(settings, day)
        change = {**priced_fields(chip, dated), "constant_dollar_ratio": constant_dollars(chip, dated)}
        changes.append(change if is_sold(chip, day) else dict.fromkeys(change, math.nan))
    return NamedAxis(name=PRICE_DATE, labels=tuple(chosen), changes=tuple(changes))


def is_sold(chip: Chip, day: str) -> bool:
    """Return whether a chip is released by a day (its own release, or a date)."""
    if day == RELEASE or not chip.released:
        return True
    return read_day(chip.released, f"{chip.file} released") <= read_day(day, "price_dates")


def assumption_variants(
    chip: Chip, topology: Topology, economics: EconomicSettings, known: Mapping[str, float], precision: str
) -> tuple[tuple[str, Change], ...]:
    """Return each uncertain input of a block at its low and at its high, beside all as they are.

    An input counts as uncertain if its source record is an assumption or unverified and gives both bounds.
    """
    variants: list[tuple[str, Change]] = [(AS_IS, {})]
    for group, entry in (("hardware", chip), ("topology", topology), ("economics", economics)):
        for key, source in entry.sources.items():
            number = scenario_number(key, precision, known, topology)
            if source.kind not in UNCERTAIN or source.low is None or source.high is None or number is None:
                continue
            for side, value in (("low", source.low), ("high", source.high)):
                if value != known[number]:
                    variants.append((f"{group}.{key}={side}", {number: float(value)}))
    return tuple(variants)


def scenario_number(key: str, precision: str, known: Mapping[str, float], topology: Topology) -> str | None:
    """Return the scenario number that a catalogue key gives, None if it gives none of them."""
    words: dict[str, Any] = {
        f"peak_dense_{precision}_flop_per_s": "peak_flop_per_s",
        "release_price_usd": "chip_price_usd",
        "server_overhead_ratio": "server_cost_ratio",
        "run_delay_s": "hardware_age_s",
        **link_numbers(topology),
    }
    if key.startswith("levels["):
        level, _, quantity = key.removeprefix("levels[").partition("].")
        words[key] = f"level_{level}_{quantity}"
    name = words.get(key, key)
    return name if name in known and np.isfinite(known[name]) else None


def link_numbers(topology: Topology) -> dict[str, str]:
    """Return, for each number of a chip's links that a level of the network takes, the scenario number it gives."""
    quantities = {"group_ranks": "ranks", "one_way_byte_per_s": "one_way_byte_per_s", "latency_s": "latency_s"}
    return {
        f"{spec.takes_from}_{of_chip}": f"level_{level}_{own}"
        for level, spec in enumerate(topology.levels)
        for own, of_chip in quantities.items()
        if spec.takes_from and getattr(spec, own) is None
    }
