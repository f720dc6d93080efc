"""A run's model: the catalogue's entry of its name, and what that entry knows of a shape that a source left out."""

import re
from collections.abc import Mapping

from pipeline.catalogue import ModelShape
from pipeline.runs_table import Row

KNOWN = {
    "n_layers": "layer_count",
    "d_model": "d_model",
    "d_ff": "d_ff",
    "n_heads": "head_count",
    "n_kv_heads": "kv_head_count",
    "head_dim": "head_dim",
    "vocab": "vocabulary",
    "ffn_type": "ffn_kind",
    "n_experts": "expert_count",
    "top_k": "expert_top_k",
    "n_shared_experts": "shared_expert_count",
    "moe_d_ff": "expert_d_ff",
}
"""Columns that the catalogue's entry of a named model fills where they are blank."""


def known_model(row: Row, models: Mapping[str, ModelShape]) -> ModelShape | None:
    """Return the catalogue's entry of a run's model: by its name, spelling aside, or by the longest it starts with.

    Where only the start of the name agrees, the width must agree too: a smaller sibling is another model.
    """
    name = re.sub("[^a-z0-9]", "", row["model_name"].lower())
    plain = {re.sub("[^a-z0-9]", "", each): model for each, model in models.items()}
    if name in plain:
        return plain[name]
    near = [each for each, model in plain.items() if name.startswith(each) and model.d_model == row["d_model"]]
    return plain[max(near, key=len)] if near else None


def with_known_shape(row: Row, models: Mapping[str, ModelShape]) -> tuple[Row, bool]:
    """Return (the row with what its model's entry knows in place of blank shape cells, whether any was filled).

    An entry of another width is another variant of the model, and fills nothing.
    """
    known = known_model(row, models)
    if known is None or (row["d_model"] and row["d_model"] != known.d_model):
        return row, False
    blank = [name for name in KNOWN if row[name] in (None, "") and name not in row["unreadable"]]
    if known.attention_kind == "mla" and "head_dim" in blank:
        blank.remove("head_dim")  # an MLA head has three widths, and they come from the entry anyway
    filled = {name: getattr(known, KNOWN[name]) for name in blank if getattr(known, KNOWN[name])}
    is_dense = filled.get("n_experts") == 1.0
    return {**row, **filled}, bool(set(filled) - ({"n_experts", "top_k", "n_shared_experts"} if is_dense else set()))
