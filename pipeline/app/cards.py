"""The card of one configuration: its presets, its numbers, what is wrong with them."""

import json
import math
import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from dash import dcc, html

from pipeline.app import entries
from pipeline.app import fields as inputs
from pipeline.app.configurations import PRECISIONS, Configuration
from pipeline.app.fields import GROUPS, Field

TITLES = {
    "hardware": "Chip",
    "topology": "Network and sites",
    "model": "Model",
    "run": "Run",
    "physics": "Physics",
    "economics": "Prices",
}
SLIDER_DECADES = 1.0  # a slider reaches from a tenth to ten times the entry's value
SLIDER_STEPS = 100


def key(kind: str, configuration: str, **more: str) -> dict[str, str]:
    """Return a component's pattern id."""
    return {"type": kind, "configuration": configuration, **more}


@lru_cache(maxsize=16)
def options(group: str) -> list[dict[str, str]]:
    """Return what a preset's menu offers: families before named models, chips by name."""
    if group == "precision":
        return [
            {"label": "16 bits, as the chip has them" if each == "auto" else each, "value": each} for each in PRECISIONS
        ]
    found = []
    for name in entries.names(group):
        given = entries.entry(group, name)
        label = str(given.get("name") or name)
        if group == "hardware":
            label += f" · {given.get('released', '')[:4]} · {name}"
        order = (entries.is_named_model(name) if group == "model" else name.startswith("epoch_"), label.lower())
        found.append((order, {"label": label, "value": name}))
    return [each for _, each in sorted(found, key=lambda pair: pair[0])]


def menu(configuration: str, group: str, value: str, label: str) -> html.Div:
    """Return a menu of presets with its label and the place for its error."""
    return html.Div(
        [
            html.Label(label),
            dcc.Dropdown(
                options=options(group),  # pyright: ignore[reportArgumentType]
                value=value,
                clearable=False,
                searchable=True,
                id=key("choice", configuration, group=group),
            ),
            error(configuration, group),
        ],
        className="menu",
    )


def error(configuration: str, name: str) -> html.Div:
    """Return the place where the browser writes what is wrong with a field ("" = the whole configuration).

    It has no id: hundreds of them as parts of callbacks would take Dash seconds to follow.
    """
    place = {"data-error": f"{configuration} {name}"}
    return html.Div(className="error", role="alert", **place)  # pyright: ignore[reportArgumentType]


