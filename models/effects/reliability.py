"""Failures: how much of the wall time of a long run is progress."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def checkpoint_interval_s(*, checkpoint_time_s: Quantity, cluster_mtbf_s: Quantity) -> Scalar:
    """Return the best time between checkpoints: sqrt(2 C M), C their cost, M the mean time between failures.

    Valid when: C is far below M.
    Source: Young 1974 (Communications of the ACM 17), equation 1; Daly 2006 (FGCS 22) for higher orders.
    """
    return jnp.sqrt(2.0 * checkpoint_time_s * cluster_mtbf_s)


def goodput_fraction(
    *,
    accelerator_count: Quantity,
    accelerator_mtbf_s: Quantity,
    checkpoint_byte: Quantity,
    checkpoint_byte_per_s: Quantity,
    restart_time_s: Quantity,
) -> Scalar:
    """Return the share of wall time that is progress, with checkpoints at their best interval.

    M = accelerator MTBF / count; C = bytes of one accelerator / its share of storage bandwidth; T = sqrt(2 C M);
    overhead w = C / T + T / (2 M) + R / M (checkpoints, work lost, restarts); goodput = 1 / (1 + w).
    Valid when: failures are independent and stop the whole run; every progress second pays w of overhead.
    Source: Young 1974; Daly 2006; Grattafiori et al. 2024 (arXiv 2407.21783), section 3.3.4, for measured rates.
    Ignores: asynchronous checkpoints, hot spares, stragglers, silent errors.
    """
    cluster_mtbf_s = accelerator_mtbf_s / accelerator_count
    checkpoint_time_s = checkpoint_byte / checkpoint_byte_per_s
    interval_s = checkpoint_interval_s(checkpoint_time_s=checkpoint_time_s, cluster_mtbf_s=cluster_mtbf_s)
    # the inner where keeps the division finite where a checkpoint costs nothing
    writing = jnp.where(interval_s > 0.0, checkpoint_time_s / jnp.where(interval_s > 0.0, interval_s, 1.0), 0.0)
    overhead = writing + interval_s / (2.0 * cluster_mtbf_s) + restart_time_s / cluster_mtbf_s
    return 1.0 / (1.0 + overhead)
