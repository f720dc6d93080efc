"""What a results folder says of itself: how its rows came about, and by what they can be checked."""

import hashlib
import json
import platform
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from pipeline.errors import UserError
from pipeline.store_files import LocalFolder, RemoteFolder

MANIFEST = "manifest.json"
FORMAT = 1
PACKAGES = ("duckdb", "hydra-core", "jax", "jaxlib", "numpy", "pyarrow")
GROUPS = ("hardware", "topology", "model", "physics", "economics", "policy")
MUST_MATCH = ("format", "study", "config", "units", "flopscape_version")
"""What must be equal for two runs to give the same rows. `config` leaves out what only says where and how to run."""
NOT_THE_ROWS = ("results", "resume", "replace", "runner", "workers", "device", "shard")


def canonical_json(value: Any) -> str:
    """Return one text for equal data, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(content: bytes | memoryview) -> str:
    """Return the checksum used throughout."""
    return hashlib.sha256(content).hexdigest()


def version_of(package: str) -> str:
    """Return a package's installed version, empty if there is none."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


@lru_cache(maxsize=1)
def git_state() -> dict[str, Any]:
    """Return commit and dirty flag of the checkout that this code runs from, nulls outside a checkout."""
    here = Path(__file__).resolve().parent
    try:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, timeout=10)
        status = subprocess.run(["git", "status", "--porcelain"], cwd=here, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {"git_commit": None, "git_dirty": None}
    if commit.returncode or status.returncode:
        return {"git_commit": None, "git_dirty": None}
    return {"git_commit": commit.stdout.strip(), "git_dirty": bool(status.stdout.strip())}


def catalogue_rows(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the catalogue entries of a configuration, one row for each input with the record of where it is from."""
    rows = []
    for group in GROUPS:
        entries = dict(config.get(group) or {})
        if "name" in entries:  # a group of which a study has one entry, not several by id
            entries = {str(entries["name"]): entries}
        for entry_id, entry in entries.items():
            if isinstance(entry, Mapping):
                sources = entry.get("sources") or {}
                inputs = {key: value for key, value in entry.items() if key != "sources"}
                rows += [
                    {"group": group, "id": str(entry_id), "key": path, **_typed(value), **_source(sources, path)}
                    for path, value in _leaves(inputs)
                ]
    return rows


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every number and text in an entry: `hbm_byte`, `levels[0].latency_s`."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _leaves(each, f"{path}[{index}]")
    elif value is not None:
        yield path, value


def _typed(value: Any) -> dict[str, Any]:
    is_number = isinstance(value, int | float)
    return {"value": float(value) if is_number else None, "text": None if is_number else str(value)}


def _source(sources: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the source record of an input: its own, or that of the list or block it stands in."""
    whole = re.split(r"[.\[]", path)[0]
    source = sources.get(path) or sources.get(whole) or {}
    return {each: source.get(each) for each in ("kind", "ref", "where", "as_printed", "low", "high", "note")}


def identity_of(study: Mapping[str, Any], units: list[str]) -> dict[str, Any]:
    """Return what decides the rows of a run: configuration with its catalogue entries, work units, model version."""
    config = {key: value for key, value in dict(study["config"]).items() if key not in NOT_THE_ROWS}
    identity = {
        "format": FORMAT,
        "study": study["study"],
        "config": config,
        "units": units,
        "flopscape_version": version_of("flopscape"),
    }
    return json.loads(json.dumps(identity))


def first_manifest(study: Mapping[str, Any], identity: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of a run that begins: everything but the rows."""
    catalogue = catalogue_rows(identity["config"])
    return {
        **identity,
        **{key: value for key, value in study.items() if key not in ("config", "study")},
        "is_complete": False,
        "identity_sha256": sha256(canonical_json(identity).encode()),
        "config_sha256": sha256(canonical_json(identity["config"]).encode()),
        "catalogue_sha256": sha256(canonical_json(catalogue).encode()),
        **git_state(),
        "versions": {"python": platform.python_version(), **{name: version_of(name) for name in PACKAGES}},
        "catalogue": catalogue,
    }


def read_manifest(folder: LocalFolder | RemoteFolder) -> dict[str, Any] | None:
    """Return a folder's manifest, None if it has none; refuse one that is no manifest."""
    content = folder.read(MANIFEST)
    if content is None:
        return None
    try:
        manifest = json.loads(content)
        if not isinstance(manifest, dict) or "identity_sha256" not in manifest:
            raise ValueError("has no identity_sha256")
    except ValueError as error:
        raise UserError(
            f"{folder.url}/{MANIFEST}: is no manifest of a run ({error}); delete it or choose another folder"
        ) from error
    return manifest


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield `path: old -> new` for every leaf in which two manifests differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif old != new:
        yield f"{path}: {_short(old)} -> {_short(new)}"


def _short(value: Any) -> str:
    text = canonical_json(value)
    return text if len(text) <= 60 else text[:57] + "..."


def what_changed(old: Mapping[str, Any], identity: Mapping[str, Any]) -> list[str]:
    """Return, in words, what makes two runs different."""
    changes = []
    for key in MUST_MATCH:
        before, after = old.get(key), identity[key]
        if before == after:
            continue
        if key == "units":
            changes.append(f"units: {len(before or [])} -> {len(after)} work units")
        else:
            changes += differences(before, after, "" if key == "config" else key)
    return changes
