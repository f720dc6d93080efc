"""Gradient all-reduce of data parallelism."""

import jax.numpy as jnp

from models.effects.collectives import allreduce_latency_s, allreduce_time_s, ranks_above
from models.point import NetworkLevel
from models.quantities import Quantity, Scalar


def gradient_allreduce_time_s(
    *,
    parameter_byte: Quantity,
    data_ranks: tuple[Quantity, ...],
    accelerator_count: Quantity,
    network: tuple[NetworkLevel, ...],
) -> Scalar:
    """Return the time to all-reduce the gradients once a step: the slowest level (levels work at once).

    At level k: an all-reduce over p_k ranks of all parameters, repeated for each group above, prod_{j>k} p_j.
    Source: arXiv 2411.01137, section on data parallelism.  Ignores: overlap with the backward pass (see step).
    """
    slowest_s = jnp.zeros(())
    for level, (ranks, link) in enumerate(zip(data_ranks, network, strict=True)):
        total_byte = parameter_byte * ranks_above(data_ranks, level)
        level_time_s = allreduce_time_s(
            ranks=ranks, total_byte=total_byte, accelerator_count=accelerator_count, level=link
        )
        slowest_s = jnp.maximum(slowest_s, level_time_s)
    return slowest_s


def gradient_allreduce_latency_s(*, data_ranks: tuple[Quantity, ...], network: tuple[NetworkLevel, ...]) -> Scalar:
    """Return the latency of the gradient all-reduce: one all-reduce a level, one after another."""
    latency_s = jnp.zeros(())
    for ranks, link in zip(data_ranks, network, strict=True):
        latency_s = latency_s + allreduce_latency_s(ranks=ranks, repeats=jnp.ones(()), level=link)
    return latency_s
