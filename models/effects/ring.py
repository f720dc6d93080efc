"""Collectives of the calibrated model: rings whose bandwidth follows from where their ranks sit."""

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


def ring_time_s(
    *, byte: Quantity, group_ranks: Quantity, group_bandwidth_byte_per_s: Quantity, latency_s: Quantity
) -> Scalar:
    """Return the time of an all-gather or reduce-scatter of `byte` (the full tensor) over a ring.

    (g - 1) / g V / b + latency if g > 1.

    An all-reduce is two of these. Source: Thakur 2005. Ignores: tree algorithms for small messages.
    """
    return byte * (1 - 1 / group_ranks) / group_bandwidth_byte_per_s + jnp.where(group_ranks > 1, latency_s, 0)


def distinct_destination_count(*, destination_count: Quantity, choice_count: Quantity) -> Scalar:
    """Return the expected distinct targets when k choices fall on g targets: about g k / (g + k/2).

    Never above g.

    Exact: g (1 - (1 - 1/g)^k); the rational form is within 6% for k <= 16 and costs no power.
    Source: the occupancy problem.
    """
    return jnp.minimum(destination_count, destination_count * choice_count / (destination_count + choice_count / 2))


def expert_dispatch_time_s(
    *,
    token: Quantity,
    hidden_width: Quantity,
    element_byte: Quantity,
    experts_per_token: Quantity,
    expert_ranks: Quantity,
    rank_per_domain: Quantity,
    scale_up_byte_per_s: Quantity,
    scale_out_byte_per_s: Quantity,
    latency_s: Quantity,
) -> Scalar:
    """Return the time of one all-to-all of token vectors to the experts' ranks (dispatch, or combine).

    Each token is sent once per distinct rank inside the domain, once per distinct foreign domain outside:
    t = bytes T h [ d(g) (k-1)/g / up + d(n) (n-1)/n / out ] + latency, n = g/k domains, d = distinct destinations.
    Valid when: routing is balanced. Source: DeepSeek-V3 sec. 3.2 (DeepEP); GShard. Ignores: node-limited routing.
    """
    domain_count = expert_ranks / rank_per_domain
    inside = (
        distinct_destination_count(destination_count=expert_ranks, choice_count=experts_per_token)
        * (rank_per_domain - 1)
        / expert_ranks
    )
    outside = distinct_destination_count(destination_count=domain_count, choice_count=experts_per_token) * (
        1 - 1 / domain_count
    )
    return element_byte * token * hidden_width * (
        inside / scale_up_byte_per_s + outside / scale_out_byte_per_s
    ) + jnp.where(expert_ranks > 1, latency_s, 0)
