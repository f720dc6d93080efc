"""Fitting of the calibrated model's constants: robust Gauss-Newton in logarithms, with priors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from models.evaluate_layouts import transformer_outcomes
from models.packing import pack, transformer_names
from pipeline.calibrate_priors import Prior
from pipeline.physics_calibrated import constants_bundle

Float64 = NDArray[np.float64]
Mask = NDArray[np.bool_]
ERROR_SCALE = 0.06  # log error at which a row starts to count as an outlier: repeats of a run differ by 1 to 9%
FREEDOM = 3.0  # degrees of freedom of the Student-t loss
DIFFERENCE = 1e-5  # step of the logarithm in central differences
LONGEST_STEP, EARLY_STEPS, EARLY_SHARE = 0.4, 3, 0.7
CLOSE = 1e-4
CHUNK = 256  # runs in one call: few, and evaluated thousands of times


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Measured values, what predicts them, and what is believed of the constants."""

    points: Float64  # packed (row of `transformer_names`, run)
    measured: Float64
    families: NDArray[np.str_]
    is_used: Mask
    constants: Mapping[str, float]  # all; the fitted ones are replaced
    priors: Mapping[str, Prior]
    field: str = "step_time_s"

    @cached_property
    def centres(self) -> Float64:
        """Logarithms of the priors' centres."""
        return np.log([each.centre for each in self.priors.values()])

    def values(self, offsets: Float64) -> dict[str, float]:
        """Return the fitted constants at offsets of their logarithms from the priors' centres."""
        return dict(zip(self.priors, np.exp(self.centres + offsets).tolist(), strict=True))

    def predicted(self, offsets: Float64) -> Float64:
        """Return the prediction of every run."""
        constants = constants_bundle({**self.constants, **self.values(offsets)})
        return transformer_outcomes(self.points, constants, CHUNK)[self.field]

    def slopes(self, offsets: Float64) -> Float64:
        """Return d log prediction / d log constant, an array (run, constant), by central differences."""
        columns = []
        for index in range(len(offsets)):
            step = np.zeros_like(offsets)
            step[index] = DIFFERENCE
            above, below = self.predicted(offsets + step), self.predicted(offsets - step)
            columns.append(np.log(above / below) / (2.0 * DIFFERENCE))
        return np.stack(columns, axis=-1)

    def weights(self, mask: Mask) -> Float64:
        """Return the weight of each run: one in a family of n weighs 1 / sqrt(n), so that no table drowns the rest."""
        used = mask & self.is_used
        names, index, count = np.unique(self.families[used], return_inverse=True, return_counts=True)
        del names
        weights = np.zeros(len(self.measured))
        weights[used] = 1.0 / np.sqrt(count[index])
        return weights


def packed(columns: Mapping[str, Float64]) -> Float64:
    """Return the columns of runs as the matrix that the model takes."""
    return pack(dict(columns), transformer_names())


def fit(problem: Problem, mask: Mask, *, start: Float64 | None = None, iterations: int) -> Float64:
    """Return the offsets that fit the masked runs best: Student-t weights on log errors, log-normal priors."""
    offsets = np.zeros(len(problem.priors)) if start is None else start.copy()
    precision = np.array([each.log_sigma**-2 for each in problem.priors.values()])
    limits = [np.log([getattr(each, end) for each in problem.priors.values()]) for end in ("low", "high")]
    low, high = (each - problem.centres for each in limits)
    weights, measured = problem.weights(mask), np.log(problem.measured)
    for iteration in range(iterations):
        errors = (np.log(problem.predicted(offsets)) - measured) / ERROR_SCALE
        slopes = problem.slopes(offsets) / ERROR_SCALE
        robust = weights / (1.0 + errors * errors / FREEDOM)
        curvature = slopes.T @ (robust[:, None] * slopes) + np.diag(precision)
        gradient = slopes.T @ (robust * errors) + precision * offsets
        step = np.clip(np.linalg.solve(curvature, gradient), -LONGEST_STEP, LONGEST_STEP)
        share = EARLY_SHARE if iteration < EARLY_STEPS else 1.0
        offsets = np.clip(offsets - share * step, low, high)
        if np.abs(step).max() < CLOSE:
            break
    return offsets


def folds(
    groups: NDArray[np.str_], refit: Callable[[Mask], Float64], predict: Callable[[Float64], Float64]
) -> tuple[Float64, list[Float64]]:
    """Return (predictions of each group's runs by constants fitted without it, the constants of each fold)."""
    predicted, fitted = np.zeros(len(groups)), []
    for group in np.unique(groups):
        inside = groups == group
        fitted.append(refit(~inside))
        predicted[inside] = predict(fitted[-1])[inside]
    return predicted, fitted
