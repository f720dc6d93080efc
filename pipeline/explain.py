"""`flopscape explain`: one point, every input with where it comes from, and where the time and the memory go."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from models.packing import layout_names, placement_names
from models.point import Architecture, Hardware, Layout, NetworkLevel, Physics, Workload
from pipeline.catalogue import Chip, load_chip
from pipeline.catalogue_schema import Source
from pipeline.columns import GLOSSARY
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import Block, Grid, build_grid, scenario_table
from pipeline.simulate import block_table

BREAKDOWN = ("matmul_time_s", "tensor_time_s", "layer_transfer_time_s", "data_time_s", "latency_time_s")
LEVEL_KEYS = {"group_ranks": "ranks", "one_way_byte_per_s": "one_way_byte_per_s", "latency_s": "latency_s"}


def _metadata(name: str) -> tuple[str, str]:
    """Return (unit, meaning) of a number by the field that declares it."""
    from dataclasses import fields

    base = name.split("_", 2)[2] if name.startswith("level_") else name
    for bundle in (Hardware, NetworkLevel, Architecture, Workload, Layout, Physics):
        for each in fields(bundle):
            if each.name == base:
                return each.metadata["unit"], each.metadata["meaning"]
    column = GLOSSARY.get(name)
    return (column.unit, column.meaning) if column else ("", "")


def _source_record(source: Source | None, default: str) -> dict[str, Any]:
    if source is None:
        return {"ref": default, "kind": "derived", "where": "", "as_printed": "", "note": ""}
    return {name: getattr(source, name) for name in ("ref", "kind", "where", "as_printed", "note")}


def _chip_key(block: Block, name: str) -> str:
    """Return the catalogue key that gives a number of the scenario."""
    if name == "peak_flop_per_s":
        return f"peak_dense_{block.precision}_flop_per_s"
    return name


def scenario_inputs(grid: Grid, block: Block, columns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return every input of one scenario: name, value, unit, meaning, source."""
    study = grid.study
    chip: Chip = load_chip(study.entries["hardware"][block.hardware], f"hardware/{block.hardware}.yaml")
    topology = study.entries["topology"][block.topology]
    family = study.entries["model"][block.model]
    varied = {name.removesuffix("_ratio") for name, _ in block.axes}
    records = []
    for name, values in columns.items():
        unit, meaning = _metadata(name)
        source = chip.sources.get(_chip_key(block, name))
        origin = f"hardware/{block.hardware}.yaml"
        if name.startswith("level_"):
            origin, source = f"topology/{block.topology}.yaml", _level_source(chip, topology, name)
        elif name in block.points:
            origin = f"model/{block.model}.yaml"
            source = None
        elif name in ("run_limit_s", "accelerator_count"):
            origin = "config.yaml run"
        elif name == "word_byte":
            origin = f"precision {block.precision}"
        if name in varied:
            origin, source = "config.yaml axes", None
        default = str(family.get("name", origin)) if name in block.points else origin
        record = {"name": name, "value": float(np.asarray(values)[0]), "unit": unit, "meaning": meaning}
        records.append(record | {"from": origin, "source": _source_record(source, default)})
    physics = study.entries["physics"][block.physics.id]
    for name, value in block.physics.constants.items():
        unit, meaning = _metadata(name)
        given = physics["sources"].get(name, {})
        record = {"name": name, "value": value, "unit": unit, "meaning": meaning}
        source = {key: given.get(key, "") for key in ("ref", "kind", "where", "as_printed", "note")}
        records.append(record | {"from": f"physics/{block.physics.id}.yaml", "source": source})
    return records


def _level_source(chip: Chip, topology: Any, name: str) -> Source | None:
    _, level, quantity = name.split("_", 2)
    if topology.get("name") and chip.network_levels and "vendor" in str(topology.get("name")):
        return chip.sources.get("network_levels")
    taken = topology["levels"][min(int(level), len(topology["levels"]) - 1)].get("from")
    return chip.sources.get(f"{taken}_{LEVEL_KEYS[quantity]}") if taken else None


