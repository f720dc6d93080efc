"""`flopscape plan`: will a model fit, the best layout, how long, how much, what limits it; and what does fit if not."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.arguments import Parser
from pipeline.grid import build_grid
from pipeline.plan_arguments import deepspeed_config, megatron_arguments, remarks, torchtitan_arguments
from pipeline.plan_input import DEGREES, LAYOUT, compose_plan, read_arguments
from pipeline.simulate import run_unit
from pipeline.study_config import StudyConfig

Table = Mapping[str, NDArray[Any]]
COSTS = ("purchase_usd", "amortised_hardware_usd", "energy_usd", "total_usd", "cloud_usd")
DOUBLINGS = 12  # how far the search for a cluster that holds the model goes
PARTS = re.compile(r"^(?!step|run|exchange)(\w+)_time_s$")


def scenario_tables(study: StudyConfig) -> list[Table]:
    """Return every layout of each (hardware, network, number of accelerators), one table each."""
    grid = build_grid(study)
    tables = []
    for scenario in range(grid.size):
        tables.append(run_unit(grid, range(scenario, scenario + 1)))
    return tables


def wall_step_s(table: Table) -> NDArray[np.float64]:
    """Return the wall time of a step, failures counted; infinite where the layout does not fit in memory."""
    wall = table["run_time_s"] / (table["dataset_token"] / table["global_batch_token"])
    fits = np.isfinite(wall) & (table["memory_byte"] <= table["hbm_byte"])
    return np.where(fits, wall, np.inf)


def described(table: Table, row: int) -> dict[str, Any]:
    """Return one layout with its outcome and what it costs."""
    value = {name: values[row].item() for name, values in table.items()}
    parts = {match[1]: value[name] for name in table if (match := PARTS.match(name)) and value[name] > 0.0}
    beside = {name: seconds for name, seconds in parts.items() if name != "matmul"}
    limit = max(beside, key=lambda name: beside[name], default="matmul")
    return {
        "layout": {name: value[name] for name in LAYOUT},
        "step_time_s": value["step_time_s"],
        "token_per_s": value["dataset_token"] / value["run_time_s"],
        "model_flop_utilisation_fraction": value["model_flop_utilisation_fraction"],
        "goodput_fraction": value["goodput_fraction"],
        "run_time_s": value["run_time_s"],
        "memory_byte": value["memory_byte"],
        "hbm_byte": value["hbm_byte"],
        "bottleneck": limit,
        "bottleneck_share": beside.get(limit, 0.0) / value["step_time_s"],
        "part_time_s": parts,
        "cost": {name: value[name] if np.isfinite(value[name]) else None for name in COSTS},
        "energy_j": value["energy_j"] if np.isfinite(value["energy_j"]) else None,
    }


def plan_of(table: Table, wanted: Mapping[str, float]) -> dict[str, Any]:
    """Return the plan of one number of accelerators of one kind: its best layout, the next, and the hand-given."""
    wall = wall_step_s(table)
    keys = ("hardware", "topology", "model", "precision")
    plan: dict[str, Any] = {name: str(table[name][0]) for name in keys}
    plan["accelerator_count"] = int(table["accelerator_count"][0])
    plan["layout_count"] = int((table["infeasible_reason"] != "no_layout").sum())
    plan["fits"] = bool(np.isfinite(wall).any())
    if not plan["fits"]:
        return plan | {"least_memory_byte": _least_memory(table), "hbm_byte": float(table["hbm_byte"][0])}
    best = int(np.argmin(wall))
    plan["best"] = described(table, best)
    other = np.zeros(len(wall), dtype=bool)
    for name in DEGREES:
        other |= table[name] != table[name][best]
    plan["next_best"] = compared(table, np.where(other, wall, np.inf), wall[best])
    if wanted:
        plan["given"] = given_layout(table, wall, wanted)
    run = {name: float(table[name][best]) for name in ("sequence_token", "layer_count", "expert_count")}
    layout, precision = plan["best"]["layout"], plan["precision"]
    plan["arguments"] = {
        "megatron_lm": megatron_arguments(layout, run, precision),
        "torchtitan": torchtitan_arguments(layout, run, precision),
        "deepspeed": deepspeed_config(layout, run, precision),
        "remarks": remarks(layout, run),
    }
    return plan


def _least_memory(table: Table) -> float | None:
    least = np.fmin.reduce(np.concatenate([table["memory_byte"], table["nearest_memory_byte"]]))
    return float(least) if np.isfinite(least) else None


def compared(table: Table, wall: NDArray[np.float64], best_s: float) -> dict[str, Any] | None:
    """Return the fastest of the layouts that have a finite time, with how much slower than the best it is."""
    row = int(np.argmin(wall))
    if not np.isfinite(wall[row]):
        return None
    return {**described(table, row), "time_ratio": float(wall[row] / best_s)}


def given_layout(table: Table, wall: NDArray[np.float64], wanted: Mapping[str, float]) -> dict[str, Any]:
    """Return the best layout that has the given parts, and what it loses; or why there is none."""
    matches = np.ones(len(wall), dtype=bool)
    for name, value in wanted.items():
        left = matches & np.isclose(table[name], value)
        if not left.any():
            known = sorted(set(table[name][matches].tolist()))
            choices = ", ".join(f"{each:g}" for each in known)
            return {"is_possible": False, "reason": f"{name} = {value:g}: none such divides; choose one of {choices}"}
        matches = left
    found = compared(table, np.where(matches, wall, np.inf), float(wall.min()))
    if found is None:
        least = float(np.fmin.reduce(table["memory_byte"][matches]))
        return {"is_possible": False, "reason": f"it needs {least / 1e9:.0f} GB on each accelerator"}
    return {"is_possible": True, **found}


def nearest_that_fits(study: StudyConfig, plan: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the plan of the smallest doubling of the accelerators that holds the model, None if none does."""
    entries = dict(study.entries)
    for group in ("hardware", "topology"):
        entries[group] = {plan[group]: study.entries[group][plan[group]]}
    counts = plan["accelerator_count"] * 2.0 ** np.arange(1, DOUBLINGS + 1)
    for count in counts:
        axes = tuple(
            (name, np.array([count]) if name == "accelerator_count" else values) for name, values in study.axes
        )
        (table, *_) = scenario_tables(replace(study, entries=entries, axes=axes))
        found = plan_of(table, {})
        if found["fits"]:
            return found
    return None


