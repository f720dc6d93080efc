"""The glossary of result columns: unit, meaning, source and storage type of each, stated once.

The numbers' units and meanings are the field metadata of the bundles in `models/`; only the keys that the pipeline
adds are written here. The Parquet metadata, the README's table and the checks of the queries read it.
"""

import re
from dataclasses import dataclass, fields, replace
from typing import Literal

from models.effects.economics import Economics, RunCost
from models.effects.sites import LocalSteps, SiteOutcome
from models.outcome import Outcome
from models.point import Architecture, Hardware, Layout, NetworkLevel, Workload
from models.transformer_outcome import TransformerOutcome
from models.transformer_point import Accelerator, Links, Software, Transformer, TransformerLayout

ArrowType = Literal["uint64", "int64", "int32", "float64", "bool", "dictionary"]


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a results table. A dictionary column is text that repeats."""

    name: str
    unit: str
    meaning: str
    source: str
    arrow_type: ArrowType
    is_key: bool = False  # what people filter by: gets statistics in the Parquet file
    is_required: bool = False  # every row has a value: the Parquet file need not say which do


def _key(name: str, meaning: str, arrow_type: ArrowType = "dictionary", unit: str = "", source: str = "conf") -> Column:
    return replace(_value(name, unit, meaning, source, arrow_type, is_required=True), is_key=True)


def _value(
    name: str, unit: str, meaning: str, source: str, arrow_type: ArrowType = "float64", is_required: bool = False
) -> Column:
    return Column(name=name, unit=unit, meaning=meaning, source=source, arrow_type=arrow_type, is_required=is_required)


_KEYS = (
    _key("point_id", "scenario_id 2^32 + number of the layout within its scenario", "uint64", source="grid"),
    _key("scenario_id", "number of the scenario within its run", "uint64", source="grid"),
    _key(
        "series_id", "scenario_id of the first of the scenarios that differ in the model alone", "uint64", source="grid"
    ),
    _key("study", "study that the row belongs to"),
    _key("hardware", "accelerator: an entry of conf/hardware"),
    _key("topology", "network: an entry of conf/topology"),
    _key("model", "model or family of models: an entry of conf/model"),
    _key("physics", "cost model preset: an entry of conf/physics"),
    _key("economics", "prices and their assumptions: an entry of conf/economics"),
    _key("price_date", "day whose prices count: release (of the chip), or a date"),
    _key("variant", "named change of the scenario's numbers; as_is = none"),
    _key("policy", "export rule: an entry of conf/policy"),
    _key("precision", "number format of the matmuls, settled (never `auto`)"),
    _key("accelerator_count", "accelerators in the run", "int64", "1", "search"),
    _key("training_flop", "model FLOP of the whole run", "float64", "FLOP", "models.scaling"),
    _key("is_feasible", "some layout fits in memory and ends within the run limit", "bool", "0/1", "search"),
    _key("infeasible_reason", "empty if feasible, else no_layout, memory or time", source="search"),
    _key("bottleneck", "the largest part of the step time", source="models.step"),
)
_VALUES = (
    _value("parameter_count", "1", "parameters of the model", "models.scaling", is_required=True),
    _value("active_parameter_count", "1", "parameters that one token uses", "models.scaling"),
    _value("run_limit_s", "s", "time within which the run must end", "conf", is_required=True),
    _value("constant_dollar_ratio", "1", "dollars of the constant year for one of the price date", "pipeline.prices"),
    _value("site_link_one_way_byte_per_s", "B/s", "bandwidth between sites of each accelerator, one way", "catalogue"),
    _value("site_link_latency_s", "s", "time of the smallest message between sites", "catalogue"),
    _value("site_count", "1", "sites that the accelerators fill, each a group of the level below the top", "catalogue"),
    _value("run_time_s", "s", "time of the whole run", "models.run"),
    _value("candidate_count", "1", "layouts that the search looked at for this row", "search", "int64", True),
    _value("tensor_ranks", "1", "tensor-parallel degree: over d_model times over d_ff", "search", "int32", True),
)
_TRANSFORMER_VALUES = (
    _value("layout_rank", "1", "place of the layout among those kept of its scenario, 0 = best", "search", "int64"),
    _value("nearest_memory_byte", "B", "least memory that any layout needs", "search"),
    _value("recompute_layer_fraction", "1", "share of the layers whose forward pass is done again", "search"),
)
_TEXTS = (_value("schedule", "", "pipeline schedule: 1f1b (interleaved) or zero_bubble", "search", "dictionary"),)
_DEGREES = re.compile(r"(_count|_ranks)$")
"""Of a layout: 32 bits hold them, and their products (a whole cluster). Other products, such as d_model d_ff, no."""
_INTEGERS = re.compile(r"(_count|_ranks|_token|^d_model|^d_ff|^shard_\w+|^rank_\w+)$")
_LEVELS = 4


def _bundle(
    cls: type, source: str, prefix: str = "", integers: bool = False, is_required: bool = False
) -> list[Column]:
    """Return the columns of a bundle's numbers, from their field metadata. Whole numbers are never missing."""
    columns = []
    for each in fields(cls):
        unit, meaning = each.metadata["unit"], each.metadata["meaning"]
        flag = unit == "0/1"
        whole = bool(integers and _INTEGERS.search(each.name))
        arrow_type: ArrowType = "bool" if flag else "int64" if whole else "float64"
        columns.append(_value(prefix + each.name, unit, meaning, source, arrow_type, is_required or whole))
    return columns


