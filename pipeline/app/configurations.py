"""A configuration of the page: from what stands in its fields to the overrides and the YAML that a sweep takes."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omegaconf import OmegaConf

from pipeline.app import entries
from pipeline.app import fields as inputs
from pipeline.app.field_texts import SITE_DEFAULTS
from pipeline.app.fields import GROUPS, Field
from pipeline.catalogue_schema import PRECISION_WORD_BYTE
from pipeline.errors import UserError
from pipeline.prices import read_day

NAME_LIMIT, TEXT_LIMIT, CONFIGURATION_LIMIT = 60, 40, 12
NAME_RULE = re.compile(r"[\w .,:;()+/%×#'&@-]*", re.UNICODE)
DEFAULTS = {
    "hardware": "h100_sxm5",
    "topology": "vendor",
    "model": "dense",
    "physics": "epoch2024",
    "economics": "own_time",
    "precision": "auto",
}
FIRST_VISIT: tuple[dict[str, Any], ...] = (
    {"name": "GTX 580 (2010)", "hardware": "gtx580", "topology": "gtx580_2012_b"},
    {"name": "H100 (2022)", "hardware": "h100_sxm5"},
)
PRECISIONS = ("auto", *PRECISION_WORD_BYTE)
NAMED_COUNTS = {"log2": [8, 131072]}  # cluster sizes that a named model is tried on
Change = tuple[tuple[str, ...], Any]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What stands in one card, checked for form; `numbers` are the fields that are not empty."""

    id: str
    name: str
    choices: Mapping[str, str]
    numbers: Mapping[str, float | str]
    errors: Mapping[str, str]  # by field name; "" = the configuration as a whole

    @property
    def slug(self) -> str:
        """The name as a file and study may be called."""
        return re.sub(r"[^a-z0-9]+", "_", self.name.lower()).strip("_")[:40] or "configuration"


def read_number(text: str, field: Field) -> float:
    """Return the number that a person wrote; raises ValueError with the rule it breaks."""
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"longer than {TEXT_LIMIT} characters; write a number such as 3.35e12")
    try:
        value = float(text.replace(",", "").replace("_", ""))
    except ValueError as error:
        raise ValueError("not a number; write one in base units, such as 3.35e12") from error
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    if not field.low <= value <= field.high:
        rule = f"must be >= {field.low:g}" if value < field.low else f"must be <= {field.high:g}"
        raise ValueError(f"{rule} {field.unit}")
    return value


def _text(text: str, among: tuple[str, ...]) -> str:
    if len(text) > TEXT_LIMIT:
        raise ValueError(f"longer than {TEXT_LIMIT} characters")
    if among:
        if text not in among:
            raise ValueError(f"must be one of {', '.join(among)}")
    elif text != "release":
        try:
            read_day(text, "price date")
        except UserError as error:
            raise ValueError("must be release or a date such as 2025-07-01") from error
    return text


def read_name(raw: object, position: int) -> tuple[str, str]:
    """Return (name, error); a name that is refused is replaced by the configuration's number."""
    text = " ".join(str(raw or "").split())
    fallback = f"Configuration {position + 1}"
    if len(text) > NAME_LIMIT:
        return fallback, f"longer than {NAME_LIMIT} characters"
    if not NAME_RULE.fullmatch(text):
        return fallback, "may hold letters, digits, spaces and . , : ; ( ) + - / % # ' & @"
    return text or fallback, ""


def read_configuration(raw: object, position: int = 0) -> Configuration:
    """Return a configuration as the page sent it, with an error for each field that is wrong; never raises."""
    given: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    errors: dict[str, str] = {}
    name, error = read_name(given.get("name"), position)
    if error:
        errors["name"] = error
    choices = {}
    for group, default in DEFAULTS.items():
        choice = str(given.get(group) or default)
        known = PRECISIONS if group == "precision" else entries.names(group)
        if choice not in known:
            errors[group] = f"{choice[:TEXT_LIMIT]!r} is not in the catalogue"
            choice = default
        choices[group] = choice
    numbers = _numbers(given.get("numbers"), choices, errors)
    identity = re.sub(r"\W", "", str(given.get("id") or ""))[:20] or f"c{position + 1}"
    return Configuration(id=identity, name=name, choices=choices, numbers=numbers, errors=errors)


def _numbers(given: object, choices: Mapping[str, str], errors: dict[str, str]) -> dict[str, float | str]:
    known = inputs.all_fields(choices)
    numbers: dict[str, float | str] = {}
    for name, text in (given if isinstance(given, Mapping) else {}).items():
        text = str("" if text is None else text).strip()
        if not text or name not in known:  # a field of an entry that is no longer chosen
            continue
        try:
            numbers[str(name)] = (
                read_number(text, known[name]) if known[name].is_number else _text(text, known[name].among)
            )
        except ValueError as error:
            errors[str(name)] = str(error)
    return numbers


def read_page(raw: object) -> list[Configuration]:
    """Return the page's configurations, at most CONFIGURATION_LIMIT."""
    given = raw if isinstance(raw, Sequence) and not isinstance(raw, str | bytes) else []
    return [read_configuration(each, position) for position, each in enumerate(given[:CONFIGURATION_LIMIT])]