def make_plans(study: StudyConfig, wanted: Mapping[str, float]) -> dict[str, Any]:
    """Return everything that a plan says, as plain data."""
    tables = scenario_tables(study)
    plans = [plan_of(table, wanted) for table in tables]
    for plan in plans:
        if not plan["fits"]:
            plan["nearest"] = nearest_that_fits(study, plan)
    first = tables[0]
    names = ("dataset_token", "training_flop", "parameter_count", "active_parameter_count", "global_batch_token")
    return {
        "model": plans[0]["model"],
        "prices": str(study.economics_entry.get("name", study.economics)),
        **{name: float(first[name][0]) for name in (*names, "sequence_token")},
        "plans": plans,
    }


def main(argv: list[str]) -> int:
    """Run `flopscape plan model=... hardware=[...] accelerators=[...] tokens=... [layout.NAME=...] [--json]`."""
    from pipeline.plan_text import plan_text

    parser = Parser(
        prog="flopscape plan",
        description="Will a model fit, what is its best layout, how long does it take, how much does it cost?",
        epilog="model=NAME or config.json, hardware=[a,b], accelerators=[512,2048], tokens=2e12, batch=, sequence=, "
        "precision=, layout.tensor_ranks=8 (any part of a layout by hand), and any override of `flopscape sweep`.",
    )
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--config-dir", type=Path, help="a further folder with hardware/, model/, topology/ ...")
    parser.add_argument("arguments", nargs="*", help="name=value")
    options = parser.parse_args(argv)
    overrides, wanted, config = read_arguments(options.arguments)
    result = make_plans(compose_plan(overrides, config, options.config_dir), wanted)
    sys.stdout.write(json.dumps(result, indent=1) + "\n" if options.json else plan_text(result))
    return 0
