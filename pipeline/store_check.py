"""What stands in a results folder already: whole parts of this run, the rests of a dead one, or a stranger's files."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from pipeline.errors import UserError
from pipeline.store_files import TEMPORARY, LocalFolder, RemoteFolder
from pipeline.store_manifest import sha256

POINTS = "points"
RECORDS = "points/_finished"
PART = re.compile(rf"{POINTS}/hardware=([^/]+)/part-([^/]+)\.parquet")

Folder = LocalFolder | RemoteFolder
Record = Mapping[str, Any]


def part_name(hardware: str, unit: str) -> str:
    """Return the path of one chip's part of a unit within a results folder."""
    return f"{POINTS}/hardware={hardware}/part-{unit}.parquet"


def record_name(unit: str) -> str:
    """Return the path of the record that says that a unit is finished."""
    return f"{RECORDS}/{unit}.json"


def read_records(folder: Folder, identity_sha256: str, units: Collection[str]) -> dict[str, Record]:
    """Return the records of finished units by name; refuse one that another run has written."""
    records = {}
    for name in folder.names(RECORDS):
        if name.endswith(TEMPORARY):
            continue
        try:
            record = json.loads(folder.read(name) or b"")
            is_ours = record["identity_sha256"] == identity_sha256 and record["unit"] in units
        except (ValueError, KeyError, TypeError):
            is_ours = False
        if not is_ours:
            raise UserError(f"{folder.url}/{name}: is no record of this run; delete it and run again with resume=true")
        records[record["unit"]] = record
    return records


def records_of(manifest: Mapping[str, Any]) -> dict[str, Record]:
    """Return the units' records that a complete manifest was made of."""
    records: dict[str, Any] = {name: {"unit": name, "parts": {}} for name in manifest["units"]}
    for path, part in manifest["parts"].items():
        match = PART.fullmatch(path)
        if match:
            records[match[2]]["parts"][path] = part
    return records


def check_parts(folder: Folder, records: Mapping[str, Record]) -> None:
    """Refuse a part that is missing or whose bytes are not those that were written."""
    for record in records.values():
        for path, part in record["parts"].items():
            _check_part(folder, path, part)


def _check_part(folder: Folder, path: str, part: Mapping[str, Any]) -> None:
    content = folder.read(path)
    remedy = "put it back as it was, or start anew with replace=true"
    if content is None:
        raise UserError(f"{folder.url}/{path}: is missing, though its work unit was finished; {remedy}")
    if len(content) != part["bytes"] or sha256(content) != part["sha256"]:
        raise UserError(
            f"{folder.url}/{path}: is torn or changed: {len(content)} bytes, not the {part['bytes']} that were "
            f"written (sha256 differs); {remedy}"
        )


def refuse_strangers(folder: Folder, own: Collection[str], units: Collection[str], remedy: str) -> list[str]:
    """Refuse any file among the parts that a run of these units cannot have left; return what a dead run left.

    `own` are the parts that belong there; `units` those that may have parts without a record of being finished.
    """
    leftover = []
    for path in folder.names(POINTS):
        part = PART.fullmatch(path)
        if path.endswith(TEMPORARY) or (part and part[2] in units and path not in own):
            leftover.append(path)
        elif path not in own and not path.startswith(f"{RECORDS}/"):
            raise UserError(f"{folder.url}/{path}: is not a part of this run; {remedy}")
    return leftover