def changes(configuration: Configuration) -> list[Change]:
    """Return what a configuration changes of its entries, as (path, value); raises UserError for impossible sites."""
    found: list[Change] = []
    for name, value in configuration.numbers.items():
        group, _, key = name.partition(".")
        if group in GROUPS and group != "economics":
            found.append(((group, configuration.choices[group], key), value))
        elif group in ("run", "economics"):
            found.append(((group, key), value))
    if configuration.choices["precision"] != "auto":
        found.append((("run", "precision"), configuration.choices["precision"]))
    levels = _levels(configuration)
    if levels:
        hardware, network = configuration.choices["hardware"], configuration.choices["topology"]
        own = network == "vendor" and entries.chip(hardware).network_levels
        path = ("hardware", hardware, "network_levels") if own else ("topology", network, "levels")
        found.append((path, levels))
    if entries.is_named_model(configuration.choices["model"]) and "run.accelerator_count" not in configuration.numbers:
        found.append((("axes", "accelerator_count"), NAMED_COUNTS))
    return found


def _levels(configuration: Configuration) -> list[dict[str, Any]]:
    """Return the network's levels with the changed numbers and the sites above them; empty if nothing is changed."""
    hardware, network = configuration.choices["hardware"], configuration.choices["topology"]
    specs = inputs.network_specs(hardware, network)
    sites = "sites.site_ranks" in configuration.numbers
    if not sites and not any(name.startswith("network.") for name in configuration.numbers):
        return []
    levels: list[dict[str, Any]] = []
    for level, spec in enumerate(specs):
        values: dict[str, Any] = {"from": spec.takes_from} if spec.takes_from else {}
        for key in inputs.LEVEL_KEYS:
            value = configuration.numbers.get(f"network.{level}.{key}", getattr(spec, key))
            if value is not None:
                values[key] = value
        levels.append(values)
    if sites:
        _add_sites(levels, configuration)
    return levels


def _add_sites(levels: list[dict[str, Any]], configuration: Configuration) -> None:
    network = configuration.choices["topology"]
    below = 1.0
    for level, values in enumerate(levels[:-1]):
        default = inputs.all_fields(configuration.choices)[f"network.{level}.group_ranks"].default
        below *= float(values.get("group_ranks") or default or 1.0)
    ranks = float(configuration.numbers["sites.site_ranks"])
    if ranks < below or len(levels) >= 4:
        rule = f"must be >= {below:g}, the accelerators of one group on {network}"
        raise UserError(f"sites.site_ranks = {ranks:g}: {rule if len(levels) < 4 else 'the network has four levels'}")
    levels[-1]["group_ranks"] = float(math.floor(ranks / below))
    keys = ("one_way_byte_per_s", "latency_s", "distance_m")
    levels.append({key: configuration.numbers.get(f"sites.{key}", SITE_DEFAULTS[key]) for key in keys})


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(map(_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_literal(each)}" for key, each in value.items()) + "}"
    return f"'{value}'" if isinstance(value, str) else repr(value)


def preset_overrides(configuration: Configuration) -> tuple[str, ...]:
    """Return the overrides that choose the configuration's entries, before any number is changed."""
    chosen = [f"{group}=[{configuration.choices[group]}]" for group in ("hardware", "topology")]
    chosen += [f"{group}={configuration.choices[group]}" for group in ("model", "physics", "economics")]
    return (*chosen, "price_dates=null")


def overrides(configuration: Configuration) -> tuple[str, ...]:
    """Return the overrides that make `flopscape sweep` run this configuration."""
    changed = (f"{_prefix(path)}{'.'.join(path)}={_literal(value)}" for path, value in changes(configuration))
    return (*preset_overrides(configuration), *changed)


def set_changes(content: dict[str, Any], configuration: Configuration) -> None:
    """Set in nested mappings what a configuration changes of its entries."""
    for path, value in changes(configuration):
        place = content
        for key in path[:-1]:
            place = place.setdefault(key, {})
        place[path[-1]] = value


def _prefix(path: tuple[str, ...]) -> str:
    """Return ++ for keys that the entry leaves out."""
    if path[0] not in GROUPS or path[0] == "economics":
        return ""
    return "" if path[2] in entries.entry(path[0], path[1]) else "++"


def study_yaml(configuration: Configuration) -> str:
    """Return a study file that `flopscape sweep --config-dir DIR study=NAME` takes from DIR/study/NAME.yaml."""
    choices, slug = configuration.choices, configuration.slug
    content: dict[str, Any] = {
        "defaults": [
            {"override /hardware": [choices["hardware"]]},
            {"override /topology": [choices["topology"]]},
            *({f"override /{group}": choices[group]} for group in ("model", "physics", "economics")),
        ],
        "study": {"name": slug, "question": f"What does {configuration.name} do?", "headline": ""},
    }
    set_changes(content, configuration)
    head = f"# @package _global_\n# Command:  save as DIR/study/{slug}.yaml, then flopscape sweep "
    return head + f"--config-dir DIR study={slug}\n" + OmegaConf.to_yaml(OmegaConf.create(content))
