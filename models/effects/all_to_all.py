"""All-to-all exchanges of the calibrated model: tokens to their experts, heads to their context ranks."""

import jax.numpy as jnp

from models.quantities import Quantity, Scalar


def all_to_all_time_s(
    *,
    byte: Quantity,
    group_ranks: Quantity,
    rank_per_domain: Quantity,
    scale_up_byte_per_s: Quantity,
    scale_out_byte_per_s: Quantity,
    latency_s: Quantity,
) -> Scalar:
    """Return the time in which every rank sends an equal share of its `byte` to each of the others.

    V [ (k - 1)/g / up + (g - k)/g / out ] + latency if g > 1, k ranks of the group in one domain.
    Source: Jacobs et al. 2023 (DeepSpeed-Ulysses, arXiv 2309.14509), section 3.2: V (g - 1)/g a rank, whatever g.
    Ignores: links inside and between domains at once.
    """
    near, far = (rank_per_domain - 1) / group_ranks, 1 - rank_per_domain / group_ranks
    sent = byte * (near / scale_up_byte_per_s + far / scale_out_byte_per_s)
    return sent + jnp.where(group_ranks > 1, latency_s, 0)


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
