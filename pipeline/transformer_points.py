"""The model points of the calibrated physics: named models and families, with what is trained on them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.scaling import family_points, family_widths
from pipeline.catalogue import load_model
from pipeline.catalogue_load import fail
from pipeline.catalogue_parameters import parameter_counts
from pipeline.families import kept_sizes, load_family
from pipeline.shapes import family_transformer, transformer_fields
from pipeline.study_config import RunSettings

Float64 = NDArray[np.float64]
FAMILY_HEAD_DIM = 128.0  # width of one head of nearly every large model since GPT-3 (Brown et al. 2020, table 2.1)
FAMILY_VOCABULARY = 128256.0  # Llama 3 (arXiv 2407.21783), section 3.2
TOKENS_PER_PARAMETER = 20.0  # Hoffmann et al. 2022 (arXiv 2203.15556), table 3
CRITICAL_BATCH_TOKEN, CRITICAL_BATCH_FLOP = 2048.0**2, 3e23  # arXiv 2411.01137, batch scaling
CRITICAL_BATCH_EXPONENT = 1.0 / 6.0


def transformer_columns(model: str, entry: Mapping[str, Any], run: RunSettings) -> dict[str, Float64]:
    """Return the points of one model entry: fields of `Transformer`, batch, dataset, parameters, training FLOP.

    A family gives a point a width; a named model one point, trained on its published tokens (or 20 a parameter) with
    its published batch (or the critical batch of its compute). Raises UserError in one line.
    """
    file = f"model/{model}.yaml"
    if entry.get("kind") == "family":
        columns = with_run_settings(_family_columns(entry, file), run)
    else:
        columns = _named_columns(entry, file, run)
    low, high, near = run.training_flop_minimum, run.training_flop_maximum, run.training_flop_near
    keep = kept_sizes(columns["training_flop"], minimum=low, maximum=high, near=near)
    return {name: values[keep] for name, values in columns.items()}


def with_run_settings(columns: dict[str, Float64], run: RunSettings) -> dict[str, Float64]:
    """Return a family's points with the dataset, batch and sequence that the run settings fix; FLOP follow tokens."""
    changed = dict(columns)
    if run.dataset_token:
        changed["training_flop"] = columns["training_flop"] * run.dataset_token / columns["dataset_token"]
        changed["dataset_token"] = np.full_like(columns["dataset_token"], run.dataset_token)
    for name in ("global_batch_token", "sequence_token"):
        if getattr(run, name):
            changed[name] = np.full_like(columns[name], getattr(run, name))
    return changed


def _family_columns(entry: Mapping[str, Any], file: str) -> dict[str, Float64]:
    """Attention adds 4 d_model^2 weights a layer to the rule's feed-forward weights; D = 20 P and C follow."""
    rules = load_family(entry, file)
    points = family_points(rules, family_widths(rules))
    names = type(points).__dataclass_fields__
    plain = {name: getattr(points, name).astype(np.float64) for name in names}
    attention = 4.0 * plain["d_model"] ** 2 * plain["layer_count"]
    parameters = plain["parameter_count"] + attention
    active = plain["parameter_count"] / plain["expert_count"] + attention
    dataset = rules.dataset_token_per_parameter * parameters
    transformer = family_transformer(plain, head_dim=FAMILY_HEAD_DIM, vocabulary=FAMILY_VOCABULARY)
    return transformer | {
        "global_batch_token": plain["global_batch_token"],
        "dataset_token": dataset,
        "parameter_count": parameters,
        "active_parameter_count": active,
        "training_flop": 6.0 * active * dataset,
        "d_model": plain["d_model"],
        "d_ff": plain["d_ff"],
    }


def _named_columns(entry: Mapping[str, Any], file: str, run: RunSettings) -> dict[str, Float64]:
    model = load_model(entry, file)
    if model.kind != "shape":
        raise fail(
            file, "kind", model.kind, "this physics needs the shape of a transformer", "choose a kind: shape model"
        )
    numbers = transformer_fields(model)
    total, active = parameter_counts(model)
    dataset = run.dataset_token or model.published.training_token or TOKENS_PER_PARAMETER * total
    flop = 6.0 * active * dataset
    batch = run.global_batch_token or model.published.global_batch_token
    if not batch:
        batch = CRITICAL_BATCH_TOKEN * (flop / CRITICAL_BATCH_FLOP) ** CRITICAL_BATCH_EXPONENT
    sequence = run.sequence_token or numbers["sequence_token"]
    numbers |= {"sequence_token": sequence, "window_token": min(numbers["window_token"], sequence)}
    sequences = max(1, round(batch / sequence))
    numbers |= {
        "global_batch_token": sequences * sequence,
        "dataset_token": float(dataset),
        "parameter_count": total,
        "active_parameter_count": active,
        "training_flop": flop,
        "d_model": float(model.d_model or 0.0),
        "d_ff": float(model.d_ff or 0.0),
    }
    return {name: np.array([value]) for name, value in numbers.items()}
