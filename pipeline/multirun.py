"""Hydra's sweep syntax without a job a point: group choices become one list choice, numbers become axes.

`-m hardware=a,b topology=glob(*) run.limit_s=1e6,2e6 keep=best,all` is two runs (keep is neither a group of which a run
takes several, nor an axis), each of which sweeps both chips, all networks and both limits as arrays.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override
from hydra.errors import HydraException

from pipeline.errors import UserError

LIST_GROUPS = ("hardware", "model", "topology", "physics")
AXIS_OF = {
    "run.limit_s": "run_limit_s",
    "run.accelerator_count": "accelerator_count",
    "run.dataset_token": "dataset_token",
    "run.global_batch_token": "global_batch_token",
    "run.sequence_token": "sequence_token",
}
SHARD = "shard"
Options = Callable[[str], Sequence[str]]


def lower(arguments: Sequence[str], options: Options) -> list[list[str]]:
    """Return the runs that the arguments mean, each as plain overrides; `options` lists a group's choices."""
    try:
        parsed = OverridesParser.create().parse_overrides(overrides=list(arguments))
    except HydraException as error:
        text = " ".join(str(error).split())[:300]
        raise UserError(f"command line: {' '.join(arguments)}: {text}; see `flopscape sweep --help`") from error
    dimensions = [_choices(override, options) for override in parsed]
    return [list(run) for run in itertools.product(*dimensions)]


def _choices(override: Override, options: Options) -> list[str]:
    """Return what one argument stands for: one override, or one for each run."""
    key = override.get_key_element().lstrip("+~")
    line = str(override.input_line)
    if not override.is_sweep_override():
        return [_with_prefix(line)]
    values = _values(override, key, options)
    if key in LIST_GROUPS and not any(value.startswith("[") for value in values):
        return [f"{key}=[{','.join(values)}]"]
    axis = AXIS_OF.get(key, key.removeprefix("axes.") if key.startswith("axes.") else "")
    if axis and all(_is_number(value) for value in values):
        return [f"++axes.{axis}=[{','.join(values)}]"]
    return [_with_prefix(f"{override.get_key_element()}={value}") for value in values]


def _with_prefix(line: str) -> str:
    return f"++{line}" if line.startswith("axes.") else line


def _values(override: Override, key: str, options: Options) -> list[str]:
    value = override.value()
    if isinstance(value, Glob):
        names = value.filter(list(options(key)))
        if not names:
            raise UserError(f"command line: {override.input_line}: no option of {key} is named so; see conf/{key}/")
        return sorted(names)
    texts = list(override.sweep_string_iterator())
    if not texts:
        raise UserError(f"command line: {override.input_line}: no value at all; give at least one")
    return texts


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def folder_of(run: Sequence[str], runs: Sequence[Sequence[str]]) -> str:
    """Return a name for one of several runs from what only it has; shards of one run have the same."""
    common = set(runs[0]).intersection(*map(set, runs[1:]))
    own = [each.lstrip("+") for each in run if each not in common and not each.startswith(f"{SHARD}=")]
    return ",".join(own).replace("/", "_").replace(" ", "")


def group_options(config_directory: Path | None) -> Options:
    """Return the function that lists a group's options, in conf/ and in the user's own folder."""
    from pipeline.catalogue import CONF_DIRECTORY

    folders = [CONF_DIRECTORY, *([config_directory] if config_directory else [])]
    return lambda group: sorted({each.stem for folder in folders for each in (folder / group).glob("*.yaml")})


def run_many(overrides: list[str], config_directory: Path | None, *, dry_run: bool) -> int:
    """Carry out `flopscape sweep -m`: each run here, one after another; with a Hydra launcher, by that."""
    if any(each.startswith(("hydra/", "hydra.")) for each in overrides):
        from pipeline.hydra_app import launch

        return launch(overrides, config_directory)
    from pipeline.config import compose_study
    from pipeline.sweep import sweep

    runs = lower(overrides, group_options(config_directory))
    for run in runs:
        study = compose_study(run, config_directory)
        sweep(placed(study, run, runs), dry_run=dry_run)
    return 0


def placed(study: Any, run: Sequence[str], runs: Sequence[Sequence[str]]) -> Any:
    """Return the study with a results folder of its own, if there are several runs."""
    name = folder_of(run, runs)
    return replace(study, results=f"{study.results}/{name}") if name else study