def human(value: float, unit: str) -> str:
    """Return a number with SI prefix for people: 3.35 TB/s; times also in days."""
    if unit == "s" and value >= 86400:
        return f"{value / 86400:.4g} days"
    if unit == "m" and value >= 1000:
        return f"{value / 1000:.4g} km"
    if not value or unit in ("1", "0/1", "year", "nm", "mm2", "USD"):
        return f"{value:,.6g}"
    place = min(max(math.floor(math.log10(abs(value)) / 3), -3), 8)
    prefix = {-3: "n", -2: "u", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P", 6: "E", 7: "Z", 8: "Y"}[place]
    return f"{value / 1000.0**place:.4g} {prefix}{unit}"


def number_field(field: Field, value: object = None) -> dict[str, Any]:
    """Return one input as the browser builds it: label, unit, what holds while it is empty, slider, explanation."""
    known = field.default
    shown = f"{known:.10g}" if isinstance(known, int | float) else str(known or "")
    preset = f"preset: {human(float(known), field.unit)}" if isinstance(known, int | float) else (shown or "not set")
    found: dict[str, Any] = {
        "name": field.name,
        "label": field.label,
        "unit": field.unit if field.unit not in ("1", "word") else "",
        "placeholder": shown,
        "value": "" if value is None else str(value),
        "explanation": f"{field.meaning}. Unit: {field.unit}. {preset}. {field.source}",
    }
    if field.is_main and field.is_number and isinstance(known, int | float) and known > 0:
        found["slider"] = _slider(field, float(known))
    return found


def _slider(field: Field, known: float) -> list[float]:
    """Return (low, high, step, value) of a slider over decimal logarithms."""
    low = math.log10(max(known / 10**SLIDER_DECADES, field.low, 1e-300))
    high = math.log10(min(known * 10**SLIDER_DECADES, field.high))
    step = max(round((high - low) / SLIDER_STEPS, 4), 1e-4)
    return [round(low, 4), round(high, 4), step, round(math.log10(known), 4)]


def fields_block(configuration: str, found: list[Field], values: Mapping[str, Any], more: str = "") -> html.Div:
    """Return the main fields, and the others folded away, for the browser to build.

    As Dash components the hundreds of fields of a page would take it seconds to follow each change.
    """
    rest = [each for each in found if not each.is_main]
    content = {
        "configuration": configuration,
        "main": [number_field(each, values.get(each.name)) for each in found if each.is_main],
        "rest": [number_field(each, values.get(each.name)) for each in rest],
        "more": f"{more} ({len(rest)})",
        "is_open": any(each.name in values for each in rest),
        "token": uuid.uuid4().hex,
    }
    block = {"data-fields": json.dumps(content)}
    return html.Div(className="block-of-fields", **block)  # pyright: ignore[reportArgumentType]


def section(configuration: str, group: str, choices: Mapping[str, str], values: Mapping[str, Any]) -> list[Any]:
    """Return the fields of one group for the chosen entries."""
    if group == "hardware":
        found = inputs.hardware_fields(choices["hardware"], choices["precision"])
        return [fields_block(configuration, found, values, "All numbers of the chip")]
    if group == "topology":
        levels = inputs.network_level_fields(choices["hardware"], choices["topology"])
        block = fields_block(configuration, levels, values, "Latency, distance, oversubscription of each level")
        return [block, html.H4("Several sites"), fields_block(configuration, inputs.site_fields(), values)]
    if group == "model":
        return [fields_block(configuration, inputs.model_fields(choices["model"]), values, "All rules or dimensions")]
    if group == "physics":
        return [fields_block(configuration, inputs.physics_fields(choices["physics"]), values, "All constants")]
    if group == "economics":
        return [fields_block(configuration, inputs.economics_fields(choices["economics"]), values, "Habits and dates")]
    return [fields_block(configuration, inputs.run_fields(), values, "Tokens, batch, bounds")]


def card(configuration: Configuration, values: Mapping[str, Any], name: str) -> html.Section:
    """Return a configuration's card. `values` are the fields as typed, also wrong ones."""
    identity, choices = configuration.id, configuration.choices
    buttons = [
        html.Button("Copy", id=key("copy", identity), title="another configuration that begins as this one"),
        html.Button("YAML", id=key("yaml", identity), title="the study file that flopscape sweep takes"),
        html.Button("Remove", id=key("remove", identity), title="take this configuration off the page"),
    ]
    head = html.Div(
        [
            html.Span(className="swatch"),
            dcc.Input(type="text", value=name, debounce=0.3, id=key("name", identity), name=f"name of {identity}"),
            html.Div(buttons, className="buttons"),
        ],
        className="card-head",
    )
    sections = []
    for group in ("hardware", "topology", "model", "run", "physics", "economics"):
        menus = [menu(identity, group, choices[group], TITLES[group])] if group in GROUPS else []
        if group == "hardware":
            menus.append(menu(identity, "precision", choices["precision"], "Precision"))
        body = html.Div(section(identity, group, choices, values), id=key("section", identity, group=group))
        changed = any(each.name in values for each in _fields(group, choices))
        folded = html.Details(
            [html.Summary("Numbers" if group in GROUPS else "Run"), body], open=changed or group in ("run", "hardware")
        )
        sections.append(html.Div([*menus, folded], className=f"group {group}"))
    errors = [
        error(identity, "name"),
        error(identity, ""),
    ]
    return html.Section([head, *errors, *sections], className="card", id=key("card", identity))


def _fields(group: str, choices: Mapping[str, str]) -> list[Field]:
    found = inputs.all_fields(choices)
    prefixes = {"topology": ("network.", "sites.")}.get(group, (f"{group}.",))
    return [each for name, each in found.items() if name.startswith(prefixes)]
