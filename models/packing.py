"""Bundles as one float64 matrix: a row a number, a column a point. One transfer a chunk instead of forty."""

from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.point import Architecture, Hardware, Layout, NetworkLevel, Placement, Scenario, Workload
from models.transformer_point import Accelerator, Links, Software, Transformer, TransformerLayout

DEGREES = ("data_ranks", "tensor_model_ranks", "tensor_ff_ranks", "pipeline_ranks", "expert_ranks")
"""The degrees that a placement spreads over network levels, in the order of its columns."""


def field_names(cls: type, prefix: str = "") -> tuple[str, ...]:
    """Return the numeric field names of a bundle, each behind a prefix."""
    return tuple(prefix + each.name for each in fields(cls))


@lru_cache(maxsize=16)
def scenario_names(level_count: int) -> tuple[str, ...]:
    """Return the row names of a packed scenario with this many network levels."""
    names = field_names(Hardware)
    for level in range(level_count):
        names += field_names(NetworkLevel, f"level_{level}_")
    return names + field_names(Architecture) + field_names(Workload)


def layout_names() -> tuple[str, ...]:
    """Return the row names of a packed layout."""
    return field_names(Layout)


@lru_cache(maxsize=16)
def placement_names(level_count: int) -> tuple[str, ...]:
    """Return the row names of a packed placement: each degree on each level, lowest level first."""
    return tuple(f"{degree}_level_{level}" for level in range(level_count) for degree in DEGREES)


def pack(columns: dict[str, NDArray[Any]], names: tuple[str, ...]) -> NDArray[np.float64]:
    """Return the named columns as a float64 matrix (name, point). Missing names raise KeyError."""
    return np.stack([np.asarray(columns[name], dtype=np.float64) for name in names])


def _take(cls: type, values: dict[str, Any], prefix: str = "") -> Any:
    return cls(**{each: values[prefix + each] for each in field_names(cls)})


def scenario_of(rows: Any, level_count: int) -> Scenario:
    """Return the scenario bundle whose numbers are the rows of a packed matrix (or one column of it)."""
    values = dict(zip(scenario_names(level_count), rows, strict=True))
    return Scenario(
        hardware=_take(Hardware, values),
        network=tuple(_take(NetworkLevel, values, f"level_{level}_") for level in range(level_count)),
        architecture=_take(Architecture, values),
        workload=_take(Workload, values),
    )


def layout_of(rows: Any) -> Layout:
    """Return the layout bundle whose numbers are the rows of a packed matrix (or one column of it)."""
    return _take(Layout, dict(zip(layout_names(), rows, strict=True)))


def placement_of(rows: Any, level_count: int) -> Placement:
    """Return the placement bundle whose numbers are the rows of a packed matrix (or one column of it)."""
    values = dict(zip(placement_names(level_count), rows, strict=True))
    levels = range(level_count)
    return Placement(**{d: tuple(values[f"{d}_level_{level}"] for level in levels) for d in DEGREES})


TRANSFORMER_BUNDLES = (Accelerator, Links, Transformer, TransformerLayout, Software)


@lru_cache(maxsize=1)
def transformer_names() -> tuple[str, ...]:
    """Return the row names of a packed point of the calibrated model, without its constants."""
    return tuple(name for cls in TRANSFORMER_BUNDLES for name in field_names(cls))


RECOMPUTE_NAMES = (
    "recompute_matmul_fraction",
    "recompute_attention_fraction",
    "recompute_elementwise_fraction",
    "stored_activation_fraction",
)
"""What a layout recomputes: every choice of it goes with every choice of the rest."""


@lru_cache(maxsize=1)
def transformer_split_names() -> tuple[str, ...]:
    """Return the row names of a packed layout of the calibrated model without what it recomputes."""
    return tuple(name for name in field_names(TransformerLayout) if name not in RECOMPUTE_NAMES)


@lru_cache(maxsize=1)
def transformer_scenario_names() -> tuple[str, ...]:
    """Return the row names of a packed scenario of the calibrated model: the point without its layout."""
    return tuple(name for name in transformer_names() if name not in field_names(TransformerLayout))


def transformer_of(rows: Any) -> tuple[Accelerator, Links, Transformer, TransformerLayout, Software]:
    """Return the bundles whose numbers are the rows of a packed matrix (or one column of it)."""
    values = dict(zip(transformer_names(), rows, strict=True))
    return tuple(_take(cls, values) for cls in TRANSFORMER_BUNDLES)  # pyright: ignore[reportReturnType]