def _layout(cls: type) -> list[Column]:
    """Return the columns of a layout's numbers; whole ones and flags are zero, not missing, if there is no layout."""
    columns = []
    for each in _bundle(cls, "search", integers=True):
        is_narrow = each.arrow_type == "int64" and _DEGREES.search(each.name)
        arrow_type = "int32" if is_narrow else each.arrow_type
        columns.append(replace(each, arrow_type=arrow_type, is_required=arrow_type != "float64"))
    return columns


def _network(level: int) -> list[Column]:
    return _bundle(NetworkLevel, "catalogue", f"level_{level}_", is_required=True)


def _level(column: Column, level: int) -> Column:
    return replace(column, name=f"{column.name}_level_{level}", meaning=f"{column.meaning}, inside level {level}")


def _glossary() -> dict[str, Column]:
    layout = _layout(Layout)
    columns = [
        *_bundle(Accelerator, "catalogue"),
        *_bundle(Links, "catalogue"),
        *_bundle(Software, "conf/physics"),
        *_bundle(Transformer, "catalogue, models.scaling"),
        *_layout(TransformerLayout),
        *_bundle(TransformerOutcome, "models.transformer_step"),
        *_bundle(Hardware, "catalogue", is_required=True),
        *(
            each
            for level in range(_LEVELS)
            for each in _bundle(NetworkLevel, "catalogue", f"level_{level}_", is_required=True)
        ),
        *_bundle(Architecture, "catalogue, models.scaling", integers=True, is_required=True),
        *_bundle(Workload, "catalogue, models.scaling", is_required=True),
        *layout,
        *(_level(each, level) for level in range(_LEVELS) for each in layout if each.name.endswith("_ranks")),
        *_bundle(LocalSteps, "catalogue"),
        *_bundle(SiteOutcome, "models.effects.sites"),
        *_bundle(Outcome, "models.step"),
        *_bundle(Economics, "pipeline.economics"),
        *_bundle(RunCost, "models.effects.economics"),
        *_VALUES,
        *_TRANSFORMER_VALUES,
        *_TEXTS,
        *_KEYS,
    ]
    return {each.name: each for each in columns}


GLOSSARY: dict[str, Column] = _glossary()


def glossary_markdown() -> str:
    """Return the glossary as a markdown table; what repeats on each network level k is one line."""
    first = [each for name, each in sorted(GLOSSARY.items()) if not re.search(r"level_[1-9]", name)]
    lines = [f"| `{_on_level(each.name)}` | {each.unit or 'text'} | {_on_level(each.meaning)} |" for each in first]
    return "\n".join(["| column | unit | meaning |", "|---|---|---|", *lines])


def _on_level(text: str) -> str:
    return re.sub(r"level([_ ])0", r"level\1k", text)
