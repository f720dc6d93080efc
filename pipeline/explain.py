"""`flopscape explain`: one point, every input with where it comes from, and where the time and the memory go."""

import json
import math
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from models.effects.economics import RunCost
from models.outcome import Outcome
from models.packing import field_names
from models.point import Layout
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import TransformerLayout
from pipeline.arguments import Parser
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.explain_inputs import UNCERTAIN, scenario_inputs
from pipeline.grid import Grid, build_grid
from pipeline.simulate import block_table

POINT_KEYS = ("hardware", "topology", "model", "physics", "precision", "scenario_id")
FURTHER_LAYOUT = ("tensor_ranks", "interleave_count", "is_zero_bubble", "recompute_layer_fraction")
REASONS = {"time": "no cluster ends in time", "memory": "no layout fits in memory"}


def explain(grid: Grid, scenario_id: int) -> dict[str, Any]:
    """Return everything about the best layout of one scenario, as plain data (numbers that are unknown are None).

    Raises UserError if the scenario does not exist.
    """
    if not 0 <= scenario_id < grid.size:
        raise UserError(f"command line: --scenario {scenario_id}: must be 0 to {grid.size - 1}; choose one of them")
    block, inside, ids = grid.parts(scenario_id, scenario_id + 1)[0]
    columns = block.columns(inside)
    row = {name: _plain(values[0]) for name, values in block_table(block, inside, ids).items()}
    layout_names = {*field_names(Layout), *field_names(TransformerLayout), *FURTHER_LAYOUT}
    outcome_names = {*field_names(Outcome), *field_names(TransformerOutcome), "run_time_s"}
    inputs = scenario_inputs(grid, block, columns)
    uncertain = sum(each["source"]["kind"] in UNCERTAIN for each in inputs)
    return {
        "point": {name: row[name] for name in POINT_KEYS},
        "inputs": inputs,
        "assumed_input_fraction": uncertain / len(inputs),
        "is_feasible": bool(row["is_feasible"]),
        "infeasible_reason": row["infeasible_reason"],
        "accelerator_count": row["accelerator_count"],
        "candidate_count": row["candidate_count"],
        "step_count": float(columns["dataset_token"][0] / columns["global_batch_token"][0]),
        "layout": {name: value for name, value in row.items() if name in layout_names},
        "placement": {name: value for name, value in row.items() if "_ranks_level_" in name},
        "outcome": {name: value for name, value in row.items() if name in outcome_names},
        "cost": {each.name: row.get(each.name) for each in fields(RunCost)},
        "nearest_memory_byte": row.get("nearest_memory_byte"),
    }


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as plain Python, not-a-number as None."""
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def _input_line(each: dict[str, Any]) -> str:
    source = each["source"]
    printed = f', printed "{source["as_printed"]}"' if source["as_printed"] else ""
    where = f", {source['where']}" if source["where"] else ""
    value = f"{each['value']:.6g}" if each["value"] is not None else "none"
    return f"  {each['name']:36s} {value:>12s} {each['unit']:8s} {source['kind']:10s} {source['ref']}{where}{printed}"


def as_text(result: dict[str, Any]) -> str:
    """Return the explanation as a page of text."""
    lines = [" ".join(f"{name}={value}" for name, value in result["point"].items()), "", "Inputs"]
    lines += [_input_line(each) for each in result["inputs"]]
    lines.append(f"  {result['assumed_input_fraction']:.0%} of these inputs are assumptions or unverified")
    if not result["is_feasible"]:
        text = REASONS.get(result["infeasible_reason"], "no layout divides this model over these accelerators")
        nearest = result["nearest_memory_byte"]
        needs = f"; the least that any layout needs is {nearest / 1e9:.4g} GB" if nearest else ""
        return "\n".join([*lines, "", f"Infeasible: {text} ({result['candidate_count']:,} candidates){needs}", ""])
    lines += ["", f"Layout: best of {result['candidate_count']:,} candidates on {result['accelerator_count']:,}"]
    lines += [f"  {name:36s} {value:g}" for name, value in {**result["layout"], **result["placement"]}.items()]
    outcome = result["outcome"]
    step_s = outcome["step_time_s"]
    lines += ["", f"One step: {step_s:.6g} s; the run: {result['step_count']:,.0f} steps"]
    parts = {name: value for name, value in outcome.items() if name.endswith("_time_s") and value is not None}
    parts = {name: value for name, value in parts.items() if name not in ("step_time_s", "run_time_s")}
    lines += [f"  {name:36s} {value:12.6g} s  {value / step_s:6.1%} of the step" for name, value in parts.items()]
    rest = {name: value for name, value in outcome.items() if name not in parts and value is not None}
    lines += [f"  {name:36s} {value:12.6g}" for name, value in rest.items()]
    costs = {name: value for name, value in result["cost"].items() if value is not None}
    lines += ["", "Cost of the run, by basis"] + [f"  {name:36s} {value:12.6g}" for name, value in costs.items()]
    return "\n".join([*lines, ""])


def main(argv: list[str]) -> int:
    """Run `flopscape explain [--scenario ID | --run RUN_ID] [--json] [--config-dir DIR] [overrides]`."""
    parser = Parser(prog="flopscape explain", description="One scenario's best layout, taken apart.")
    parser.add_argument("--scenario", type=int, default=0, help="scenario_id within the study; 0 if left out")
    parser.add_argument("--run", metavar="RUN_ID", help="take a published run apart instead (see flopscape validate)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--config-dir", type=Path, help="a further folder with hardware/, model/, topology/ ...")
    parser.add_argument("overrides", nargs="*", help="Hydra overrides, as for sweep")
    options = parser.parse_intermixed_args(argv)
    if options.run:
        from pipeline.validate import main as validate_main

        return validate_main(["--explain", options.run, *(["--json"] if options.json else [])])
    grid = build_grid(compose_study(options.overrides, options.config_dir))
    result = explain(grid, options.scenario)
    text = json.dumps(result, indent=1, allow_nan=False) + "\n" if options.json else as_text(result)
    sys.stdout.write(text)
    return 0
