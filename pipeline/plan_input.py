"""What a plan is asked: short words for settings, a layout by hand, a model from the catalogue or its config.json."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.catalogue_import import import_config, imported_model, read_config
from pipeline.config import compose_study
from pipeline.errors import UserError, closest
from pipeline.study_config import GROUPS, PLAIN, StudyConfig

SHORT = {  # what people type -> the setting that it is
    "accelerators": "axes.accelerator_count",
    "tokens": "run.dataset_token",
    "batch": "run.global_batch_token",
    "sequence": "run.sequence_token",
    "precision": "run.precision",
}
KNOWN = (*SHORT, *GROUPS, *PLAIN, "economics")
DEGREES = ("tensor_ranks", "context_ranks", "pipeline_ranks", "expert_ranks", "data_ranks")
LAYOUT = (
    *DEGREES,
    "context_all_to_all_ranks",
    "microbatch_sequence",
    "microbatch_count",
    "interleave_count",
    "is_zero_bubble",
    "sharding_stage",
    "recompute_layer_fraction",
)
PLACEHOLDER = "llama3_8b"  # stands in for a model read from a config.json while the rest is composed
LONG_SEQUENCE_TOKEN = 8192  # a config.json states what a model can read, not what it is trained on


def read_arguments(arguments: Sequence[str]) -> tuple[list[str], dict[str, float], Path | None]:
    """Return (overrides of the configuration, the hand-given layout, a config.json) of a plan's arguments."""
    overrides, layout, config = ["study=plan", "keep=all"], {}, None
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise UserError(f"command line: {argument}: must be name=value; see `flopscape plan --help`")
        if name.startswith("layout."):
            layout[name.removeprefix("layout.")] = _layout_value(name, value)
        elif name == "model" and value.endswith(".json"):
            config = Path(value)
            overrides.append(f"model={PLACEHOLDER}")
        elif name.isidentifier() and name not in KNOWN and (close := closest(name, SHORT, limit=1)):
            raise UserError(f"command line: {name}: unknown key; did you mean {close[0]}?")
        else:
            overrides.append(f"{SHORT.get(name, name)}={value}")
    if not any(each.partition("=")[0].removeprefix("+") == "axes.accelerator_count" for each in overrides):
        raise UserError("command line: plan: how many accelerators? give accelerators=512 or accelerators=[512,2048]")
    return overrides, layout, config


def _layout_value(name: str, value: str) -> float:
    if name.removeprefix("layout.") not in LAYOUT:
        raise UserError(f"command line: {name}: no such part of a layout; choose one of {', '.join(LAYOUT)}")
    try:
        return float(value)
    except ValueError as error:
        raise UserError(f"command line: {name} = {value}: must be a number; as in {name}=8") from error


def compose_plan(overrides: Sequence[str], config: Path | None, config_directory: Path | None) -> StudyConfig:
    """Return the study of a plan, with the model of a config.json in place of the catalogue's."""
    study = compose_study(list(overrides), config_directory)
    if len(study.entries["physics"]) != 1:
        raise UserError("command line: plan: physics: a plan is made with one physics; choose physics=calibrated")
    if not all("software" in entry for entry in study.entries["physics"].values()):
        raise UserError("command line: plan: physics: a plan needs the calibrated kind; choose physics=calibrated")
    if len(study.entries["model"]) != 1:
        raise UserError(f"command line: plan: model = {', '.join(study.entries['model'])}: plan one model at a time")
    for name, entry in study.entries["model"].items():
        if entry.get("kind") == "family":
            raise UserError(
                f"command line: plan: model={name}: is a family; choose a named model, as model={PLACEHOLDER}"
            )
    if config is None:
        return study
    name = re.sub(r"\W+", "_", config.stem.lower()).strip("_") or "model"
    entry = import_config(read_config(config), str(config))
    if not study.run.sequence_token and entry.get("sequence_token", 0) > LONG_SEQUENCE_TOKEN:
        entry = {**entry, "sequence_token": float(LONG_SEQUENCE_TOKEN)}
    imported_model(entry, name, config.stem)
    source = {"all": {"ref": "huggingface_config", "where": str(config), "kind": "datasheet"}}
    whole = {"name": config.stem, **entry, "published": {}, "sources": source}
    return replace(study, entries={**study.entries, "model": {name: whole}})
