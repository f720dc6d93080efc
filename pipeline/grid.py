"""The scenarios of a study in a fixed order: which block of them an id lies in, and how blocks come from entries.

A grid is a list of blocks, one for each (hardware, topology, model, physics), each decoded on demand. Nothing here
holds the whole product.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.scaling import FamilyPoints, family_points, family_widths
from pipeline.accelerators import accelerator_fields, capacity_byte, link_fields, precision_fields
from pipeline.block import COUNT_AXIS, RATIO, Block
from pipeline.catalogue import (
    Chip,
    Topology,
    hardware_fields,
    load_chip,
    load_topology,
    network_fields,
    resolved_precision,
    word_byte,
)
from pipeline.economics import load_economics
from pipeline.errors import UserError, closest
from pipeline.families import kept_sizes, load_family
from pipeline.physics import PhysicsEntry
from pipeline.physics_calibrated import CalibratedEntry, load_preset
from pipeline.study_config import StudyConfig
from pipeline.transformer_points import transformer_columns, with_run_settings
from pipeline.variants import assumption_variants, price_axis, variant_axis

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]
NO_LOCAL_STEPS = {  # sites in step
    "local_step_count": 1.0,
    "exchange_compression_ratio": 1.0,
    "exchange_hidden_fraction": 0.0,
    "token_penalty_per_doubling": 0.0,
}


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All scenarios of a study, in a fixed order."""

    study: StudyConfig
    blocks: tuple[Block, ...]
    skipped: tuple[str, ...] = ()  # what was asked for and has no scenarios, each with the reason

    @cached_property
    def starts(self) -> Int64:
        """Index of the first scenario of each block, and the total at the end."""
        return np.concatenate([[0], np.cumsum([block.size for block in self.blocks])]).astype(np.int64)

    @property
    def size(self) -> int:
        """Number of scenarios."""
        return int(self.starts[-1])

    def parts(self, start: int, stop: int) -> list[tuple[Block, Int64, Int64]]:
        """Return (block, indices inside it, scenario ids) for a range of scenario ids."""
        result = []
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        for number in range(first, len(self.blocks)):
            begin, end = max(start, int(self.starts[number])), min(stop, int(self.starts[number + 1]))
            if begin >= end:
                break
            ids = np.arange(begin, end, dtype=np.int64)
            result.append((self.blocks[number], ids - self.starts[number], ids))
        return result


def build_grid(study: StudyConfig) -> Grid:
    """Return the grid of a study; raises UserError (one line) for any entry or axis that is wrong."""
    physics = [load_preset(entry, f"physics/{key}.yaml", key) for key, entry in study.entries["physics"].items()]
    chips = [load_chip(entry, f"hardware/{key}.yaml") for key, entry in study.entries["hardware"].items()]
    topologies = [load_topology(entry, f"topology/{key}.yaml") for key, entry in study.entries["topology"].items()]
    blocks, skipped = [], []
    for chip in chips:
        for topology in topologies:
            if topology.only_hardware and chip.id not in topology.only_hardware:
                skipped.append(f"{chip.id} on {topology.id} (only_hardware: a network of other chips)")
                continue
            for model, entry in study.entries["model"].items():
                for preset in physics:
                    blocks.append(_block(study, chip, topology, model, entry, preset))
    run = study.run
    bounds = f"{run.training_flop_minimum:g} to {run.training_flop_maximum:g}"
    empty = dict.fromkeys(block.model for block in blocks if block.size == 0)
    skipped += [f"{model} (no size of it within run.training_flop_minimum, _maximum = {bounds})" for model in empty]
    grid = Grid(study=study, blocks=tuple(block for block in blocks if block.size), skipped=tuple(skipped))
    if not blocks:
        raise UserError(
            f"config.yaml: topology = {', '.join(each.id for each in topologies)}: the sweep is empty; "
            f"none of them is for {', '.join(chip.id for chip in chips)} (only_hardware), choose topology=vendor"
        )
    if grid.size == 0:
        raise UserError(
            f"config.yaml: run.training_flop_minimum, _maximum = {bounds}: the sweep is empty; "
            "no model of the family lies between them, widen the bounds"
        )
    return grid


