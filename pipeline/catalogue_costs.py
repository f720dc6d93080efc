"""Costs of runs: the published ones beside ours, and two chips beside each other, basis by basis."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import jax.numpy as jnp

from models.effects.economics import Economics, RunCost, cost_ratio, run_cost
from pipeline.catalogue import CONF_DIRECTORY, Chip, ModelShape, hardware_fields, read_entries, read_yaml
from pipeline.economics import EconomicInputs, EconomicSettings, at_date, economics_inputs, load_economics
from pipeline.errors import UserError
from pipeline.prices import constant_dollar_factor, read_day

S_PER_HOUR = 3600.0
RUN_BEFORE_RELEASE = timedelta(days=183)  # a model is priced half a year before it is released
COST_BASES = (
    "chip_purchase_usd",
    "purchase_usd",
    "amortised_hardware_usd",
    "decayed_hardware_usd",
    "energy_usd",
    "total_usd",
    "cloud_usd",
    "emissions_kg",
)
PUBLISHED_DOLLAR_YEAR = 2023  # of the costs in conf/model
UNSTATED_WALL_HOUR = 2190.0  # three months, where only accelerator hours are known
UNSTATED_UTILISATION = 0.35  # where only FLOP and chip are published: the middle of the stated ones (0.19 to 0.5)


def read_settings(name: str, directory: Path = CONF_DIRECTORY) -> EconomicSettings:
    """Return an option of conf/economics by name."""
    path = directory / "economics" / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in path.parent.glob("*.yaml")))
        raise UserError(f"economics={name}: no such option in {path.parent}; choose one of {known}")
    return load_economics(read_yaml(path), f"economics/{name}.yaml")


def cost_of_run(inputs: EconomicInputs, accelerator_count: float, run_time_s: float) -> dict[str, float]:
    """Return the cost of one run by basis, in dollars of the price date."""
    economics = Economics(**{key: jnp.asarray(value) for key, value in inputs.values.items()})
    cost = run_cost(
        economics=economics, accelerator_count=jnp.asarray(accelerator_count), run_time_s=jnp.asarray(run_time_s)
    )
    return {each.name: float(getattr(cost, each.name)) for each in fields(RunCost)}


def accelerator_hours(model: ModelShape, chip: Chip) -> tuple[float, str]:
    """Return the accelerator hours of a published run and how they are known."""
    published = model.published
    if published.accelerator_hour:
        return published.accelerator_hour, "published"
    if published.accelerator_count and published.wall_hour:
        return published.accelerator_count * published.wall_hour, "accelerators x hours"
    utilisation = published.model_flop_utilisation_fraction or UNSTATED_UTILISATION
    peak = hardware_fields(chip, "auto")["peak_flop_per_s"]
    stated = "stated" if published.model_flop_utilisation_fraction else "assumed"
    hours = (published.training_flop or 0.0) / (utilisation * peak) / S_PER_HOUR
    return hours, f"FLOP / peak at {stated} utilisation {utilisation:g}"


def published_cost_table(settings: EconomicSettings, directory: Path = CONF_DIRECTORY) -> list[dict[str, object]]:
    """Return one row per model with a published cost: components, total, published, ratio, in 2023 dollars.

    Models on a chip that the catalogue does not have, or without any stated chip, are left out.
    """
    chips = read_entries("hardware", (directory,))
    rows = []
    for model in read_entries("model", (directory,)).values():
        published = model.published
        if published.cost_usd is None or published.hardware_id is None:
            continue
        chip = chips[published.hardware_id]
        day = read_day(published.released or "", model.file) - RUN_BEFORE_RELEASE
        inputs = economics_inputs(chip, settings, max(day, read_day(chip.released or "", chip.file)), directory)
        hours, how = accelerator_hours(model, chip)
        wall_hour = published.wall_hour or UNSTATED_WALL_HOUR
        cost = cost_of_run(inputs, hours / wall_hour, wall_hour * S_PER_HOUR)
        to_2023 = constant_dollar_factor(inputs.price_day.year, PUBLISHED_DOLLAR_YEAR, directory)
        row: dict[str, object] = {"model": model.id, "hardware": chip.id, "price_day": str(inputs.price_day)}
        row |= {"accelerator_hour": hours, "hours_known_from": how}
        row |= {key: cost[key] * to_2023 for key in COST_BASES[2:7]}
        decayed_usd = (cost["decayed_hardware_usd"] + cost["energy_usd"]) * to_2023
        row |= {"published_usd": published.cost_usd, "ratio": cost["total_usd"] * to_2023 / published.cost_usd}
        row |= {"decayed_ratio": decayed_usd / published.cost_usd, "published_basis": published.cost_basis}
        rows.append(row)
    return rows


def chip_cost_table(
    runs: Mapping[str, tuple[float, float]], base: str, settings: EconomicSettings, directory: Path = CONF_DIRECTORY
) -> list[dict[str, object]]:
    """Return cost by basis of the same work on several chips, with the ratio to a base chip, at two price dates.

    `runs`: chip id -> (accelerators, run time in s), as a simulation found them. One row per chip, basis and price
    date: each chip's own time (dollars of that year, made constant) and one common date.
    """
    chips = read_entries("hardware", (directory,))
    for name in (*runs, base):
        if name not in chips or name not in runs:
            raise UserError(f"hardware={name}: no such chip among the runs; choose among {', '.join(runs)}")
    rows = []
    for label, priced in (("own_time", at_release(settings)), ("common_date", at_date(settings, "2025-07-01"))):
        costs = {}
        for name, (count, run_time_s) in runs.items():
            inputs = economics_inputs(chips[name], priced, directory=directory)
            nominal = cost_of_run(inputs, count, run_time_s)
            constant = {key: nominal[key] * _dollars(key, inputs) for key in COST_BASES}
            costs[name] = (inputs, nominal, constant)
        for name, (inputs, nominal, constant) in costs.items():
            for basis in COST_BASES:
                row: dict[str, object] = {"hardware": name, "priced_at": label, "price_day": str(inputs.price_day)}
                row |= {"basis": basis, "nominal": nominal[basis], "constant": constant[basis], "base": base}
                row["nominal_ratio_to_base"] = ratio(nominal[basis], costs[base][1][basis])
                row["constant_ratio_to_base"] = ratio(constant[basis], costs[base][2][basis])
                rows.append(row | {"price_basis": inputs.basis["chip_price_usd"]})
    return rows


def at_release(settings: EconomicSettings) -> EconomicSettings:
    """Return the settings with every chip priced at its release."""
    return at_date(settings, "release")


def _dollars(key: str, inputs: EconomicInputs) -> float:
    return inputs.constant_dollar_factor if key.endswith("_usd") else 1.0


def ratio(cost: float, base: float) -> float:
    """Return how many times dearer a cost is than the base's; 0 where the base has no such cost."""
    return float(cost_ratio(jnp.asarray(cost), jnp.asarray(base)))


def as_csv(rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV text, numbers to six digits."""
    lines: list[str] = []
    for row in rows:
        if not lines:
            lines.append(",".join(row))
        cells = (f"{value:.6g}" if isinstance(value, float) else str(value) for value in row.values())
        lines.append(",".join(f'"{cell}"' if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"
