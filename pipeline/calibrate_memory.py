"""Fitting of the two constants of memory: measured peaks, and every run that fitted or did not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import least_squares

from pipeline.calibrate_fit import Float64, Mask, Problem, folds, packed
from pipeline.calibrate_priors import MEMORY_PRIORS
from pipeline.runs import Runs, with_least_memory

VALUE_SCALE, VALUE_WEIGHT = 0.05, 1.0  # log error of a printed peak that counts as one
OVER_SCALE, OVER_MARGIN, OVER_WEIGHT = 0.004, 0.004, 2.0  # a run that ran must fit, or nearly nothing else matters
UNDER_SCALE, UNDER_WEIGHT = 0.05, 0.1  # a run that did not fit should not
DIFFERENCE = 1e-4


@dataclass(frozen=True, kw_only=True)
class MemoryProblem:
    """Runs with a printed peak, runs that ran, runs that did not; each as published and with everything recomputed."""

    published: Problem
    recomputed: Problem  # where recomputation is unpublished, the least memory the run may have had
    capacity: Float64
    has_value: Mask
    is_ran: Mask
    is_oom: Mask

    def residuals(self, offsets: Float64, mask: Mask, weights: Float64) -> Float64:
        """Return what the fit squares and sums: errors of peaks, what is wrongly refused or admitted, the priors."""
        byte, least = self.published.predicted(offsets), self.recomputed.predicted(offsets)
        error = np.log(byte / np.where(self.has_value, self.published.measured, 1.0)) / VALUE_SCALE
        robust = np.sign(error) * np.sqrt(2.0 * (np.sqrt(1.0 + error * error) - 1.0))
        value = np.where(self.has_value, np.sqrt(weights) * robust, 0.0)
        over = np.maximum(0.0, np.log(least / self.capacity) + OVER_MARGIN) / OVER_SCALE
        under = np.maximum(0.0, -np.log(byte / self.capacity)) / UNDER_SCALE
        sigma = np.array([each.log_sigma for each in self.published.priors.values()])
        return np.concatenate(
            [
                VALUE_WEIGHT * value,
                OVER_WEIGHT * np.where(self.is_ran & mask, over, 0.0),
                UNDER_WEIGHT * np.where(self.is_oom & mask, under, 0.0),
                offsets / sigma,
            ]
        )

    def fit(self, mask: Mask) -> Float64:
        """Return the offsets that fit the masked runs best."""
        weights = self.published.weights(mask)
        start = np.zeros(len(self.published.priors))
        found = least_squares(self.residuals, start, args=(mask, weights), diff_step=DIFFERENCE)
        return np.asarray(found.x)


def memory_problem(runs: Runs, constants: Mapping[str, float]) -> MemoryProblem:
    """Return the problem of fitting memory to a table of runs."""
    about = runs.about
    measured = about["measured_byte"].fill_null(np.nan).to_numpy()
    is_oom = (about["status"] == "oom").to_numpy()
    has_value = np.isfinite(measured) & ~is_oom
    has_layout = about["has_known_memory"].to_numpy()
    published = Problem(
        points=packed(runs.columns),
        measured=np.where(has_value, measured, 1.0),
        families=about["family"].to_numpy().astype(np.str_),
        is_used=has_value,
        constants=constants,
        priors=MEMORY_PRIORS,
        field="memory_byte",
    )
    return MemoryProblem(
        published=published,
        recomputed=replace(published, points=packed(with_least_memory(runs))),
        capacity=about["capacity_byte"].to_numpy(),
        has_value=has_value,
        is_ran=~is_oom & has_layout,
        is_oom=is_oom & has_layout,
    )


def memory_folds(problem: MemoryProblem) -> tuple[Float64, list[Float64]]:
    """Return the peaks of each family predicted by constants fitted without it, and those constants."""
    families = np.where(problem.has_value, problem.published.families, "")
    return folds(families, problem.fit, problem.published.predicted)
