"""What a person can change in a configuration: each number with unit, meaning, the entry's value and its source."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from pipeline.app.entries import Entry, chip, entry, is_named_model, topology
from pipeline.app.field_texts import FAMILY, MAIN_HARDWARE, RUN, SITE_DEFAULTS, SITES
from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.catalogue_schema import Chip, ModelShape, NetworkLevelSpec, number_keys
from pipeline.economics import EconomicSettings
from pipeline.explain_inputs import unit_and_meaning
from pipeline.families import BATCH_RULES

GROUPS = ("hardware", "topology", "model", "physics", "economics")
LEVEL_KEYS = ("group_ranks", "one_way_byte_per_s", "latency_s", "oversubscription_ratio", "distance_m")


@dataclass(frozen=True, kw_only=True)
class Field:
    """One input of a configuration; `default` is what holds while the field is empty."""

    name: str  # group.key, network.LEVEL.key, sites.key or run.key
    unit: str
    meaning: str
    default: float | str | None
    source: str
    low: float = -math.inf
    high: float = math.inf
    is_main: bool = True
    is_number: bool = True
    among: tuple[str, ...] = ()  # words that a text may be; () = a date

    @property
    def label(self) -> str:
        """The key in words, without its unit; a level's keys begin with the level."""
        key = self.name.rsplit(".", 1)[1]
        for ending in ("_byte_per_s", "_flop_per_s", "_byte", "_token", "_usd", "_w", "_s", "_m", "_mm2", "_nm", "_hz"):
            if key.endswith(ending) and key != ending[1:]:
                key = key.removesuffix(ending)
                break
        return key.replace("_", " ")


def _source_text(sources: Mapping[str, Any], key: str) -> str:
    record = sources.get(key) or sources.get("all") or {}
    given = record if isinstance(record, Mapping) else vars(record)
    if not given:
        return "no source: the project's default"
    printed = f', printed "{given["as_printed"]}"' if given.get("as_printed") else ""
    return f"{given.get('kind', '')}: {given.get('ref', '')}, {given.get('where', '')}{printed}"


def _schema_fields(group: str, schema: type, given: Entry, main: tuple[str, ...], keys: list[str]) -> list[Field]:
    declared = {each.name: each.metadata for each in fields(schema)}
    return [
        Field(
            name=f"{group}.{key}",
            unit=declared[key]["unit"],
            meaning=declared[key]["meaning"],
            default=given.get(key),
            source=_source_text(given.get("sources") or {}, key),
            low=declared[key]["low"],
            high=declared[key]["high"],
            is_main=key in main,
        )
        for key in keys
    ]


def hardware_fields(name: str, precision: str) -> list[Field]:
    """Return the numbers of a chip; the peak at the chosen precision is among the main ones."""
    from pipeline.catalogue import resolved_precision

    peak = f"peak_dense_{resolved_precision(chip(name), precision)}_flop_per_s"
    main = (peak, *MAIN_HARDWARE)
    keys = sorted(number_keys(Chip), key=lambda key: main.index(key) if key in main else len(main))
    if chip(name).network_levels:
        keys = [key for key in keys if not key.startswith(("scale_up", "scale_out"))]
    return _schema_fields("hardware", Chip, entry("hardware", name), main, keys)


def network_specs(hardware: str, network: str) -> tuple[NetworkLevelSpec, ...]:
    """Return the levels that a chip on a network has, before anything is changed."""
    own = chip(hardware).network_levels
    return own if network == "vendor" and own else topology(network).levels


def network_level_fields(hardware: str, network: str) -> list[Field]:
    """Return the numbers of each network level, and of sites above them."""
    found = []
    specs = network_specs(hardware, network)
    declared = {each.name: each.metadata for each in fields(NetworkLevelSpec)}
    for level, spec in enumerate(specs):
        for key in LEVEL_KEYS:
            if key == "group_ranks" and level == len(specs) - 1:
                continue
            source = _source_text(topology(network).sources, f"levels[{level}].{key}")
            if getattr(spec, key) is None and spec.takes_from:
                source = f"the chip's {spec.takes_from}"
            found.append(
                Field(
                    name=f"network.{level}.{key}",
                    unit=declared[key]["unit"],
                    meaning=f"level {level} ({spec.name or spec.takes_from or 'network'}): {declared[key]['meaning']}",
                    default=_level_value(hardware, spec, key),
                    source=source,
                    low=declared[key]["low"],
                    high=declared[key]["high"],
                    is_main=key in ("group_ranks", "one_way_byte_per_s"),
                )
            )
    return found


