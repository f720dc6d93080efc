"""Pipeline schedules."""

import jax.numpy as jnp

from models.point import Layout
from models.quantities import Scalar


def bubble_fraction(layout: Layout) -> Scalar:
    """Return the share of the step that a pipeline rank waits.

    Interleaved 1F1B with p ranks, v chunks, m microbatches: z = (v - 1) max(0, p - m);
    f = (z + p - 1) / (z + p - 1 + v m). Zero bubble: 0.
    Source: Narayanan et al. 2021 (arXiv 2104.04473) section 2.2; Qi et al. 2023 (arXiv 2401.10241); the term z for
    m < p from arXiv 2411.01137's public code.  Ignores: unequal stages.
    """
    p, v, m = layout.pipeline_ranks, layout.interleave_count, layout.microbatch_count
    idle = (v - 1.0) * jnp.maximum(0.0, p - m) + p - 1.0
    return (1.0 - layout.is_zero_bubble) * idle / (idle + v * m)
