"""Groups of ranks and their collectives: where the ranks of a group sit decides its bandwidth and its hops."""

from dataclasses import dataclass, replace

import jax.numpy as jnp

from models.effects.all_to_all import all_to_all_time_s
from models.effects.ring import (
    gather_time_s,
    group_byte_per_s,
    group_rank_per_domain,
    ring_latency_s,
    tree_latency_s,
)
from models.quantities import Quantity, Scalar
from models.transformer_rates import Point, Rates


@dataclass(frozen=True)
class Group:
    """Ranks that communicate, and where they sit."""

    ranks: Quantity
    rank_per_domain: Scalar
    pod_count: Scalar
    byte_per_s: Scalar  # of a ring, a rank
    far_byte_per_s: Scalar  # of one accelerator, out of its domain


def group(point: Point, rate: Rates, *, ranks: Quantity, inner: Quantity) -> Group:
    """Return a group whose neighbours sit `inner` accelerators apart."""
    links = point.links
    near = group_rank_per_domain(group_ranks=ranks, inner_ranks=inner, domain_ranks=links.domain_ranks)
    bandwidth = group_byte_per_s(
        group_ranks=ranks,
        rank_per_domain=near,
        scale_up_byte_per_s=rate.scale_up_byte_per_s,
        scale_out_byte_per_s=rate.scale_out_byte_per_s,
    )
    in_pod = group_rank_per_domain(group_ranks=ranks, inner_ranks=inner, domain_ranks=links.pod_ranks)
    crosses = in_pod < ranks
    out, top = rate.scale_out_byte_per_s, rate.top_byte_per_s
    return Group(
        ranks=ranks,
        rank_per_domain=near,
        pod_count=ranks / jnp.maximum(in_pod, near),
        byte_per_s=jnp.where(crosses, jnp.minimum(bandwidth, top * in_pod), bandwidth),
        far_byte_per_s=jnp.where(crosses, jnp.minimum(out, top), out),
    )


def pass_round_s(point: Point, members: Group, byte: Quantity) -> Scalar:
    """Return the time in which `byte` (of all ranks together) goes once round a ring of the group.

    Each rank sends to the next alone: where the ring leaves a domain, one port carries it.
    """
    ring_s, _ = ways_s(point, members)
    one_port = jnp.minimum(members.byte_per_s, members.far_byte_per_s)
    bandwidth = jnp.where(members.rank_per_domain >= members.ranks, members.byte_per_s, one_port)
    return collective_s(point, replace(members, byte_per_s=bandwidth), byte, ring_s)


def gather_s(point: Point, members: Group, byte: Quantity) -> Scalar:
    """Return the time of an all-gather or a reduce-scatter of `byte`: a ring, or a tree where that is the shorter way.

    An all-reduce is two of these. NCCL has a tree for them (PAT, 2.23) where each domain has one rank of the group.
    """
    ring_s, tree_s = ways_s(point, members)
    way_s = jnp.where(members.rank_per_domain > 1.0, ring_s, jnp.minimum(ring_s, tree_s))
    return collective_s(point, members, byte, way_s)


def ways_s(point: Point, members: Group) -> tuple[Scalar, Scalar]:
    """Return the time that a byte takes (round a ring, up a tree) of the group."""
    c = point.constants
    place = {
        "group_ranks": members.ranks,
        "pod_count": members.pod_count,
        "far_hop_s": c.scale_out_ring_hop_s,
        "pod_hop_s": point.links.top_latency_s,
    }
    return (
        ring_latency_s(rank_per_domain=members.rank_per_domain, near_hop_s=c.scale_up_ring_hop_s, **place),
        tree_latency_s(**{**place, "far_hop_s": c.scale_out_tree_hop_s}),
    )


def collective_s(point: Point, members: Group, byte: Quantity, way_s: Quantity) -> Scalar:
    """Return the time of a collective of `byte` whose last byte is `way_s` on the way."""
    return gather_time_s(
        byte=byte,
        group_ranks=members.ranks,
        group_bandwidth_byte_per_s=members.byte_per_s,
        latency_s=point.constants.collective_latency_s + way_s,
    )


def exchange_s(point: Point, rate: Rates, members: Group, byte: Quantity) -> Scalar:
    """Return the time in which every rank of the group sends its `byte`, in equal shares, to the others."""
    return all_to_all_time_s(
        byte=byte,
        group_ranks=members.ranks,
        rank_per_domain=members.rank_per_domain,
        scale_up_byte_per_s=rate.scale_up_byte_per_s,
        scale_out_byte_per_s=members.far_byte_per_s,
        latency_s=first_byte_s(point, members),
    )


def first_byte_s(point: Point, members: Group) -> Scalar:
    """Return the fixed cost of an exchange in which all send at once: one launch, one hop of the longest kind."""
    crosses = members.pod_count > 1.0
    return point.constants.collective_latency_s + jnp.where(crosses, point.links.top_latency_s, 0.0)
