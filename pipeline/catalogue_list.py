"""Listings of the catalogue: one row per entry, one row per number, aligned as text."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pipeline.catalogue import CONF_DIRECTORY, read_entries, read_yaml, resolved_precision
from pipeline.catalogue_check import source_of
from pipeline.catalogue_parameters import parameter_counts
from pipeline.catalogue_schema import Chip, ModelShape, Published, Topology
from pipeline.policy import Rule, read_rules, verdict
from pipeline.prices import CLOUD_KINDS, chip_observations, cloud_price, purchase_price, read_day, read_observations

Row = dict[str, str]
S_PER_HOUR = 3600.0


def scaled(value: float | None, scale: float) -> str:
    """Return a number in a human unit for a listing, empty if unknown."""
    return "" if value is None else f"{value / scale:.4g}"


def chip_row(chip: Chip) -> Row:
    """Return the main figures of a chip."""
    precision = resolved_precision(chip, "auto")
    return {
        "id": chip.id,
        "released": chip.released or "",
        "precision": precision,
        "TFLOP/s": scaled(getattr(chip, f"peak_dense_{precision}_flop_per_s"), 1e12),
        "memory GB": scaled(chip.hbm_byte, 1e9),
        "memory GB/s": scaled(chip.hbm_byte_per_s, 1e9),
        "scale-up": scaled(chip.scale_up_ranks, 1),
        "GB/s one way": scaled(chip.scale_up_one_way_byte_per_s, 1e9),
        "scale-out GB/s": scaled(chip.scale_out_one_way_byte_per_s, 1e9),
        "TDP W": scaled(chip.tdp_w, 1),
        "USD": scaled(chip.release_price_usd, 1),
        "confidence": chip.confidence or ("reference" if chip.reference_name else ""),
    }


def topology_row(topology: Topology) -> Row:
    """Return the levels of a network in words."""
    levels = []
    for index, level in enumerate(topology.levels):
        size = f"{level.group_ranks:.0f}" if level.group_ranks else "chip's" if index == 0 and level.takes_from else ""
        rate = f"{scaled(level.one_way_byte_per_s, 1e9)} GB/s" if level.one_way_byte_per_s else "chip's rate"
        levels.append(f"{size or 'any'} x {rate}")
    return {"id": topology.id, "levels": ", then ".join(levels), "name": topology.name or ""}


def model_row(model: ModelShape) -> Row:
    """Return the main figures of a model."""
    total, active = parameter_counts(model) if model.kind == "shape" else (None, None)
    published = model.published
    return {
        "id": model.id,
        "kind": "rumour" if model.is_rumour else model.kind or "",
        "parameters": f"{total or published.parameter_count or 0:.4g}",
        "active": f"{active:.4g}" if active else "",
        "layers": scaled(model.layer_count, 1),
        "d_model": scaled(model.d_model, 1),
        "experts": scaled(model.expert_count, 1),
        "attention": model.attention_kind or "",
        "tokens": f"{published.training_token:.3g}" if published.training_token else "",
        "FLOP": f"{published.training_flop:.3g}" if published.training_flop else "",
    }


def group_rows(group: str, directories: Sequence[Path]) -> list[Row]:
    """Return the listing of one group."""
    if group == "policy":
        return [
            {"id": r.id, "in force": r.in_force or "", "until": r.superseded or "", "name": r.name or ""}
            for r in read_rules(directories)
        ]
    if group == "economics":
        found = [path for each in directories for path in sorted((each / "economics").glob("*.yaml"))]
        return [{"id": path.stem, "name": str(read_yaml(path).get("name"))} for path in found]
    if group == "links":
        links = read_yaml(CONF_DIRECTORY / "links.yaml")["links"]
        keys = {"one_way_byte_per_s": ("GB/s one way", 1e9), "latency_s": ("latency us", 1e-6)}
        rows = [{"name": each["name"], "since": str(each["year"]), "kind": each["source"]["kind"]} for each in links]
        return [
            row | {title: scaled(each.get(key), scale) for key, (title, scale) in keys.items()}
            for row, each in zip(rows, links, strict=True)
        ]
    row: Callable[[Any], Row] = {"hardware": chip_row, "topology": topology_row, "model": model_row}[group]
    return [row(entry) for entry in read_entries(group, directories).values()]


def table(rows: Sequence[Row]) -> str:
    """Return rows as aligned text."""
    if not rows:
        return "(none)"
    titles = list(rows[0])
    widths = {title: max(len(title), *(len(row[title]) for row in rows)) for title in titles}
    lines = ["  ".join(title.ljust(widths[title]) for title in titles)]
    lines += ["  ".join(row[title].ljust(widths[title]) for title in titles) for row in rows]
    return "\n".join(line.rstrip() for line in lines)


def units(entry: Any) -> dict[str, str]:
    """Return the unit of each key of an entry."""
    schemas = (type(entry), Published)
    found = {f: d.metadata.get("unit", "") for s in schemas for f, d in s.__dataclass_fields__.items()}
    return found | {f"published.{f}": found[f] for f in Published.__dataclass_fields__}


def number_row(entry: Any, key: str, value: Any) -> Row:
    """Return one number of an entry with everything known of it."""
    source = source_of(entry, key)
    plain = re.sub(r"^levels\[\d+\]\.", "", key)
    unit = units(entry).get(key) or units(entry).get(plain) or level_unit(plain)
    text = f"{value:.8g}" if isinstance(value, float) else f"{len(value)} levels"
    if source is None:
        return dict.fromkeys(("number", "value", "unit", "kind", "range", "printed", "source"), "") | {"number": key}
    ends = f"{source.low:.4g} to {source.high:.4g}" if source.low is not None and source.high is not None else ""
    place = f"{source.ref}: {source.where}" + (f" ({source.note})" if source.note else "")
    row = {"number": key, "value": text, "unit": unit, "kind": source.kind, "range": ends}
    return row | {"printed": source.as_printed, "source": place}


def level_unit(key: str) -> str:
    """Return the unit that a key's suffix names."""
    suffixes = {"_byte_per_s": "B/s", "_s": "s", "_m": "m", "_byte": "B", "_usd": "USD"}
    return next((unit for suffix, unit in suffixes.items() if key.endswith(suffix)), "1")


