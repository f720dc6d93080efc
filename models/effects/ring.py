"""Collectives of the calibrated model: the bandwidth and the hops of a group follow from where its ranks sit."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def group_rank_per_domain(*, group_ranks: Quantity, inner_ranks: Quantity, domain_ranks: Quantity) -> Scalar:
    """Return how many ranks of a group share one scale-up domain.

    clip(D / inner, 1, g), inner = ranks between neighbours.

    Placement decides the level: a group straddles the domain when inner x g > D, whatever its size.
    Source: Megatron-LM rank order. Ignores: uneven straddling (D not divisible by inner x g).
    """
    return jnp.clip(domain_ranks / inner_ranks, 1, group_ranks)


def group_byte_per_s(
    *, group_ranks: Quantity, rank_per_domain: Quantity, scale_up_byte_per_s: Quantity, scale_out_byte_per_s: Quantity
) -> Scalar:
    """Return the bandwidth of a ring collective per rank: scale-up inside a domain, else limited by the domain's ports.

    b = up if all ranks share a domain, else min(up, out x ranks of the group per domain) (each brings its port).
    Source: NCCL rings (one per port); Rajbhandari 2020. Ignores: congestion between groups.
    """
    return jnp.where(
        rank_per_domain >= group_ranks,
        scale_up_byte_per_s,
        jnp.minimum(scale_up_byte_per_s, scale_out_byte_per_s * rank_per_domain),
    )


def ring_latency_s(
    *,
    group_ranks: Quantity,
    rank_per_domain: Quantity,
    pod_count: Quantity,
    near_hop_s: Quantity,
    far_hop_s: Quantity,
    pod_hop_s: Quantity,
) -> Scalar:
    """Return the time that a byte takes once round a ring: g - 1 hops, each inside a domain, between, or between pods.

    (g - n) near + (n - p) far + (p - 1) pod, n = g/k domains and p pods.
    Source: NCCL, src/graph/tuning.cc (steps, inter-node steps, latency of a hop).
    """
    domains = group_ranks / rank_per_domain
    return (group_ranks - domains) * near_hop_s + (domains - pod_count) * far_hop_s + (pod_count - 1) * pod_hop_s


def tree_latency_s(*, group_ranks: Quantity, pod_count: Quantity, far_hop_s: Quantity, pod_hop_s: Quantity) -> Scalar:
    """Return the time that a byte takes up a tree of ranks that each have a domain to themselves.

    log2(g) far + (p - 1) pod. Its hops cost more than a ring's: each joins two streams.
    Valid when: one rank a domain; NCCL has no tree for all-gather and reduce-scatter otherwise.
    Source: Thakur 2005 (recursive halving and doubling); NCCL, src/graph/tuning.cc; NCCL 2.23 (PAT).
    """
    return jnp.log2(group_ranks) * far_hop_s + (pod_count - 1) * pod_hop_s


def gather_time_s(
    *, byte: Quantity, group_ranks: Quantity, group_bandwidth_byte_per_s: Quantity, latency_s: Quantity
) -> Scalar:
    """Return the time of an all-gather or reduce-scatter of `byte` (the full tensor) over a ring or a tree.

    (g - 1) / g V / b + latency if g > 1.

    An all-reduce is two of these. A ring sends messages of m = V / g in g - 1 hops, so it reaches the share
    m / (m + b x hop) of the bandwidth: small messages are slow. Source: Thakur 2005.
    """
    return byte * (1 - 1 / group_ranks) / group_bandwidth_byte_per_s + jnp.where(group_ranks > 1, latency_s, 0)
