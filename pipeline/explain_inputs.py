"""Every input of one scenario with unit, meaning and where it comes from."""

from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.packing import TRANSFORMER_BUNDLES
from models.point import Architecture, Hardware, Layout, NetworkLevel, Physics, Workload
from models.transformer_point import Constants, Links, Software, Transformer
from pipeline.block import Block
from pipeline.catalogue import Chip, load_chip
from pipeline.catalogue_schema import Source
from pipeline.columns import GLOSSARY
from pipeline.economics import economics_inputs, load_economics
from pipeline.errors import UserError
from pipeline.grid import Grid

LEVEL_KEYS = {"group_ranks": "ranks", "one_way_byte_per_s": "one_way_byte_per_s", "latency_s": "latency_s"}
RECORD_KEYS = ("ref", "kind", "where", "as_printed", "note")
UNCERTAIN = ("assumption", "unverified")
BUNDLES = (Hardware, NetworkLevel, Architecture, Workload, Layout, Physics, Constants, Economics)
CHIP_KEYS = {
    "achievable_matmul_fraction": "sustained_fraction",
    "processor_count": "multiprocessor_count",
    "exponential_per_s": "multiprocessor_count",
}
LINK_KEYS = {
    "scale_up_byte_per_s": "scale_up_one_way_byte_per_s",
    "scale_out_byte_per_s": "scale_out_one_way_byte_per_s",
    "domain_ranks": "scale_up_ranks",
}
Record = dict[str, Any]


@lru_cache(maxsize=1)
def declared() -> dict[str, tuple[str, str]]:
    """Return (unit, meaning) of every number by the field that declares it."""
    bundles = (*TRANSFORMER_BUNDLES, *BUNDLES)
    return {each.name: (each.metadata["unit"], each.metadata["meaning"]) for cls in bundles for each in fields(cls)}


def unit_and_meaning(name: str) -> tuple[str, str]:
    """Return (unit, meaning) of a number."""
    base = name.split("_", 2)[2] if name.startswith("level_") else name
    if base in declared():
        return declared()[base]
    column = GLOSSARY.get(name)
    return (column.unit, column.meaning) if column else ("", "")


def source_record(source: Source | None, default: str) -> Record:
    """Return where a number comes from, as plain data."""
    if source is None:
        return {"ref": default, "kind": "derived", "where": "", "as_printed": "", "note": ""}
    return {name: getattr(source, name) for name in RECORD_KEYS}


def chip_source(block: Block, chip: Chip, name: str) -> Source | None:
    """Return the catalogue's source of a number of the accelerator."""
    if name in ("peak_flop_per_s", "peak_linear_flop_per_s"):
        return chip.sources.get(f"peak_dense_{block.precision}_flop_per_s")
    if name == "peak_16bit_flop_per_s":
        return chip.sources.get("peak_dense_bf16_flop_per_s") or chip.sources.get("peak_dense_fp16_flop_per_s")
    return chip.sources.get(CHIP_KEYS.get(name, name))


def network_source(block: Block, chip: Chip, topology: Mapping[str, Any], name: str) -> Source | None:
    """Return the source of a number of the network: the chip's own link, or none where the topology gives it."""
    if not name.startswith("level_"):
        return chip.sources.get(LINK_KEYS.get(name, ""))
    _, level, quantity = name.split("_", 2)
    if block.topology == "vendor" and chip.network_levels:
        return chip.sources.get("network_levels")
    taken = topology["levels"][min(int(level), len(topology["levels"]) - 1)].get("from")
    return chip.sources.get(f"{taken}_{LEVEL_KEYS[quantity]}") if taken else None


def cost_basis(grid: Grid, chip: Chip) -> Mapping[str, str]:
    """Return the words behind each economic number; empty for a chip that has no price or power."""
    study = grid.study
    try:
        settings = load_economics(study.economics_entry, f"economics/{study.economics}.yaml")
        return economics_inputs(chip, settings).basis
    except UserError:
        return {}


def scenario_inputs(grid: Grid, block: Block, columns: Mapping[str, NDArray[np.float64]]) -> list[Record]:
    """Return every input of one scenario: name, value, unit, meaning, file, source."""
    study = grid.study
    chip = load_chip(study.entries["hardware"][block.hardware], f"hardware/{block.hardware}.yaml")
    topology = study.entries["topology"][block.topology]
    family = study.entries["model"][block.model]
    words = cost_basis(grid, chip)
    varied = set(block.varied)
    economic, soft = {each.name for each in fields(Economics)}, {each.name for each in fields(Software)}
    shape = {each.name for each in fields(Transformer)} | set(block.points)
    records = []
    for name, values in columns.items():
        unit, meaning = unit_and_meaning(name)
        source, default = chip_source(block, chip, name), f"hardware/{block.hardware}.yaml"
        origin = default
        if name in varied:
            origin, source, default = "config.yaml axes", None, "config.yaml axes"
        elif name.startswith("level_") or name in {each.name for each in fields(Links)}:
            origin = f"topology/{block.topology}.yaml"
            source, default = network_source(block, chip, topology, name), origin
        elif name in shape:
            origin, source, default = f"model/{block.model}.yaml", None, str(family.get("name", block.model))
        elif name in economic:
            origin, source = f"economics/{study.economics}.yaml", None
            default = words.get(name, "no price or power is known")
        elif name in soft:
            origin = f"physics/{block.physics.id}.yaml software"
            source, default = None, origin
        elif name in ("run_limit_s", "accelerator_count", "word_byte"):
            origin, source, default = "config.yaml run", None, "config.yaml run"
        number = float(np.asarray(values)[0])
        record = {"name": name, "value": number if np.isfinite(number) else None, "unit": unit, "meaning": meaning}
        records.append(record | {"from": origin, "source": source_record(source, default)})
    return records + physics_inputs(grid, block)


def physics_inputs(grid: Grid, block: Block) -> list[Record]:
    """Return the constants of the physics with their sources."""
    entry = grid.study.entries["physics"][block.physics.id]
    records = []
    for name, value in block.physics.constants.items():
        unit, meaning = unit_and_meaning(name)
        given = entry["sources"].get(name, {})
        source = {key: given.get(key, "") for key in RECORD_KEYS}
        origin = f"physics/{block.physics.id}.yaml"
        records.append(
            {"name": name, "value": value, "unit": unit, "meaning": meaning, "from": origin, "source": source}
        )
    return records
