"""A study as plain, checked data: every section, key and value of a composed configuration is looked at here.

Every mistake a person can make is one line that names file, key, value, rule and remedy (`UserError`).
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline import execution
from pipeline.axes import read_axis
from pipeline.economics import RELEASE
from pipeline.errors import UserError, closest, short
from pipeline.prices import read_day
from pipeline.studies import check_study
from pipeline.variants import read_variants

GROUPS = ("hardware", "model", "topology", "physics")
SECTIONS = {
    "study": ("name", "question", "headline", "sentence", "tables", "figures"),
    "run": (
        "limit_s",
        "precision",
        "accelerator_count",
        "training_flop_minimum",
        "training_flop_maximum",
        "training_flop_near",
        "dataset_token",
        "global_batch_token",
        "sequence_token",
    ),
}
PLAIN = ("price_dates", "variants", "keep", "unit_scenarios", "results", "resume", "replace", *execution.KEYS)
COUNT_LIMIT = 1 << 44


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """How long a run may take, at which precision, on how many accelerators."""

    limit_s: float
    precision: str
    accelerator_count: int  # 0 = the smallest cluster that ends in time
    training_flop_minimum: float
    training_flop_maximum: float
    training_flop_near: tuple[float, ...]  # of a family's sizes the first at or above each; () = all
    dataset_token: float  # 0 = what the model's entry or rule says; so too below
    global_batch_token: float
    sequence_token: float


@dataclass(frozen=True, kw_only=True)
class StudyConfig:
    """A sweep as composed: entries by id, still as plain mappings, and checked settings."""

    name: str
    question: str
    headline: str
    entries: Mapping[str, Mapping[str, Mapping[str, Any]]]  # group -> id -> entry
    economics: str
    economics_entry: Mapping[str, Any]
    run: RunSettings
    axes: tuple[tuple[str, NDArray[np.float64]], ...]
    price_dates: tuple[str, ...]  # () = the economics entry's own
    variants: tuple[tuple[str, Mapping[str, float | str]], ...] | str
    keep: str
    unit_scenarios: int  # 0 = by what a scenario has of rows and candidates
    results: str
    resume: bool
    replace: bool
    execution: execution.Execution
    as_composed: Mapping[str, Any] = field(repr=False)


def _refuse_unknown(section: str, mapping: object, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(mapping, Mapping):
        raise UserError(f"config.yaml: {section} = {mapping!r}: must be a mapping; see conf/config.yaml")
    for key in mapping:
        if key not in known:
            close = closest(str(key), known, limit=1)
            remedy = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)}"
            raise UserError(f"config.yaml: {section}.{key} = {short(mapping[key])}: unknown key; {remedy}")
    return mapping


def _number(section: str, key: str, value: object, *, above: float, default: float, limit: float = math.inf) -> float:
    """Return a number above a bound, or refuse it in one line."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"config.yaml: {section}{key} = {value!r}: must be a number; write it in base units")
    if not above < value <= limit:
        rule = f"must be > {above:g}" + (f" and <= {limit:g}" if limit < math.inf else "")
        raise UserError(f"config.yaml: {section}{key} = {value!r}: {rule}; correct the value")
    return float(value)


