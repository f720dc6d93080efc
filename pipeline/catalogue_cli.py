"""`flopscape catalogue list|show|check|costs|import`: every number of the catalogue, and where it comes from."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipeline.arguments import Parser
from pipeline.catalogue import CONF_DIRECTORY, read_entries, read_yaml
from pipeline.catalogue_bands import implausible_rows
from pipeline.catalogue_check import entry_numbers, findings, uncertain_keys
from pipeline.catalogue_costs import as_csv, published_cost_table, read_settings
from pipeline.catalogue_import import entry_text, import_config, imported_model, read_config
from pipeline.catalogue_list import export_lines, group_rows, number_row, price_lines, rule_lines, table
from pipeline.catalogue_parameters import parameter_counts
from pipeline.catalogue_schema import Chip
from pipeline.economics import load_economics
from pipeline.errors import UserError, closest
from pipeline.policy import read_rules
from pipeline.prices import read_csv

GROUPS = ("hardware", "topology", "model", "economics", "policy", "links")


def list_entries(group: str | None, directories: Sequence[Path]) -> int:
    """Print what there is."""
    for each in (group,) if group else GROUPS[:-1]:
        print(f"{each}:" if not group else f"{each} ({len(group_rows(each, directories))}):")
        print(table(group_rows(each, directories)), end="\n\n" if not group else "\n")
    return 0


def all_entries(directories: Sequence[Path]) -> dict[str, Any]:
    """Return every entry that carries sourced numbers, by `group/id`."""
    entries = {
        f"{group}/{name}": entry
        for group in ("hardware", "topology", "model")
        for name, entry in read_entries(group, directories).items()
    }
    for directory in directories:
        for path in sorted((directory / "economics").glob("*.yaml")):
            entries[f"economics/{path.stem}"] = load_economics(read_yaml(path), f"economics/{path.name}")
    return entries


def show_entry(name: str, directories: Sequence[Path]) -> int:
    """Print one entry: every number with unit, source, place, as printed, kind and range."""
    entries, references = all_entries(directories), all_references(directories)
    rules = {rule.id: rule for rule in read_rules(directories)}
    keys = [key for key in entries if key == name or key.split("/")[1] == name]
    if name.removeprefix("policy/") in rules:
        print("\n".join(rule_lines(rules[name.removeprefix("policy/")])))
        return 0
    if not keys:
        names = sorted({key.split("/")[1] for key in entries} | set(rules))
        close = closest(name, names)
        remedy = f"did you mean {' or '.join(close)}?" if close else "see `flopscape catalogue list`"
        raise UserError(f"catalogue: {name}: no such entry; {remedy}")
    for key in keys:
        entry = entries[key]
        print(f"{key}: {entry.name}")
        for word in ("vendor", "released", "market", "organisation", "notes"):
            if getattr(entry, word, None):
                print(f"  {word}: {getattr(entry, word)}")
        print(table([number_row(entry, number, value) for number, value in entry_numbers(entry).items()]))
        if isinstance(entry, Chip) and not entry.reference_name:
            print("\n  ".join(["prices:", *price_lines(entry)]))
            print("\n  ".join(["export rules:", *export_lines(entry, directories)]))
        print("sources:")
        for ref in sorted({source.ref for source in entry.sources.values()}):
            about = references.get(ref, {})
            print(f"  {ref}: {about.get('title')} ({about.get('date')}) {about.get('url') or ''}".rstrip())
    return 0


def all_references(directories: Sequence[Path]) -> dict[str, Any]:
    """Return the sources of conf/sources.yaml and of the further folders."""
    found: dict[str, Any] = {}
    for directory in directories:
        path = Path(directory) / "sources.yaml"
        found |= read_yaml(path) if path.is_file() else {}
    return found


def check_entries(directories: Sequence[Path]) -> int:
    """Print every unsourced or implausible number, and what share rests on assumption; 1 if anything was found."""
    references, found, counts = all_references(directories), [], {}
    for key, entry in all_entries(directories).items():
        found += [each for each in findings(entry, references) if "dollar_year" not in each]
        total, uncertain = counts.get(key.split("/")[0], (0, 0))
        counts[key.split("/")[0]] = (total + len(entry_numbers(entry)), uncertain + len(uncertain_keys(entry)))
    for rule in read_rules(directories):
        unresolved = [s.ref for s in rule.sources.values() if s.ref not in references]
        found += [f"{rule.file}: sources: {ref} is not in sources.yaml; add it there" for ref in unresolved]
    for name in ("prices.csv", "energy.csv", "deflator.csv"):
        rows = read_csv(name, CONF_DIRECTORY)
        found += [
            f"economics/{name} line {number}: ref = {row['ref']!r}: not in sources.yaml; add it there or correct it"
            for number, row in enumerate(rows, start=2)
            if row["ref"] not in references
        ]
        found += implausible_rows(f"economics/{name}", rows)
        uncertain = sum(row["source_kind"] in ("assumption", "unverified") for row in rows)
        counts[name] = (len(rows), uncertain)
    for each in found:
        print(each)
    for group, (total, uncertain) in counts.items():
        print(f"{group}: {total} numbers, {uncertain / max(total, 1):.0%} assumption or unverified")
    total, uncertain = (sum(each[part] for each in counts.values()) for part in (0, 1))
    verdict = "nothing unsourced, nothing implausible" if not found else f"{len(found)} findings"
    print(f"{verdict}; {total} numbers, {uncertain} ({uncertain / total:.0%}) assumption or unverified")
    return 1 if found else 0


def print_costs(economics: str, as_data: bool) -> int:
    """Print the published costs of runs beside ours."""
    rows = published_cost_table(read_settings(economics))
    if as_data:
        print(as_csv(rows), end="")
        return 0
    shown = []
    for row in rows:
        money = {key: f"{float(str(row[key])) / 1e6:.3g}" for key in row if key.endswith("_usd")}
        titles = {key: key.removesuffix("_usd").replace("_", " ") + " M" for key in money}
        shown.append(
            {"model": str(row["model"]), "hardware": str(row["hardware"]), "priced": str(row["price_day"])}
            | {titles[key]: value for key, value in money.items()}
            | {"ratio": f"{float(str(row['ratio'])):.2f}"}
        )
    print("Millions of 2023 USD; ratio = (amortised hardware + energy) / published")
    print(table(shown))
    return 0


def import_model(path: Path, name: str | None, folder: Path | None, ignored: Sequence[str]) -> int:
    """Print a config.json as an entry, or write it into a folder's model group."""
    given = name or (path.parent.name if path.name == "config.json" else path.stem)
    entry_name = re.sub(r"[^a-z0-9]+", "_", given.lower()).strip("_") or "imported"
    entry = import_config(read_config(path), str(path), ignored)
    total, active = parameter_counts(imported_model(entry, entry_name, given))
    text = entry_text(entry, entry_name, given, path.name)
    if folder is None:
        print(text, end="")
    else:
        target = folder / "model" / f"{entry_name}.yaml"
        if target.exists():
            raise UserError(f"{target}: exists already; give another --name or remove it")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(f"{target}")
    print(f"# {total:.6g} parameters, {active:.6g} active", file=sys.stderr)
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the subcommands."""
    top = Parser(prog="flopscape catalogue", description=__doc__)
    common = Parser(add_help=False)
    common.add_argument("--config-dir", type=Path, help="a further folder with the same groups as conf/")
    commands = top.add_subparsers(dest="command", required=True)
    listing = commands.add_parser("list", parents=[common], help="what there is, with the main figures")
    listing.add_argument("group", nargs="?", choices=GROUPS)
    show = commands.add_parser("show", parents=[common], help="one entry: every number, unit, source, kind")
    show.add_argument("name")
    commands.add_parser("check", parents=[common], help="refuse unsourced or implausible numbers, count assumptions")
    costs = commands.add_parser("costs", help="published costs of runs beside ours")
    costs.add_argument("--economics", default="own_time")
    costs.add_argument("--csv", action="store_true")
    bring = commands.add_parser("import", parents=[common], help="a Hugging Face config.json as a model entry")
    bring.add_argument("config", type=Path)
    bring.add_argument("--name", help="id of the entry; default: the name of the file or of its folder")
    bring.add_argument(
        "--ignore", action="append", default=[], metavar="FIELD", help="a field that leaves the shape alone"
    )
    return top


def main(argv: Sequence[str]) -> int:
    """Run a subcommand: 0 good, 1 findings of `check`; raises UserError, one line, for what the user can mend."""
    options = parser().parse_args(list(argv))
    folder: Path | None = getattr(options, "config_dir", None)
    if options.command == "import":
        return import_model(options.config, options.name, folder, options.ignore)
    if folder is not None and not folder.is_dir():
        raise UserError(f"command line: --config-dir {folder}: no such folder; name an existing folder")
    directories = (CONF_DIRECTORY,) if folder is None else (CONF_DIRECTORY, folder)
    if options.command == "list":
        return list_entries(options.group, directories)
    if options.command == "show":
        return show_entry(options.name, directories)
    if options.command == "costs":
        return print_costs(options.economics, options.csv)
    return check_entries(directories)
