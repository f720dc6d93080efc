"""The catalogue: chips, networks and models as data, each number with its source.

`load_*` checks one entry; `hardware_fields` and `network_fields` turn entries into what the physics takes;
`read_entries` reads whole folders (the repository's and the user's own).
"""

import math
import sysconfig
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf.errors import OmegaConfBaseException

from pipeline.catalogue_load import fail, load_chip, load_model, load_topology
from pipeline.catalogue_schema import PRECISION_WORD_BYTE, Chip, ModelShape, NetworkLevelSpec, Source, Topology
from pipeline.errors import UserError
from pipeline.yaml_file import load

__all__ = [
    "CONF_DIRECTORY",
    "Chip",
    "ModelShape",
    "NetworkLevelSpec",
    "Source",
    "Topology",
    "hardware_fields",
    "load_chip",
    "load_model",
    "load_topology",
    "network_fields",
    "read_entries",
    "read_yaml",
    "resolved_precision",
    "word_byte",
]

_CHECKOUT = Path(__file__).resolve().parent.parent / "conf"
CONF_DIRECTORY = _CHECKOUT if _CHECKOUT.is_dir() else Path(sysconfig.get_path("data")) / "share" / "flopscape" / "conf"
LOADERS = {"hardware": load_chip, "topology": load_topology, "model": load_model}
LIGHT_M_PER_S = 299792458.0
FIBRE_REFRACTION_RATIO = 1.468  # group index of standard single-mode fibre (ITU-T G.652) at 1550 nm


def resolved_precision(chip: Chip, precision: str) -> str:
    """Return the precision meant: `auto` is bf16 where the chip has it, else fp16, else fp32."""
    if precision == "auto":
        return next(name for name in ("bf16", "fp16", "fp32") if peak_flop_per_s(chip, name) or name == "fp32")
    if precision not in PRECISION_WORD_BYTE:
        known = ", ".join(["auto", *PRECISION_WORD_BYTE])
        raise fail(chip.file, "precision", precision, f"must be one of {known}", "choose one")
    return precision


def word_byte(precision: str) -> float:
    """Return the bytes of one number at a resolved precision."""
    return PRECISION_WORD_BYTE[precision]


def peak_flop_per_s(chip: Chip, precision: str) -> float | None:
    """Return the dense peak of the chip at a resolved precision, None where it has none."""
    return getattr(chip, f"peak_dense_{precision}_flop_per_s")


def hardware_fields(chip: Chip, precision: str) -> dict[str, float]:
    """Return the fields of `models.point.Hardware` for a chip at a precision."""
    resolved = resolved_precision(chip, precision)
    peak = peak_flop_per_s(chip, resolved)
    if not peak:
        has = [name for name in PRECISION_WORD_BYTE if peak_flop_per_s(chip, name)]
        rule = f"{chip.id} has no {resolved} peak"
        raise fail(
            chip.file, f"peak_dense_{resolved}_flop_per_s", peak, rule, f"choose precision auto or {', '.join(has)}"
        )
    names = (
        "sustained_fraction",
        "multiprocessor_count",
        "register_blocks_per_multiprocessor",
        "register_block_byte",
        "shared_memory_byte_per_s",
        "has_distributed_shared_memory",
        "l2_byte",
        "l2_byte_per_s",
        "hbm_byte",
        "hbm_byte_per_s",
    )
    latency_s = chip.matmul_latency_s or 0.0
    return {"peak_flop_per_s": peak, **{name: getattr(chip, name) for name in names}, "matmul_latency_s": latency_s}


def network_fields(chip: Chip, topology: Topology) -> list[dict[str, float]]:
    """Return the fields of `models.point.NetworkLevel` per level, lowest first; the last has infinite group_ranks.

    Topology `vendor` means the chip's own `network_levels` where it has them.
    """
    own = topology.id == "vendor" and chip.network_levels
    levels = chip.network_levels if own else topology.levels
    where = f"{chip.file} on {topology.file}"
    # A level that joins one unit of the level below does nothing: drop it (a chip with no scale-up domain).
    useful = [spec for spec in levels if spec is levels[-1] or _given(chip, spec, "group_ranks", "ranks") != 1.0]
    return [_level_fields(chip, spec, where, is_last=spec is levels[-1]) for spec in useful]


def _given(chip: Chip, spec: NetworkLevelSpec, key: str, chip_key: str) -> float | None:
    """Return a number of a level: its own, or that of the chip's link it uses, or None."""
    own = getattr(spec, key)
    if own is not None or not spec.takes_from:
        return own
    link = getattr(chip, f"{spec.takes_from}_{chip_key}", None)
    if (
        link is None and chip.network_levels
    ):  # a chip that lists its levels: its first is its scale-up, its last its scale-out
        return getattr(chip.network_levels[0 if spec.takes_from == "scale_up" else -1], key)
    return link


def _level_fields(chip: Chip, spec: NetworkLevelSpec, where: str, *, is_last: bool) -> dict[str, float]:
    def value(key: str, chip_key: str) -> float:
        found = _given(chip, spec, key, chip_key)
        if found is None:
            name = f"{spec.takes_from}_{chip_key}" if spec.takes_from else key
            raise fail(where, name, None, "the network needs it", "give it in the chip or choose another topology")
        return float(found)

    fibre_s = (spec.distance_m or 0.0) * FIBRE_REFRACTION_RATIO / LIGHT_M_PER_S
    return {
        "group_ranks": math.inf if is_last else value("group_ranks", "ranks"),
        "one_way_byte_per_s": value("one_way_byte_per_s", "one_way_byte_per_s") / (spec.oversubscription_ratio or 1.0),
        "latency_s": value("latency_s", "latency_s") + fibre_s,
    }


def read_yaml(path: Path) -> Mapping[str, Any]:
    """Return a YAML file as plain Python (OmegaConf's reading of numbers: 9.89e+14 is a number), read once."""
    try:
        state = path.stat()
    except OSError as error:
        raise UserError(f"{path}: cannot be read as YAML: {error.strerror}; correct the path") from error
    return _read_yaml(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1024)
def _read_yaml(path: Path, mtime_ns: int, size: int) -> Mapping[str, Any]:
    """Return the content of a file in the state that its time and size name; callers must not change it."""
    del mtime_ns, size
    try:
        content = load(path)
    except (OSError, OmegaConfBaseException, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read as YAML: {str(error).splitlines()[0]}; correct the file") from error
    if not isinstance(content, Mapping):
        raise UserError(
            f"{path}: must be a mapping of keys to values, got {type(content).__name__}; see the README's recipe"
        )
    return content  # pyright: ignore[reportReturnType]


def read_entries(group: str, directories: Sequence[Path] = (CONF_DIRECTORY,)) -> dict[str, Any]:
    """Return the entries of a group (hardware, topology, model) by id; a later folder overrides an earlier one.

    Model families (kind: family) are left out: they are scaling rules, not shapes.
    """
    entries = {}
    for directory in directories:
        for path in sorted((Path(directory) / group).glob("*.yaml")):
            content = read_yaml(path)
            if group != "model" or content.get("kind") != "family":
                entries[path.stem] = LOADERS[group](content, f"{group}/{path.name}")
    return dict(sorted(entries.items()))
