"""Several sites with local steps (DiLoCo): each site trains as if alone, and weights are exchanged every few steps.

A site is a group of the network level below the top. With `local_step_count` 1 nothing here applies: the sites run in
step, and the top level carries whatever the layout sends across it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.effects.sites import LocalSteps
from models.evaluate import SITE_NUMBERS, site_outcomes
from models.packing import field_names, pack
from pipeline.costs import cost_columns
from pipeline.errors import UserError

Table = dict[str, NDArray[Any]]
Float64 = NDArray[np.float64]
Columns = Mapping[str, Float64]


def site_counts(columns: Columns, accelerator_count: Float64, level_count: int) -> Float64:
    """Return how many sites so many accelerators fill."""
    if "pod_ranks" in columns:  # the calibrated physics: a site is a pod
        return np.maximum(np.ceil(accelerator_count / columns["pod_ranks"]), 1.0)
    ranks = np.ones_like(accelerator_count)
    for level in range(level_count - 1):
        ranks = ranks * columns[f"level_{level}_group_ranks"]
    return np.maximum(np.ceil(accelerator_count / ranks), 1.0)


def site_link(columns: Columns, level_count: int) -> tuple[Float64, Float64]:
    """Return (one-way bandwidth of an accelerator, latency) of the network between sites."""
    if "pod_ranks" in columns:
        return columns["top_byte_per_s"], columns["top_latency_s"]
    top = f"level_{level_count - 1}"
    return columns[f"{top}_one_way_byte_per_s"], columns[f"{top}_latency_s"]


def sites_apart(columns: Columns, level_count: int) -> Float64:
    """Return the sites of scenarios that do not run in step, 1 elsewhere; refuse those that cannot be split evenly."""
    count, batch = columns["accelerator_count"], columns["global_batch_token"]
    local = columns["local_step_count"] > 1.0
    if np.any(local & (count == 0.0)):
        raise UserError(
            "config.yaml: local_step_count > 1: needs a number of accelerators; give run.accelerator_count, or an axis"
        )
    sites = np.where(local, site_counts(columns, count, level_count), 1.0)
    uneven = (count % sites != 0) | (batch % (sites * columns["sequence_token"]) != 0)
    if uneven.any():
        at = int(np.nonzero(uneven)[0][0])
        raise UserError(
            f"config.yaml: local_step_count > 1: {sites[at]:g} sites must share {count[at]:g} accelerators and "
            f"{batch[at]:g} tokens of a batch evenly; choose numbers that {sites[at]:g} divides"
        )
    return sites


def of_one_site(columns: Columns, sites: Float64) -> dict[str, Float64]:
    """Return the scenarios that one site sees: its accelerators, its part of the batch, as many steps."""
    names = ("accelerator_count", "global_batch_token", "dataset_token", "training_flop")
    return {**columns, **{name: columns[name] / sites for name in names}}


def exchange(columns: Columns, sites: Float64, site_step_time_s: Float64, level_count: int) -> dict[str, Float64]:
    """Return the fields of `SiteOutcome` of each scenario."""
    link_byte_per_s, latency_s = site_link(columns, level_count)
    word_byte = columns["word_byte"] if "word_byte" in columns else columns["weight_byte"]
    numbers = {
        "parameter_byte": columns["parameter_count"] * word_byte,
        "site_count": sites,
        "site_one_way_byte_per_s": link_byte_per_s * columns["accelerator_count"] / sites,
        "site_latency_s": latency_s,
        "site_step_time_s": site_step_time_s,
    }
    names = field_names(LocalSteps)
    return site_outcomes(np.concatenate([pack(dict(columns), names), pack(numbers, SITE_NUMBERS)]))


def with_sites(table_of: Callable[[Columns], Table], columns: Columns, level_count: int) -> Table:
    """Return the rows of scenarios on a network of sites; `table_of` makes the rows of scenarios, one each, in order.

    Sites in step are rows as any. Sites apart are the rows of one site, with the exchange added and multiplied out.
    """
    sites = sites_apart(columns, level_count)
    apart = sites > 1.0
    table = table_of(of_one_site(columns, sites))
    if apart.any():
        outcome = exchange(columns, sites, table["step_time_s"], level_count)
        step_s = np.where(apart, outcome["step_time_s"], table["step_time_s"])
        longer = step_s / table["step_time_s"]
        penalty = np.where(apart, outcome["token_penalty_ratio"], 1.0)
        table["model_flop_utilisation_fraction"] = table["model_flop_utilisation_fraction"] / longer
        table["run_time_s"] = table["run_time_s"] * longer * penalty
        table["step_time_s"] = step_s
        table["exchange_time_s"] = np.where(apart, outcome["exchange_time_s"], 0.0)
        table["token_penalty_ratio"] = penalty
        for name in ("accelerator_count", "data_ranks", f"data_ranks_level_{level_count - 1}"):
            if name in table:
                table[name] = table[name] * sites.astype(np.int64)
        table |= {name: columns[name] for name in ("training_flop", "dataset_token", "global_batch_token")}
        table |= cost_columns(columns, table["accelerator_count"], table["run_time_s"])
    table["site_count"] = site_counts(columns, table["accelerator_count"].astype(np.float64), level_count)
    table["local_step_count"] = columns["local_step_count"]
    table["site_link_one_way_byte_per_s"], table["site_link_latency_s"] = site_link(columns, level_count)
    return table
