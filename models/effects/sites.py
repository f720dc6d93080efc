"""Several data centres: replicas train at each site and meet over long links, every step or every few hundred."""

import jax.numpy as jnp

from models.point import bundle, number
from models.quantities import Quantity, Scalar


@bundle
class LocalSteps:
    """Training at several sites that exchange their weights every few steps (DiLoCo)."""

    local_step_count: Quantity = number("1", "optimiser steps of a site between two exchanges; 1 = synchronous")
    exchange_compression_ratio: Quantity = number("1", "bytes of the weights / bytes exchanged for them")
    exchange_hidden_fraction: Quantity = number("1", "share of an exchange that hides behind the steps that follow it")
    token_penalty_per_doubling: Quantity = number("1", "further tokens for the same loss, a doubling of local steps")


@bundle
class SiteOutcome:
    """What several sites make of the step of one."""

    step_time_s: Quantity = number("s", "mean time of one optimiser step, exchange included")
    exchange_time_s: Quantity = number("s", "time of one exchange of weights between sites")
    token_penalty_ratio: Quantity = number("1", "tokens needed / tokens needed with synchronous steps")


def site_exchange_time_s(
    *,
    parameter_byte: Quantity,
    site_count: Quantity,
    site_one_way_byte_per_s: Quantity,
    site_latency_s: Quantity,
    compression_ratio: Quantity,
) -> Scalar:
    """Return the time of one all-reduce of the weights between sites over a ring.

    2 (s - 1) / s x bytes / compression / bandwidth + 2 (s - 1) x latency; 0 for one site.
    site_one_way_byte_per_s: what one site sends to the next, all its accelerators together.
    Source: Patarasuk & Yuan 2009; Douillard et al. 2023 (arXiv 2311.08105) for what is exchanged.
    Ignores: unequal links, retransmission.
    """
    hops = 2.0 * (site_count - 1.0)
    sent_byte = hops / site_count * parameter_byte / compression_ratio
    return sent_byte / site_one_way_byte_per_s + hops * site_latency_s


def multi_site_step_time_s(
    *, site_step_time_s: Quantity, exchange_time_s: Quantity, local_step_count: Quantity, hidden_fraction: Quantity
) -> Scalar:
    """Return the mean time of a step of one site with its share of the exchange that follows every H local steps.

    t + (1 - hidden) x exchange / H; H = 1 is synchronous training, larger H is DiLoCo.
    Valid when: the exchange does not queue: it ends before the next one begins.
    Source: Douillard et al. 2023 (arXiv 2311.08105), algorithm 1; Douillard et al. 2025 (arXiv 2501.18512) for overlap.
    """
    exposed_s = (1.0 - hidden_fraction) * exchange_time_s / local_step_count
    # an exchange longer than the local steps it follows holds the next one up, hidden or not
    queued_s = jnp.maximum(0.0, exchange_time_s / local_step_count - site_step_time_s)
    return site_step_time_s + jnp.maximum(exposed_s, queued_s)


def token_penalty_ratio(*, local_step_count: Quantity, penalty_per_doubling: Quantity) -> Scalar:
    """Return how many times more tokens local steps need for the same loss: 1 + penalty x log2 H.

    Source: the form is an assumption; Charles et al. 2025 (arXiv 2503.09799) measured that loss rises slowly with H.
    Ignores: model size and number of replicas.
    """
    return 1.0 + penalty_per_doubling * jnp.log2(local_step_count)


def site_outcome(
    *,
    local: LocalSteps,
    parameter_byte: Quantity,
    site_count: Quantity,
    site_one_way_byte_per_s: Quantity,
    site_latency_s: Quantity,
    site_step_time_s: Quantity,
) -> SiteOutcome:
    """Return step time, exchange and token penalty of sites that each take `site_step_time_s` for a step."""
    exchange_s = site_exchange_time_s(
        parameter_byte=parameter_byte,
        site_count=site_count,
        site_one_way_byte_per_s=site_one_way_byte_per_s,
        site_latency_s=site_latency_s,
        compression_ratio=local.exchange_compression_ratio,
    )
    step_s = multi_site_step_time_s(
        site_step_time_s=site_step_time_s,
        exchange_time_s=exchange_s,
        local_step_count=local.local_step_count,
        hidden_fraction=local.exchange_hidden_fraction,
    )
    penalty = token_penalty_ratio(
        local_step_count=local.local_step_count, penalty_per_doubling=local.token_penalty_per_doubling
    )
    return SiteOutcome(step_time_s=step_s, exchange_time_s=exchange_s, token_penalty_ratio=penalty)