def read_study(plain: Mapping[str, Any], economics: str) -> StudyConfig:
    """Return a composed configuration as checked data."""
    _refuse_unknown("top level", plain, (*GROUPS, *SECTIONS, *PLAIN, "axes", "economics", "policy"))
    study = _refuse_unknown("study", plain.get("study", {}), SECTIONS["study"])
    check_study(study, f"study/{study.get('name', 'custom')}.yaml")
    entries = {group: _entries(group, plain.get(group)) for group in GROUPS}
    axes = tuple(read_axis(str(name), spec) for name, spec in (plain.get("axes") or {}).items())
    name = str(study.get("name", "custom"))
    if not isinstance(plain.get("economics"), Mapping):
        raise UserError(
            f"config.yaml: economics = {plain.get('economics')!r}: must be one entry; choose economics=own_time"
        )
    return StudyConfig(
        name=name,
        economics=economics,
        economics_entry=plain["economics"],
        question=str(study.get("question", "")),
        headline=str(study.get("headline", "")),
        entries=entries,
        run=_run_settings(_refuse_unknown("run", plain.get("run", {}), SECTIONS["run"])),
        axes=axes,
        price_dates=_price_dates(plain.get("price_dates")),
        variants=read_variants(plain.get("variants")),
        keep=_keep(plain.get("keep")),
        unit_scenarios=int(_number("", "unit_scenarios", plain.get("unit_scenarios"), above=0, default=0)),
        results=str(plain.get("results") or f"outputs/{name}"),
        resume=bool(plain.get("resume")),
        replace=bool(plain.get("replace")),
        execution=execution.read_execution(plain),
        as_composed=plain,
    )


def _entries(group: str, mapping: object) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(mapping, Mapping) or not mapping:
        raise UserError(f"config.yaml: {group} = {mapping!r}: the sweep is empty; choose at least one {group}")
    for key, entry in mapping.items():
        if not isinstance(entry, Mapping):
            raise UserError(
                f"{group}/{key}.yaml: {key} = {entry!r}: must be an entry; "
                f"begin the file with the line `# @package {group}.{key}`"
            )
    return mapping


def _price_dates(given: object) -> tuple[str, ...]:
    """Return dates as texts, each once: `release` or yyyy, yyyy-mm, yyyy-mm-dd."""
    dates = [] if given is None else [given] if isinstance(given, str | int) else given
    if not isinstance(dates, list | tuple):
        raise UserError(f"config.yaml: price_dates = {given!r}: must be a list of dates; as in [release, 2025-07-01]")
    texts = tuple(str(each) for each in dates)
    for each in texts:
        if each != RELEASE:
            read_day(each, "config.yaml: price_dates")
    if len(set(texts)) < len(texts):
        raise UserError(f"config.yaml: price_dates = {list(texts)}: a date stands twice; name each once")
    return texts


def _sizes(given: object) -> tuple[float, ...]:
    values = [] if given is None else [given] if isinstance(given, int | float) else given
    if not isinstance(values, list | tuple):
        raise UserError(f"config.yaml: run.training_flop_near = {given!r}: must be numbers; as in [2.1e+25, 1.0e+27]")
    return tuple(_number("run.", "training_flop_near", each, above=0, default=0) for each in values)


def _run_settings(run: Mapping[str, Any]) -> RunSettings:
    precision = run.get("precision", "auto")
    count = _number("run.", "accelerator_count", run.get("accelerator_count"), above=0, default=0, limit=COUNT_LIMIT)
    if count != int(count):
        raise UserError(f"config.yaml: run.accelerator_count = {count!r}: must be a whole number; round it")
    lowest = _number("run.", "training_flop_minimum", run.get("training_flop_minimum"), above=0, default=0)
    highest = run.get("training_flop_maximum")
    return RunSettings(
        limit_s=_number("run.", "limit_s", run.get("limit_s"), above=0, default=7.885e6),
        precision=str(precision),
        accelerator_count=int(count),
        training_flop_minimum=lowest,
        training_flop_maximum=_number("run.", "training_flop_maximum", highest, above=lowest, default=math.inf),
        training_flop_near=_sizes(run.get("training_flop_near")),
        **{
            name: _number("run.", name, run.get(name), above=0, default=0.0)
            for name in ("dataset_token", "global_batch_token", "sequence_token")
        },
    )


def _keep(keep: object) -> str:
    text = str(keep or "best")
    if not re.fullmatch(r"best|all|pareto|top:[1-9]\d*", text):
        raise UserError(f"config.yaml: keep = {keep!r}: must be best, top:K, pareto or all; choose one")
    return text
