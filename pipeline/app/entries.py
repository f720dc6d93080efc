"""The entries that a configuration may choose, read from conf once."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pipeline.catalogue import CONF_DIRECTORY, load_chip, load_topology, read_yaml
from pipeline.catalogue_schema import Chip, Topology
from pipeline.errors import UserError

Entry = Mapping[str, Any]


@lru_cache(maxsize=512)
def entry(group: str, name: str) -> Entry:
    """Return an entry of conf; raises UserError if there is none."""
    if name not in names(group):
        raise UserError(f"{group} = {name!r}: no such entry; choose one of conf/{group}")
    return read_yaml(CONF_DIRECTORY / group / f"{name}.yaml")


@lru_cache(maxsize=16)
def names(group: str) -> tuple[str, ...]:
    """Return the ids of a group's entries."""
    return tuple(sorted(path.stem for path in (CONF_DIRECTORY / group).glob("*.yaml")))


@lru_cache(maxsize=128)
def chip(name: str) -> Chip:
    """Return an accelerator of the catalogue."""
    return load_chip(entry("hardware", name), f"hardware/{name}.yaml")


@lru_cache(maxsize=128)
def topology(name: str) -> Topology:
    """Return a network of the catalogue."""
    return load_topology(entry("topology", name), f"topology/{name}.yaml")


def is_named_model(name: str) -> bool:
    """Return whether a model is one shape and not a family of sizes."""
    return entry("model", name).get("kind") != "family"
