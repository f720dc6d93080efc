"""Traffic inside a layer: tensor, context and expert ranks."""

import jax.numpy as jnp

from models.effects.all_to_all import expert_dispatch_time_s
from models.effects.overlap import partly_hidden_time_s
from models.quantities import Quantity, Scalar
from models.transformer_groups import exchange_s, first_byte_s, gather_s, group, pass_round_s
from models.transformer_parts import output_width, tokens_per_rank
from models.transformer_rates import Point, Rates

TENSOR_ALL_REDUCES = 2.0  # after attention and after the feed-forward; each is a reduce-scatter and an all-gather
RING_BACKWARD_RATIO = 2.0  # keys and values go round again, and so do their gradients


def tensor_forward_s(point: Point, rate: Rates) -> Scalar:
    """Return what shows of a layer's tensor-parallel traffic forward.

    With sequence parallelism each rank routes its own tokens to the experts: a layer of routed experts alone has no
    second all-reduce. Ignores: the input gathered again for the weight gradient, beside its matmul.
    Source: Shoeybi et al. 2019 (arXiv 1909.08053), section 3; Korthikanti et al. 2022 (arXiv 2205.05198), section 4.2.
    """
    m, layout, c = point.transformer, point.layout, point.constants
    activations = c.activation_byte * tokens_per_rank(m, layout) * m.hidden_width
    ranks = group(point, rate, ranks=layout.tensor_ranks, inner=jnp.ones(()))
    reduce_s = 2.0 * gather_s(point, ranks, activations)
    is_routed = jnp.where((layout.sequence_ranks >= layout.tensor_ranks) & (m.shared_expert_count == 0.0), 1.0, 0.0)
    count = TENSOR_ALL_REDUCES - is_routed * m.moe_layer_fraction
    return count * reduce_s * c.tensor_exposed_fraction * point.software.tensor_exposed_ratio


def context_s(
    point: Point, rate: Rates, attention_forward: Quantity, attention_backward: Quantity
) -> tuple[Scalar, Scalar]:
    """Return what shows of a layer's context-parallel traffic (forward, backward): heads exchanged, keys passed round.

    Context ranks form a grid: u of them exchange tokens for heads before attention and back after it (all-to-all, in
    the open), the others pass keys and values round a ring, hidden in part under attention. u = 1 is the ring alone,
    u = all of them the all-to-all alone. A key/value head that several ranks need is sent to each.
    Source: Liu, Zaharia, Abbeel 2023 (arXiv 2310.01889); Jacobs et al. 2023 (arXiv 2309.14509), section 3; Fang, Zhao
    2024 (arXiv 2405.07719), the grid. Ignores: the causal mask's imbalance (ranks take both ends of the sequence).
    """
    m, layout, c = point.transformer, point.layout, point.constants
    tensor, exchanged = layout.tensor_ranks, layout.context_all_to_all_ranks
    byte_per_width = c.activation_byte * tokens_per_rank(m, layout)
    key_value_width = m.key_value_width / tensor
    least_width = jnp.minimum(m.query_width / m.score_head_count, key_value_width)  # one head

    swapped = group(point, rate, ranks=exchanged, inner=tensor)
    before_width = m.query_width / tensor + 2.0 * jnp.maximum(key_value_width, exchanged * least_width)
    after_width = output_width(m) / tensor
    swap_s = exchange_s(point, rate, swapped, byte_per_width * before_width)
    swap_s = swap_s + exchange_s(point, rate, swapped, byte_per_width * after_width)

    ringed = group(point, rate, ranks=layout.context_ranks / exchanged, inner=tensor * exchanged)
    held_width = jnp.maximum(key_value_width / exchanged, least_width)
    round_s = pass_round_s(point, ringed, byte_per_width * layout.context_ranks * 2.0 * held_width)
    exposed = c.tensor_exposed_fraction
    forward = partly_hidden_time_s(transfer_s=round_s, cover_s=attention_forward, exposed_fraction=exposed)
    back_s = RING_BACKWARD_RATIO * round_s
    backward = partly_hidden_time_s(transfer_s=back_s, cover_s=attention_backward, exposed_fraction=exposed)
    return forward + exposed * swap_s, backward + exposed * swap_s


def expert_forward_s(point: Point, rate: Rates) -> Scalar:
    """Return what shows of a layer's expert-parallel traffic forward: two all-to-alls, dispatch and combine.

    Source: Lepikhin et al. 2020 (GShard, arXiv 2006.16668); DeepSeek-V3 (arXiv 2412.19437), section 3.2.
    """
    m, layout, w, c = point.transformer, point.layout, point.software, point.constants
    ranks = group(point, rate, ranks=layout.expert_ranks, inner=jnp.ones(()))
    dispatch_s = expert_dispatch_time_s(
        token=tokens_per_rank(m, layout) / layout.tensor_ranks,
        hidden_width=m.hidden_width,
        element_byte=c.activation_byte,
        experts_per_token=m.experts_per_token,
        expert_ranks=layout.expert_ranks,
        rank_per_domain=ranks.rank_per_domain,
        scale_up_byte_per_s=rate.scale_up_byte_per_s,
        scale_out_byte_per_s=ranks.far_byte_per_s,
        latency_s=first_byte_s(point, ranks),
    )
    return m.moe_layer_fraction * 2.0 * c.expert_exposed_fraction * w.expert_load_ratio * dispatch_s
