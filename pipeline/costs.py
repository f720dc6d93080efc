"""Cost columns of result rows: every basis a column of its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.effects.economics import Economics
from models.evaluate import run_costs
from models.packing import field_names, pack

Table = dict[str, NDArray[Any]]
UNKNOWN_IF_ZERO = ("cloud_usd",)  # nobody has been seen to rent the chip out: unknown, not free


def cost_columns(
    columns: Mapping[str, NDArray[np.float64]], accelerator_count: NDArray[Any], run_time_s: NDArray[np.float64]
) -> Table:
    """Return the fields of `models.effects.economics.RunCost` of each row; NaN where there is no run or no price.

    `columns` hold the fields of `Economics` of each row.
    """
    costs = run_costs(pack(dict(columns), field_names(Economics)), accelerator_count, run_time_s)
    has_run = np.isfinite(run_time_s)
    table = {name: np.where(has_run, values, np.nan) for name, values in costs.items()}
    for name in UNKNOWN_IF_ZERO:
        table[name] = np.where(table[name] > 0.0, table[name], np.nan)
    if "constant_dollar_ratio" in columns:
        table["constant_dollar_ratio"] = columns["constant_dollar_ratio"]
    return table
