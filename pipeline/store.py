"""A folder of results: part files that are whole or absent, a manifest, one writer at a time, runs that resume.

Workers write parts and a small record for each finished work unit; the parent folds the records into the manifest.
A unit is done when its record is there, so a run that died goes on with the units that have none.
"""

import contextlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from pipeline.errors import UserError
from pipeline.store_check import (
    RECORDS,
    Record,
    check_parts,
    read_records,
    records_of,
    refuse_strangers,
)
from pipeline.store_files import open_folder
from pipeline.store_lock import LOCK, FolderLock
from pipeline.store_manifest import (
    MANIFEST,
    first_manifest,
    identity_of,
    read_manifest,
    what_changed,
)
from pipeline.store_parts import PartWriter, Unit, unit_name

LOG = "run.log"


class Results:
    """A results folder that is being written, by this process and by the workers it hands `writer` to."""

    def __init__(
        self,
        url: str,
        study: Mapping[str, Any],
        units: Sequence[Unit],
        *,
        resume: bool,
        replace: bool,
        shard: tuple[int, int] | None = None,
    ):
        """Lock the folder, and check what is there; see `open_results`."""
        self.url, self._shard = url, shard
        self._folder = open_folder(url)
        self._names = [unit_name(each) for each in units]
        self._started = time.monotonic()
        self._seconds_before = 0.0
        lock = LOCK if shard is None else f"{LOCK}-{shard[0]}-of-{shard[1]}"
        self._lock = FolderLock(self._folder, lock)
        try:
            self._prepare(study, resume=resume, replace=replace)
        except BaseException:
            self._lock.release()
            raise
        self._log(f"begins: {len(self._names):,} work units, {len(self._records):,} of them finished before")

    def _prepare(self, study: Mapping[str, Any], *, resume: bool, replace: bool) -> None:
        identity = identity_of(study, self._names)
        self.manifest = first_manifest(study, identity)
        self.writer = PartWriter(self.url, self.manifest["identity_sha256"])
        self._records: dict[str, Record] = {}
        old = read_manifest(self._folder)
        if old is None:
            refuse_strangers(self._folder, (), (), "delete it or choose another folder with results=FOLDER")
            self._write_manifest()
        elif self._shard is not None and (what := what_changed(old, identity)):
            raise UserError(
                f"{self.url}: holds the results of another configuration ({_some(what)}), and this is a shard; "
                "choose another folder with results=FOLDER"
            )
        elif resume or self._shard is not None:  # a shard joins the others, whoever came first
            self._resume(old, what_changed(old, identity))
        elif replace or not what_changed(old, identity):
            self._replace(old)
        else:
            raise UserError(
                f"{self.url}: holds the results of another configuration ({_some(what_changed(old, identity))}); "
                "choose another folder with results=FOLDER, or replace=true to write over them"
            )

    def _resume(self, old: Mapping[str, Any], changes: Sequence[str]) -> None:
        if changes:
            raise UserError(
                f"{self.url}: resume=true, but the configuration is not the one that wrote this folder: "
                f"{_some(changes)}; undo the change, or choose another folder with results=FOLDER"
            )
        self._records = read_records(self._folder, self.writer.identity_sha256, set(self._names))
        if old.get("is_complete"):
            self._records |= records_of(old)
        own = {path for record in self._records.values() for path in record["parts"]}
        open_units = set(self._names) - set(self._records)
        leftover = refuse_strangers(self._folder, own, open_units, "delete it and run again with resume=true")
        mine = self._mine()
        check_parts(self._folder, {name: record for name, record in self._records.items() if name in mine})
        self._delete([path for path in leftover if any(name in path for name in mine)] if self._shard else leftover)
        self._seconds_before = float(old.get("seconds") or 0.0)
        self.manifest["resumed_count"] = int(old.get("resumed_count") or 0) + (not old.get("is_complete"))
        self._write_manifest()

    def _mine(self) -> set[str]:
        """Return the names of the units that are this run's to write."""
        if self._shard is None:
            return set(self._names)
        return set(self._names[self._shard[0] - 1 :: self._shard[1]])

    def _replace(self, old: Mapping[str, Any]) -> None:
        """Clear an earlier run away: records, then its manifest, then parts, so that a crash here can be resumed."""
        units = {*self._names, *old.get("units", ())}
        leftover = refuse_strangers(self._folder, (), units, "delete it or choose another folder with results=FOLDER")
        self._delete(self._folder.names(RECORDS))
        self._write_manifest()
        self._delete(leftover)

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._folder.delete(path)

    def _log(self, text: str) -> None:
        """Add a line to run.log, which tells the story of a folder; nothing reads it."""
        line = f"{time.strftime('%Y-%m-%d %H:%M:%S%z')} process {os.getpid()} {text}\n"
        self._folder.write(LOG, (self._folder.read(LOG) or b"") + line.encode())

    def _write_manifest(self) -> None:
        self._folder.write(MANIFEST, (json.dumps(self.manifest, indent=1) + "\n").encode())

    @property
    def finished(self) -> frozenset[str]:
        """Names of the units that need not be run again."""
        return frozenset(self._records)

    def is_finished(self, unit: Unit) -> bool:
        """Return whether a unit's rows are already there, checked."""
        return unit_name(unit) in self._records

    def write_unit(self, unit: Unit, table: Mapping[str, Any]) -> int:
        """Write a unit's rows from this process; return their number."""
        return self.writer.write_unit(unit, table)

    def finish_if_last(self, **more: Any) -> dict[str, Any] | None:
        """Complete the manifest if no shard has a unit left; None if one has, or if another shard came first."""
        lock = None
        try:
            lock = FolderLock(self._folder)
            old = read_manifest(self._folder) or {}
            records = read_records(self._folder, self.writer.identity_sha256, set(self._names))
            if old.get("is_complete") or len(records) < len(self._names):
                return None
            return self.finish(**more)
        except UserError:
            if lock is None:  # another shard is completing it
                return None
            raise
        finally:
            if lock is not None:
                lock.release()

    def finish(self, **more: Any) -> dict[str, Any]:
        """Complete the manifest from the units' records, give the folder free, and return the manifest."""
        self._records = {**read_records(self._folder, self.writer.identity_sha256, set(self._names)), **self._records}
        missing = [name for name in self._names if name not in self._records]
        if missing:
            raise UserError(
                f"{self.url}: {len(missing)} of {len(self._names)} work units are not written "
                f"(first: {missing[0]}); run again with resume=true"
            )
        parts = {path: part for name in self._names for path, part in self._records[name]["parts"].items()}
        self.manifest |= {
            "is_complete": True,
            "row_count": sum(part["rows"] for part in parts.values()),
            "candidate_count": sum(part["candidates"] for part in parts.values()),
            "part_count": len(parts),
            "seconds": round(self._seconds_before + time.monotonic() - self._started, 3),
            **more,
            "parts": parts,
        }
        self._write_manifest()
        self._log(f"ends: {self.manifest['row_count']:,} rows in {len(parts):,} parts")
        self._delete(self._folder.names(RECORDS))
        self.close()
        return self.manifest

    def close(self) -> None:
        """Give the folder free; what is written stays, and a later run can resume."""
        self._lock.release()

    def __enter__(self) -> Self:
        """Return itself; leaving the block gives the folder free."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        """Give the folder free however the block ended."""
        with contextlib.suppress(UserError):
            self.close()


def _some(changes: Sequence[str]) -> str:
    shown = "; ".join(changes[:4])
    return shown if len(changes) <= 4 else f"{shown}; and {len(changes) - 4} more"


def open_results(
    url: str,
    study: Mapping[str, Any],
    units: Sequence[Unit],
    *,
    resume: bool = False,
    replace: bool = False,
    shard: tuple[int, int] | None = None,
) -> Results:
    """Open a results folder for writing: a local path or any URL that Arrow's or fsspec's filesystems know.

    `study` holds at least `study` (its name) and `config` (as composed, with its catalogue entries); further keys go
    into the manifest. `units` are all work units of the run. `resume` keeps finished units, after checking them;
    `replace` writes over the results of another configuration. `shard` (i, N) says that other runs write the other
    units into the same folder. Raises UserError in one line.
    """
    return Results(url, study, units, resume=resume, replace=replace, shard=shard)