def _block(
    study: StudyConfig,
    chip: Chip,
    topology: Topology,
    model: str,
    entry: Mapping[str, Any],
    physics: PhysicsEntry | CalibratedEntry,
) -> Block:
    precision = resolved_precision(chip, study.run.precision)
    if isinstance(physics, CalibratedEntry):
        level_count, points = 2, transformer_columns(model, entry, study.run)
        fixed = {**accelerator_fields(chip, study.run.precision), **link_fields(chip, topology), **physics.software}
        fixed |= precision_fields(precision) | {"hbm_byte": capacity_byte(chip)}
    else:
        network = network_fields(chip, topology)
        level_count, points = len(network), _family_columns(study, model, entry)
        fixed = {**hardware_fields(chip, study.run.precision), "word_byte": word_byte(precision)}
        for level, numbers in enumerate(network):
            fixed |= {f"level_{level}_{name}": float(value) for name, value in numbers.items()}
    has_sites = topology.local_step_count is not None and not isinstance(physics, CalibratedEntry)
    if has_sites:  # the top level joins sites; the calibrated physics knows two levels and no sites
        fixed |= {name: getattr(topology, name) or default for name, default in NO_LOCAL_STEPS.items()}
    settings = load_economics(study.economics_entry, f"economics/{study.economics}.yaml")
    prices = price_axis(chip, settings, study.price_dates)
    fixed |= {name: float(value) for name, value in prices.changes[0].items()}
    fixed |= {"run_limit_s": study.run.limit_s, COUNT_AXIS: float(study.run.accelerator_count)}
    for name, _ in study.axes:
        _check_axis(name, [*fixed, *points], chip.id)
    variants = study.variants
    if isinstance(variants, str):
        variants = assumption_variants(chip, topology, settings, fixed, precision)
    changes = variant_axis(variants, [*fixed, *points], f"{chip.id} on {topology.id}")
    return Block(
        hardware=chip.id,
        topology=topology.id,
        model=model,
        physics=physics,
        precision=precision,
        level_count=level_count,
        fixed=fixed,
        points=points,
        axes=study.axes,
        named_axes=(prices, changes),
    )


def _family_columns(study: StudyConfig, model: str, entry: Mapping[str, Any]) -> dict[str, Float64]:
    file = f"model/{model}.yaml"
    if entry.get("kind") != "family":
        raise UserError(
            f"{file}: kind = {entry.get('kind')!r}: physics epoch2024 knows model families only; "
            "choose model=dense, or physics=calibrated for a named model"
        )
    rules = load_family(entry, file)
    points: FamilyPoints = family_points(rules, family_widths(rules))
    run = study.run
    low, high, near = run.training_flop_minimum, run.training_flop_maximum, run.training_flop_near
    keep = kept_sizes(points.training_flop, minimum=low, maximum=high, near=near)
    names = FamilyPoints.__dataclass_fields__
    columns = {name: getattr(points, name)[keep].astype(np.float64) for name in names}
    return with_run_settings(columns, run)


def _check_axis(name: str, known: list[str], chip: str) -> None:
    base = name if name in known else name.removesuffix(RATIO)
    derived = ("parameter_count", "training_flop", "d_model", "d_ff", "layer_count", "expert_count")
    allowed = [each for each in known if each not in derived]
    if base not in allowed:
        close = closest(base, allowed)
        remedy = f"did you mean {' or '.join(close)}? " if close else f"choose one of {', '.join(sorted(allowed))}, "
        raise UserError(
            f"config.yaml: axes.{name}: {chip} has no such number to vary; {remedy}or one with {RATIO} to multiply it"
        )