def price_lines(chip: Chip, directory: Path = CONF_DIRECTORY) -> list[str]:
    """Return what a chip cost at its release and costs by the newest observation, and how that is known."""
    observations = read_observations(directory)
    own = chip_observations(chip, observations)
    if not own or not chip.released:
        return ["nobody has been seen to sell or rent it out"]
    lines = []
    newest = max(each.day for each in own)
    for day in sorted({read_day(chip.released, chip.file), newest}):
        if any(each.kind not in CLOUD_KINDS for each in own):
            price = purchase_price(chip, day, observations)
            lines.append(f"purchase on {day}: {price.usd:.6g} USD: {price.basis}")
    rent = cloud_price(chip, newest, observations, CLOUD_KINDS)
    if rent:
        lines.append(f"rent on {newest}: {rent.usd * S_PER_HOUR:.4g} USD an hour: {rent.kind}")
    counted = Counter(each.kind for each in own)
    return [*lines, "observations: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items()))]


def export_lines(chip: Chip, directories: Sequence[Path]) -> list[str]:
    """Return what the export rules make of a chip, from the day of each rule on."""
    rules, lines = read_rules(directories), []
    for day in sorted({rule.in_force or "" for rule in rules}):
        found = verdict(chip, read_day(day, "policy"), rules)
        if not lines or not lines[-1].endswith(found.reason):
            lines.append(f"from {day}: {found.outcome}: {found.reason}")
    return lines


def rule_lines(rule: Rule) -> list[str]:
    """Return the clauses of an export rule, one line each."""
    lines = [
        f"{rule.file}: {rule.name}",
        f"  {rule.instrument}; in force {rule.in_force}, until {rule.superseded or 'now'}",
    ]
    for clause in rule.clauses:
        tests = [
            f"{each.name} {getattr(clause, each.name):g} {each.metadata['unit']}"
            for each in fields(clause)
            if each.metadata.get("type") is float and getattr(clause, each.name) is not None
        ]
        tests += [
            f"{key} {', '.join(getattr(clause, key))}"
            for key in ("markets", "named", "only_if")
            if getattr(clause, key)
        ]
        lines.append(f"  {clause.name}: {clause.outcome} ({clause.consequence}) if {'; '.join(tests)}")
    return [*lines, f"  {rule.notes}"] + [f"  source: {s.ref}: {s.where} ({s.kind})" for s in rule.sources.values()]