def explain(grid: Grid, scenario_id: int) -> dict[str, Any]:
    """Return everything about the best layout of one scenario, as plain data.

    Raises UserError if the scenario does not exist.
    """
    if not 0 <= scenario_id < grid.size:
        raise UserError(f"command line: --scenario {scenario_id}: must be 0 to {grid.size - 1}; choose one of them")
    block, inside, ids = grid.parts(scenario_id, scenario_id + 1)[0]
    columns = block.columns(inside)
    row = {name: values[0].item() for name, values in block_table(block, inside, ids).items()}
    layout = {name: row[name] for name in layout_names() if name in row}
    placement = {name: row[name] for name in placement_names(block.level_count)}
    outcome = {name: row[name] for name in row if name in GLOSSARY and GLOSSARY[name].source == "models.step"}
    inputs = scenario_inputs(grid, block, columns)
    uncertain = sum(each["source"]["kind"] in ("assumption", "unverified") for each in inputs)
    steps = float(scenario_table(block, columns).steps[0])
    return {
        "point": {name: row[name] for name in ("hardware", "topology", "model", "physics", "precision", "scenario_id")},
        "inputs": inputs,
        "assumed_input_fraction": uncertain / len(inputs),
        "is_feasible": bool(row["is_feasible"]),
        "infeasible_reason": row["infeasible_reason"],
        "accelerator_count": row["accelerator_count"],
        "candidate_count": row["candidate_count"],
        "step_count": steps,
        "layout": layout,
        "placement": placement,
        "outcome": {**outcome, "run_time_s": row["run_time_s"]},
    }


def as_text(result: dict[str, Any]) -> str:
    """Return the explanation as a page of text."""
    point = result["point"]
    lines = [" ".join(f"{name}={value}" for name, value in point.items()), "", "Inputs"]
    for each in result["inputs"]:
        source = each["source"]
        printed = f', printed "{source["as_printed"]}"' if source["as_printed"] else ""
        where = f", {source['where']}" if source["where"] else ""
        value = f"{each['value']:.6g} {each['unit']}"
        lines.append(f"  {each['name']:38s} {value:22s} {source['kind']:10s} {source['ref']}{where}{printed}")
    lines.append(f"  {result['assumed_input_fraction']:.0%} of these inputs are assumptions or unverified")
    if not result["is_feasible"]:
        reason = {"time": "no cluster ends in time", "memory": "no layout fits in memory"}
        text = reason.get(result["infeasible_reason"], "no layout divides this model over these accelerators")
        return "\n".join([*lines, "", f"Infeasible: {text} ({result['candidate_count']:,} candidates)", ""])
    lines += ["", f"Layout: best of {result['candidate_count']:,} candidates on {result['accelerator_count']:,}"]
    lines += [f"  {name:38s} {value:g}" for name, value in result["layout"].items()]
    lines += [f"  {name:38s} {value:g}" for name, value in result["placement"].items()]
    outcome = result["outcome"]
    lines += ["", f"One step: {outcome['step_time_s']:.6g} s, {result['step_count']:,.0f} steps"]
    for name in BREAKDOWN:
        if name in outcome:
            lines.append(
                f"  {name:38s} {outcome[name]:.6g} s ({outcome[name] / outcome['step_time_s']:.1%} of the step)"
            )
    lines += [f"  {name:38s} {value:.6g}" for name, value in outcome.items() if name not in BREAKDOWN]
    return "\n".join([*lines, ""])


def main(argv: list[str]) -> int:
    """Run `flopscape explain [--scenario ID] [--json] [--config-dir DIR] [overrides]`."""
    parser = argparse.ArgumentParser(prog="flopscape explain", description="One scenario's best layout, taken apart.")
    parser.add_argument("--scenario", type=int, default=0, help="scenario_id within the study; 0 if left out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--config-dir", type=Path, help="a further folder with hardware/, model/, topology/ ...")
    parser.add_argument("overrides", nargs="*", help="Hydra overrides, as for sweep")
    options = parser.parse_args(argv)
    grid = build_grid(compose_study(options.overrides, options.config_dir))
    result = explain(grid, options.scenario)
    sys.stdout.write(
        json.dumps(result, indent=1, allow_nan=False, default=str) + "\n" if options.json else as_text(result)
    )
    return 0