def _level_value(hardware: str, spec: NetworkLevelSpec, key: str) -> float | None:
    own = getattr(spec, key)
    if own is None and spec.takes_from:
        chip_key = "ranks" if key == "group_ranks" else key
        return getattr(chip(hardware), f"{spec.takes_from}_{chip_key}", None)
    return own


def site_fields() -> list[Field]:
    """Return the numbers that describe several sites."""
    return [
        Field(name=f"sites.{key}", unit=unit, meaning=meaning, default=SITE_DEFAULTS[key], source="", low=0.0)
        for key, (unit, meaning) in SITES.items()
    ]


def model_fields(name: str) -> list[Field]:
    """Return the rules of a family, or the shape of a named model."""
    given = entry("model", name)
    if is_named_model(name):
        keys = [key for key in number_keys(ModelShape) if given.get(key) is not None]
        return _schema_fields("model", ModelShape, given, ("layer_count", "d_model", "sequence_token"), keys)
    rule = Field(
        name="model.batch_rule",
        unit="word",
        meaning=f"how the batch follows from compute: {', '.join(BATCH_RULES)}",
        default=given.get("batch_rule"),
        source=_source_text(given.get("sources") or {}, "batch_rule"),
        is_number=False,
        among=BATCH_RULES,
    )
    numbers = [
        Field(
            name=f"model.{key}",
            unit=unit,
            meaning=meaning,
            default=given.get(key),
            source=_source_text(given.get("sources") or {}, key),
            low=0.0,
            is_main=key in ("dataset_token_per_parameter", "depth_coefficient", "batch_reference_token"),
        )
        for key, (unit, meaning) in FAMILY.items()
    ]
    return [*numbers, rule]


def run_fields() -> list[Field]:
    """Return the settings of the run."""
    limit_s = read_yaml(CONF_DIRECTORY / "config.yaml")["run"]["limit_s"]
    return [
        Field(
            name=f"run.{key}",
            unit=unit,
            meaning=meaning,
            default=limit_s if key == "limit_s" else None,
            source="conf/config.yaml",
            low=0.0,
            is_main=key in ("limit_s", "accelerator_count"),
        )
        for key, (unit, meaning) in RUN.items()
    ]


def physics_fields(name: str) -> list[Field]:
    """Return the constants of the cost model."""
    given = entry("physics", name)
    found = []
    for key, value in given.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            unit, meaning = unit_and_meaning(key)
            source = _source_text(given.get("sources") or {}, key)
            text = meaning or key.replace("_", " ")
            found.append(
                Field(
                    name=f"physics.{key}", unit=unit, meaning=text, default=value, source=source, low=0.0, is_main=False
                )
            )
    return found


def economics_fields(name: str) -> list[Field]:
    """Return the date and the habits by which runs are priced."""
    given = entry("economics", name)
    day = Field(
        name="economics.price_date",
        unit="yyyy-mm-dd",
        meaning="release (each chip at the price of its release), or one date for all",
        default=given.get("price_date"),
        source=f"conf/economics/{name}.yaml",
        is_number=False,
    )
    numbers = _schema_fields("economics", EconomicSettings, given, (), number_keys(EconomicSettings))
    return [day, *numbers]


def all_fields(choices: Mapping[str, str]) -> dict[str, Field]:
    """Return every field of a configuration with these choices, by name."""
    hardware, network = choices["hardware"], choices["topology"]
    found = [
        *hardware_fields(hardware, choices.get("precision", "auto")),
        *network_level_fields(hardware, network),
        *site_fields(),
        *model_fields(choices["model"]),
        *run_fields(),
        *physics_fields(choices["physics"]),
        *economics_fields(choices["economics"]),
    ]
    return {each.name: each for each in found}
