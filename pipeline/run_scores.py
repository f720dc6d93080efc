"""How far predictions are from measurements, in the few numbers that validation and calibration report."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Float64 = NDArray[np.float64]
Score = Mapping[str, float | int | None]
FAR_QUANTILE = 0.9


def relative_error(predicted: Float64, measured: Float64) -> Float64:
    """Return predicted / measured - 1."""
    return predicted / measured - 1.0


def score(predicted: Float64, measured: Float64, amount: Float64 | None = None) -> dict[str, float | int | None]:
    """Return rows, median and 90th percentile of the absolute error, bias (median error), rank correlation.

    The correlation (Spearman) is that of amount / predicted with amount / measured: with tokens per accelerator as the
    amount that of throughput, with none that of the predictions themselves. What too few rows cannot give is None.
    """
    count = len(predicted)
    if count == 0:
        return {"rows": 0} | dict.fromkeys(("median_abs_error", "p90_abs_error", "bias", "rank_correlation"))
    error = relative_error(predicted, measured)
    pair = (predicted, measured) if amount is None else (amount / predicted, amount / measured)
    return {
        "rows": count,
        "median_abs_error": float(np.median(np.abs(error))),
        "p90_abs_error": float(np.quantile(np.abs(error), FAR_QUANTILE)),
        "bias": float(np.median(error)),
        "rank_correlation": rank_correlation(*pair),
    }


def rank_correlation(first: Float64, second: Float64) -> float | None:
    """Return Spearman's rank correlation; None where fewer than two different values are ranked on either side."""
    if len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        return None
    return float(np.corrcoef(mean_ranks(first), mean_ranks(second))[0, 1])


def mean_ranks(values: Float64) -> Float64:
    """Return the rank of each value, equal values sharing their mean rank."""
    _, group, count = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count - 1) / 2.0)[group].astype(np.float64)
