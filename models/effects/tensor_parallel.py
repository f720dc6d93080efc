"""Two-dimensional tensor parallelism: weights split over d_model and over d_ff."""

import jax.numpy as jnp

from models.effects.collectives import allreduce_latency_s, allreduce_time_s, ranks_above
from models.point import Architecture, NetworkLevel, Placement, Workload
from models.quantities import Quantity, Scalar


def tensor_allreduce_time_s(
    *,
    architecture: Architecture,
    workload: Workload,
    placement: Placement,
    accelerator_count: Quantity,
    network: tuple[NetworkLevel, ...],
) -> Scalar:
    """Return the bandwidth time of all activation all-reduces of one step, forward and backward.

    Each layer reduces d_ff activations a token over the ranks that split d_model, and d_model activations over those
    that split d_ff, once forward and once backward: 2 layers times. At level k, ranks p_k, repeated prod_{j>k} p_j.
    The slowest level decides: levels work at once.
    Source: arXiv 2411.01137, section on tensor parallelism.
    """
    passes_byte = 2.0 * architecture.layer_count * workload.global_batch_token * workload.word_byte
    slowest_s = jnp.zeros(())
    for level, link in enumerate(network):
        level_time_s = jnp.zeros(())
        for ranks, width in (
            (placement.tensor_model_ranks, architecture.d_ff),
            (placement.tensor_ff_ranks, architecture.d_model),
        ):
            level_time_s = level_time_s + allreduce_time_s(
                ranks=ranks[level],
                total_byte=passes_byte * width * ranks_above(ranks, level),
                accelerator_count=accelerator_count,
                level=link,
            )
        slowest_s = jnp.maximum(slowest_s, level_time_s)
    return slowest_s


def tensor_allreduce_latency_s(
    *, architecture: Architecture, placement: Placement, network: tuple[NetworkLevel, ...]
) -> Scalar:
    """Return the latency of those all-reduces along one sequence of layers, levels and kinds one after another."""
    latency_s = jnp.zeros(())
    for ranks in (placement.tensor_model_ranks, placement.tensor_ff_ranks):
        for level, link in enumerate(network):
            latency_s = latency_s + allreduce_latency_s(
                ranks=ranks[level], repeats=2.0 * architecture.layer_count, level=link
            )
    return latency_s
