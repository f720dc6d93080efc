"""Which export rule catches which chip at which date, and why. The rules are data (conf/policy)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pipeline.catalogue import CONF_DIRECTORY, Chip, read_yaml
from pipeline.catalogue_load import entry_id, fail, read_fields, read_sources
from pipeline.catalogue_schema import Source, number, text
from pipeline.prices import read_day

OUTCOMES = ("not_restricted", "notification", "licence", "case_by_case", "restricted", "use_at_risk")
UNDETERMINED = "undetermined"
FREE = "not_restricted"
BITS = {"fp32": 32, "fp16": 16, "fp16_accumulate": 16, "bf16": 16, "fp8": 8, "fp4": 4, "int8": 8}  # TF32 is left out
PLANAR_ABOVE_NM = 16  # performance density counts only dies made on non-planar transistors, 16 nm and below
TERA = 1e12
LISTS = ("markets", "named", "only_if")


@dataclass(frozen=True, kw_only=True)
class Clause:
    """One test of a rule: every condition that is given must hold."""

    name: str | None = text("paragraph of the rule", required=True)
    outcome: str | None = text("what it means for the chip", required=True, among=OUTCOMES)
    consequence: str | None = text("in words", required=True)
    tpp_minimum: float | None = number("TOPS x bit", "total processing performance, at least")
    tpp_below: float | None = number("TOPS x bit", "total processing performance, below")
    performance_density_minimum: float | None = number("TOPS x bit / mm2", "TPP / die area, at least")
    performance_density_below: float | None = number("TOPS x bit / mm2", "TPP / die area, below")
    io_both_way_byte_per_s_minimum: float | None = number("B/s", "chip-to-chip bandwidth, both ways, at least")
    memory_byte_per_s_minimum: float | None = number("B/s", "memory bandwidth, at least")
    memory_byte_per_s_below: float | None = number("B/s", "memory bandwidth, below")
    memory_plus_io_byte_per_s_minimum: float | None = number("B/s", "memory and chip-to-chip bandwidth, at least")
    designed_in: str | None = text("only chips designed in this country")
    designed_outside: str | None = text("only chips not designed in this country")
    markets: tuple[str, ...] = ()  # only chips made for one of these
    named: tuple[str, ...] = ()  # only chips with an id of one of these patterns
    only_if: tuple[str, ...] = ()  # only chips whose outcome under earlier rules is one of these


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One dated rule: its clauses are tried in order, the first that holds decides."""

    id: str
    file: str
    name: str | None = text("what it is called", required=True)
    instrument: str | None = text("the legal text", required=True)
    in_force: str | None = text("first day, yyyy-mm-dd", required=True)
    superseded: str | None = text("first day on which it no longer holds")
    notes: str | None = text("what to know before believing it")
    clauses: tuple[Clause, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the rules in force on a day make of a chip."""

    outcome: str
    rule: str  # id of the rule that decided, "" if none
    reason: str


def total_processing_performance(chip: Chip) -> float:
    """Return TPP: the largest over the precisions of dense TOPS x bits (note 2 to ECCN 3A090; TF32 is left out)."""
    rates = {name: getattr(chip, f"peak_dense_{name}_flop_per_s") or 0.0 for name in BITS}
    return max(rate / TERA * BITS[name] for name, rate in rates.items())


def performance_density(chip: Chip) -> float | None:
    """Return TPP / applicable die area in mm2; 0 on planar processes, None if area or process is unknown."""
    if chip.process_node_nm is not None and chip.process_node_nm > PLANAR_ABOVE_NM:
        return 0.0
    area = chip.export_die_area_mm2 or chip.die_area_mm2
    return None if area is None else total_processing_performance(chip) / area


def io_both_way_byte_per_s(chip: Chip) -> float:
    """Return the chip-to-chip bandwidth that rules count: twice the scale-up link unless the entry says otherwise."""
    return chip.export_io_both_way_byte_per_s or 2.0 * (chip.scale_up_one_way_byte_per_s or 0.0)


def export_numbers(chip: Chip) -> dict[str, float | None]:
    """Return the numbers of a chip that clauses test, by the stem of their keys."""
    io, memory = io_both_way_byte_per_s(chip), chip.hbm_byte_per_s or 0.0
    return {
        "tpp": total_processing_performance(chip),
        "performance_density": performance_density(chip),
        "io_both_way_byte_per_s": io,
        "memory_byte_per_s": memory,
        "memory_plus_io_byte_per_s": memory + io,
    }


def load_rule(mapping: Mapping[str, Any], file: str) -> Rule:
    """Return a checked rule."""
    values = read_fields(Rule, mapping, file, extra=("sources", "clauses"))
    for key in ("in_force", "superseded"):
        if values[key] is not None:
            read_day(values[key], f"{file}: {key}")
    given = mapping.get("clauses")
    if not isinstance(given, list | tuple) or not given:
        raise fail(file, "clauses", given, "must be a list of at least one clause", "see conf/policy")
    clauses = tuple(_load_clause(each, file, f"clauses[{index}].") for index, each in enumerate(given))
    return Rule(
        id=entry_id(file), file=file, clauses=clauses, sources=read_sources(mapping.get("sources"), file), **values
    )


def _load_clause(mapping: Mapping[str, Any], file: str, prefix: str) -> Clause:
    values = read_fields(Clause, mapping, file, extra=LISTS, prefix=prefix)
    lists: dict[str, Any] = {key: tuple(str(each) for each in mapping.get(key) or ()) for key in LISTS}
    for outcome in lists["only_if"]:
        if outcome not in OUTCOMES:
            raise fail(file, f"{prefix}only_if", outcome, f"must be among {', '.join(OUTCOMES)}", "correct it")
    return Clause(**values, **lists)


def read_rules(directories: Sequence[Path] = (CONF_DIRECTORY,)) -> tuple[Rule, ...]:
    """Return the rules of conf/policy (and of further folders) by the day they came into force."""
    rules = {}
    for directory in directories:
        for path in sorted((Path(directory) / "policy").glob("*.yaml")):
            rules[path.stem] = load_rule(read_yaml(path), f"policy/{path.name}")
    return tuple(sorted(rules.values(), key=lambda rule: (rule.in_force or "", rule.id)))


def holds_on(rule: Rule, day: date) -> bool:
    """Return whether a rule is in force on a day."""
    start = read_day(rule.in_force or "", rule.file)
    end = read_day(rule.superseded, rule.file) if rule.superseded else date.max
    return start <= day < end


def clause_holds(clause: Clause, chip: Chip, outcome: str) -> bool | None:
    """Return whether every condition of a clause holds; None if that hangs on a number nobody knows."""
    country = chip.vendor_country or ""
    if clause.markets and (chip.market or "datacenter") not in clause.markets:
        return False
    if clause.named and not any(fnmatchcase(chip.id, pattern) for pattern in clause.named):
        return False
    if clause.only_if and outcome not in clause.only_if:
        return False
    if (clause.designed_in and country != clause.designed_in) or (country and country == clause.designed_outside):
        return False
    unknown, numbers = False, export_numbers(chip)
    for each in fields(Clause):
        limit = getattr(clause, each.name)
        if each.metadata.get("type") is not float or limit is None:
            continue
        value = numbers[each.name.removesuffix("_minimum").removesuffix("_below")]
        if value is None:
            unknown = True
        elif (value < limit) if each.name.endswith("_minimum") else (value >= limit):
            return False
    return None if unknown else True


def reason_for(rule: Rule, clause: Clause, chip: Chip) -> str:
    """Return why a clause catches a chip, with the numbers it tests."""
    numbers, tests = export_numbers(chip), []
    for each in fields(Clause):
        limit = getattr(clause, each.name)
        if each.metadata.get("type") is float and limit is not None:
            stem = each.name.removesuffix("_minimum").removesuffix("_below")
            value = numbers[stem]
            sign = ">=" if each.name.endswith("_minimum") else "<"
            tests.append(f"{stem} {'unknown' if value is None else format(value, '.6g')} {sign} {limit:g}")
    return f"{rule.name}, {clause.name}: {' and '.join(tests) or 'by name'}; {clause.consequence}"


def rule_outcome(rule: Rule, chip: Chip, outcome: str) -> Verdict | None:
    """Return what one rule makes of a chip whose outcome so far is given; None if it does not touch it."""
    undetermined = None
    for clause in rule.clauses:
        holds = clause_holds(clause, chip, outcome)
        if holds:
            return Verdict(outcome=clause.outcome or FREE, rule=rule.id, reason=reason_for(rule, clause, chip))
        if holds is None and undetermined is None:
            reason = reason_for(rule, clause, chip)
            undetermined = Verdict(outcome=UNDETERMINED, rule=rule.id, reason=f"if it were known: {reason}")
    return undetermined


def verdict(chip: Chip, day: date, rules: Sequence[Rule]) -> Verdict:
    """Return what the rules in force on a day make of a chip: the last rule that touches it decides.

    A chip is judged as if it were sold: whether it exists yet, or was ever offered, is another question.
    """
    numbers = export_numbers(chip)
    density = numbers["performance_density"]
    words = f"TPP {numbers['tpp']:.6g}, performance density {'unknown' if density is None else format(density, '.3g')}"
    found = Verdict(outcome=FREE, rule="", reason=f"no rule in force catches it ({words})")
    for rule in rules:
        if holds_on(rule, day):
            found = rule_outcome(rule, chip, found.outcome) or found
    return found
