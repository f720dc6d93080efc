"""Activations that move between layers: to the next pipeline stage, to another expert rank, or both at once."""

from dataclasses import dataclass

import jax.numpy as jnp

from models.effects.collectives import point_to_point_time_s, ranks_above
from models.point import Architecture, NetworkLevel, Workload
from models.quantities import Quantity, Scalar


@dataclass(frozen=True)
class TransferShares:
    """Share of the layer interfaces whose transfer reaches each level; `none` stays on the accelerator."""

    none: Scalar
    by_level: tuple[Scalar, ...]


def pipeline_transfer_shares(
    *, pipeline_ranks: tuple[Quantity, ...], interleave_count: Quantity, layer_count: Quantity
) -> TransferShares:
    """Return how often a layer interface is a stage boundary at each network level.

    Of layers - 1 interfaces, layers - v p stay. With v chunks a rank, level l is crossed
    v (p_l - 1) prod_{j>l} p_j times; the highest level used is crossed v p_l - 1 times (the last stage wraps round).
    Source: arXiv 2411.01137, section on pipeline parallelism, and its public code.
    """
    interfaces = layer_count - 1.0
    total_ranks = pipeline_ranks[0] * ranks_above(pipeline_ranks, 0)
    by_level = []
    for level, ranks in enumerate(pipeline_ranks):
        above = ranks_above(pipeline_ranks, level)
        is_highest_used = (ranks > 1.0) & (above <= 1.0)
        crossings = jnp.where(is_highest_used, interleave_count * ranks - 1.0, interleave_count * above * (ranks - 1.0))
        by_level.append(crossings / interfaces)
    return TransferShares((layer_count - interleave_count * total_ranks) / interfaces, tuple(by_level))


def expert_transfer_shares(expert_ranks: tuple[Quantity, ...]) -> TransferShares:
    """Return how often a token's next expert is reached over each level: with experts drawn evenly.

    level l: 1 / prod_{j>l} e_j - 1 / prod_{j>=l} e_j; on the same rank: 1 / prod e_j.
    Source: arXiv 2411.01137, section on expert parallelism.  Ignores: load imbalance.
    """
    by_level = []
    for level, ranks in enumerate(expert_ranks):
        above = ranks_above(expert_ranks, level)
        by_level.append(1.0 / above - 1.0 / (above * ranks))
    return TransferShares(1.0 / (expert_ranks[0] * ranks_above(expert_ranks, 0)), tuple(by_level))


def expert_latency_shares(expert_ranks: tuple[Quantity, ...]) -> TransferShares:
    """Return the same for latency: some token always crosses the highest level the experts span."""
    by_level = []
    uses_none = jnp.ones(())
    for level, ranks in enumerate(expert_ranks):
        above = ranks_above(expert_ranks, level)
        is_highest_used = jnp.where((ranks > 1.0) & (above <= 1.0), 1.0, 0.0)
        by_level.append(is_highest_used)
        uses_none = uses_none - is_highest_used
    return TransferShares(uses_none, tuple(by_level))


def joint_transfer_shares(first: TransferShares, second: TransferShares) -> tuple[Scalar, ...]:
    """Return the share of transfers at each level when each goes over the higher of two independent levels.

    P(max = l) = F_1(l) F_2(l) - F_1(l - 1) F_2(l - 1), with F the cumulative shares, `none` first.
    """
    shares = []
    cumulative_first, cumulative_second = first.none, second.none
    for share_first, share_second in zip(first.by_level, second.by_level, strict=True):
        below = cumulative_first * cumulative_second
        cumulative_first = cumulative_first + share_first
        cumulative_second = cumulative_second + share_second
        shares.append(cumulative_first * cumulative_second - below)
    return tuple(shares)


def layer_transfer_time_s(
    *,
    shares: tuple[Quantity, ...],
    architecture: Architecture,
    workload: Workload,
    accelerator_count: Quantity,
    network: tuple[NetworkLevel, ...],
) -> Scalar:
    """Return the bandwidth time of all transfers between layers in one step, forward and backward.

    2 (layers - 1) interfaces x tokens x d_model x word bytes, split over levels by `shares`;
    a token crosses one level after another, so levels add.
    Source: arXiv 2411.01137, sections on pipeline and expert parallelism.
    """
    interfaces = 2.0 * (architecture.layer_count - 1.0)
    total_byte = interfaces * workload.global_batch_token * architecture.d_model * workload.word_byte
    time_s = jnp.zeros(())
    for share, link in zip(shares, network, strict=True):
        time_s = time_s + point_to_point_time_s(
            total_byte=share * total_byte, accelerator_count=accelerator_count, level=link
        )
    return time_s


def layer_transfer_latency_s(
    *, shares: tuple[Quantity, ...], architecture: Architecture, network: tuple[NetworkLevel, ...]
) -> Scalar:
    """Return the latency of those transfers along one sequence of layers."""
    latency_s = jnp.zeros(())
    for share, link in zip(shares, network, strict=True):
        latency_s = latency_s + 2.0 * (architecture.layer_count - 1.0) * share * link.latency_s
    return latency_s
