"""One published run taken apart: its inputs, what was guessed, and where every millisecond of its step goes."""

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from models.evaluate_layouts import transformer_outcomes
from models.packing import TRANSFORMER_BUNDLES, field_names, pack, transformer_names
from models.transformer_outcome import TransformerOutcome
from pipeline.calibrate import load_preset
from pipeline.errors import UserError
from pipeline.runs import Runs
from pipeline.runs_stacks import STACKS
from pipeline.validate_scores import PARTS

ABOUT = ("run_id", "family", "source", "framework", "chip", "model", "precision", "accelerator_count", "status")
MILLISECOND_PER_S = 1e3


def explanation(runs: Runs, run_id: str, file: str) -> dict[str, Any]:
    """Return one run as plain data: inputs, guesses, measured and predicted, each part. UserError if there is none."""
    ids = runs.about["run_id"].to_list()
    if run_id not in ids:
        close = ", ".join(difflib.get_close_matches(run_id, ids)) or "one of column run_id"
        raise UserError(f"{file}: run {run_id!r}: no such run that the model can take; try {close}")
    if ids.count(run_id) > 1:
        raise UserError(f"{file}: run {run_id!r}: stands {ids.count(run_id)} times in column run_id; give each its own")
    index = ids.index(run_id)
    about = runs.about.row(index, named=True)
    one = {name: values[index : index + 1] for name, values in runs.columns.items()}
    outcome = transformer_outcomes(pack(one, transformer_names()), load_preset().constants_bundle)
    outcome = {name: float(values[0]) for name, values in outcome.items()}
    parts = step_parts(outcome)
    stack = next(each for each in STACKS if each.id == about["stack"])
    return {
        "run": {name: about[name] for name in ABOUT},
        "stack": {"id": stack.id, "why": stack.why},
        "guessed_inputs": list(about["flags"]),
        "set_aside": about["aside"],
        "inputs": {
            cls.__name__: {name: float(one[name][0]) for name in field_names(cls)} for cls in TRANSFORMER_BUNDLES
        },
        "measured_step_s": about["measured_step_s"],
        "predicted_step_s": outcome["step_time_s"],
        "step_parts": parts,
        "parts_sum_s": sum(each["time_s"] for each in parts),
        "measured_byte": about["measured_byte"],
        "capacity_byte": about["capacity_byte"],
        "memory": {name: outcome[name] for name in outcome if name.endswith("_byte")},
        "model_flop_utilisation_fraction": outcome["model_flop_utilisation_fraction"],
        "hardware_flop_utilisation_fraction": outcome["hardware_flop_utilisation_fraction"],
    }


def step_parts(outcome: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return each part of a step: its time, its share of the step, what it is."""
    meanings = {each.name: each.metadata["meaning"] for each in fields(TransformerOutcome)}
    whole_s = outcome["step_time_s"]
    return [
        {"name": name, "time_s": outcome[name], "step_fraction": outcome[name] / whole_s, "meaning": meanings[name]}
        for name in PARTS
    ]


def explanation_text(told: Mapping[str, Any]) -> str:
    """Return the explanation as a page of text."""
    run, step_s, measured = told["run"], told["predicted_step_s"], told["measured_step_s"]
    lines = [" ".join(f"{name}={value}" for name, value in run.items()), ""]
    lines.append(f"Stack {told['stack']['id']}: {told['stack']['why']}")
    lines.append(f"Guessed inputs: {', '.join(told['guessed_inputs']) or 'none'}")
    if told["set_aside"]:
        lines.append(f"Set aside: {told['set_aside']}")
    for name, values in told["inputs"].items():
        lines += ["", name] + [f"  {key:36s} {value:.6g}" for key, value in values.items()]
    compared = (
        f", measured {measured * MILLISECOND_PER_S:,.1f} ms, error {step_s / measured - 1:+.1%}" if measured else ""
    )
    lines += ["", f"One step: {step_s * MILLISECOND_PER_S:,.1f} ms{compared}"]
    for part in sorted(told["step_parts"], key=lambda each: -each["time_s"]):
        time_ms, share = part["time_s"] * MILLISECOND_PER_S, part["step_fraction"]
        lines.append(f"  {part['name']:24s} {time_ms:14,.2f} ms {share:7.1%}  {part['meaning']}")
    lines.append(f"  {'sum':24s} {told['parts_sum_s'] * MILLISECOND_PER_S:14,.2f} ms")
    byte, measured_byte = told["memory"]["memory_byte"], told["measured_byte"]
    compared = (
        f", measured {measured_byte / 1e9:.2f} GB, error {byte / measured_byte - 1:+.1%}" if measured_byte else ""
    )
    lines += ["", f"Peak memory: {byte / 1e9:.2f} GB of {told['capacity_byte'] / 1e9:.2f} GB{compared}"]
    lines += [f"  {name:24s} {value / 1e9:14.3f} GB" for name, value in told["memory"].items() if name != "memory_byte"]
    for name in ("model_flop_utilisation_fraction", "hardware_flop_utilisation_fraction"):
        lines.append(f"{name}: {told[name]:.1%}")
    return "\n".join([*lines, ""])
