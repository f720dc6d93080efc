"""Collectives on a hierarchical network. Which level a group uses follows from its placement, never from its size."""

import jax.numpy as jnp

from models.point import NetworkLevel
from models.quantities import Quantity, Scalar


def ranks_above(ranks: tuple[Quantity, ...], level: int) -> Quantity:
    """Return how many groups of this level the degree spans: the product of its ranks on all higher levels."""
    product = jnp.ones(())
    for above in ranks[level + 1 :]:
        product = product * above
    return product


def allreduce_time_s(
    *, ranks: Quantity, total_byte: Quantity, accelerator_count: Quantity, level: NetworkLevel
) -> Scalar:
    """Return the bandwidth time of an all-reduce whose buffers sum to total_byte over all groups.

    2 (p - 1) bytes / (accelerators x one-way bandwidth): ring or tree, reduce-scatter then all-gather.
    Source: arXiv 2411.01137, section on network communication; Patarasuk & Yuan 2009.  Ignores: message size.
    """
    return 2.0 * (ranks - 1.0) * total_byte / (accelerator_count * level.one_way_byte_per_s)


def allreduce_latency_s(*, ranks: Quantity, repeats: Quantity, level: NetworkLevel) -> Scalar:
    """Return the latency of repeated all-reduces: two traversals each, whatever the group's size.

    Source: arXiv 2411.01137, section on network latency.  Ignores: the depth of rings and trees.
    """
    return jnp.where(ranks > 1.0, 2.0 * repeats * level.latency_s, 0.0)


def point_to_point_time_s(*, total_byte: Quantity, accelerator_count: Quantity, level: NetworkLevel) -> Scalar:
    """Return the bandwidth time of sends that sum to total_byte: bytes / (accelerators x one-way bandwidth)."""
    return total_byte / (accelerator_count * level.one_way_byte_per_s)
