"""One training step, in the order of a paper's methods section."""

import jax.numpy as jnp

from models.effects.architecture import parameter_count, step_model_flop
from models.effects.data_parallel import gradient_allreduce_latency_s, gradient_allreduce_time_s
from models.effects.matmul import hierarchy_matmul_time_s
from models.effects.memory import state_byte_per_accelerator
from models.effects.pipeline_expert import (
    expert_latency_shares,
    expert_transfer_shares,
    joint_transfer_shares,
    layer_transfer_latency_s,
    layer_transfer_time_s,
    pipeline_transfer_shares,
)
from models.effects.schedule import bubble_fraction
from models.effects.tensor_parallel import tensor_allreduce_latency_s, tensor_allreduce_time_s
from models.outcome import Outcome
from models.point import Layout, Physics, Placement, Scenario
from models.quantities import Quantity, Scalar


def layer_matmul_time_s(*, scenario: Scenario, layout: Layout, physics: Physics) -> Scalar:
    """Return the matmul time of one expert layer on one nanobatch, forward and backward.

    Two weight matrices, each used forward, for the gradient of its input, and for the gradient of its weights.
    Source: arXiv 2411.01137, section on arithmetic.
    """
    up = {"rows": layout.shard_d_ff, "columns": layout.shard_d_model}
    down = {"rows": layout.shard_d_model, "columns": layout.shard_d_ff}
    common = {
        "batch": layout.nanobatch_token,
        "word_byte": scenario.workload.word_byte,
        "hardware": scenario.hardware,
        "physics": physics,
    }
    forward_s, weight_gradient_s = (
        hierarchy_matmul_time_s(**up, **common, is_weight_gradient=is_gradient)
        + hierarchy_matmul_time_s(**down, **common, is_weight_gradient=is_gradient)
        for is_gradient in (False, True)
    )
    return 2.0 * forward_s + weight_gradient_s


def ideal_step_time_s(*, scenario: Scenario, layout: Layout) -> Scalar:
    """Return the time of a step's model FLOP at the peak rate of all accelerators: the yardstick of utilisation."""
    model_flop = step_model_flop(scenario.architecture, scenario.workload)
    return model_flop / (scenario.hardware.peak_flop_per_s * accelerator_count(layout))


def accelerator_count(layout: Layout) -> Scalar:
    """Return the product of a layout's degrees."""
    tensor_ranks = layout.tensor_model_ranks * layout.tensor_ff_ranks
    return layout.data_ranks * tensor_ranks * layout.pipeline_ranks * layout.expert_ranks


def step(*, scenario: Scenario, layout: Layout, placement: Placement, physics: Physics) -> Outcome:
    """Return the outcome of one step of `scenario` under `layout`, placed on the network by `placement`."""
    architecture, workload, network = scenario.architecture, scenario.workload, scenario.network
    accelerators = accelerator_count(layout)
    parameters = parameter_count(architecture)
    where = {"accelerator_count": accelerators, "network": network}
    what = {"architecture": architecture, "workload": workload}

    # Arithmetic
    one_layer_s = layer_matmul_time_s(scenario=scenario, layout=layout, physics=physics)
    matmul_time_s = layout.rank_layers * layout.rank_experts * layout.microbatch_count * one_layer_s

    # Traffic inside layers, between layers, between replicas
    tensor_time_s = tensor_allreduce_time_s(**what, **where, placement=placement)
    tensor_latency_s = tensor_allreduce_latency_s(architecture=architecture, placement=placement, network=network)
    stage = pipeline_transfer_shares(
        pipeline_ranks=placement.pipeline_ranks,
        interleave_count=layout.interleave_count,
        layer_count=architecture.layer_count,
    )
    hop_shares = joint_transfer_shares(stage, expert_transfer_shares(placement.expert_ranks))
    hop_latency_shares = joint_transfer_shares(stage, expert_latency_shares(placement.expert_ranks))
    layer_time_s = layer_transfer_time_s(**what, **where, shares=hop_shares)
    layer_latency_s = layer_transfer_latency_s(architecture=architecture, shares=hop_latency_shares, network=network)
    gradient_byte = parameters * workload.word_byte
    data_time_s = gradient_allreduce_time_s(parameter_byte=gradient_byte, data_ranks=placement.data_ranks, **where)
    data_latency_s = gradient_allreduce_latency_s(data_ranks=placement.data_ranks, network=network)

    # What overlaps, what waits
    hidden_s = physics.overlaps_tensor * tensor_time_s + physics.overlaps_pipeline * layer_time_s
    exposed_s = tensor_time_s + layer_time_s - hidden_s
    bubble = bubble_fraction(layout)
    latency_s = (1.0 - layout.is_zero_bubble) * (tensor_latency_s + layer_latency_s)
    pipeline_time_s = (jnp.maximum(matmul_time_s, hidden_s) + exposed_s) / (1.0 - bubble) + latency_s
    step_time_s = overlapped(physics.overlaps_data, pipeline_time_s, data_time_s) + data_latency_s

    # Memory and the yardstick
    memory_byte = state_byte_per_accelerator(
        parameters=parameters, accelerator_count=accelerators, layout=layout, workload=workload, physics=physics
    )
    return Outcome(
        step_time_s=step_time_s,
        model_flop_utilisation_fraction=ideal_step_time_s(scenario=scenario, layout=layout) / step_time_s,
        matmul_time_s=matmul_time_s,
        tensor_time_s=tensor_time_s,
        layer_transfer_time_s=layer_time_s,
        data_time_s=data_time_s,
        latency_time_s=tensor_latency_s + layer_latency_s + data_latency_s,
        bubble_fraction=bubble,
        memory_byte=memory_byte,
        fits_in_memory=jnp.where(memory_byte <= scenario.hardware.hbm_byte, 1.0, 0.0),
    )


def overlapped(overlaps: Quantity, first_s: Quantity, second_s: Quantity) -> Scalar:
    """Return first and second one after another, or the longer of the two if they overlap (0/1)."""
    return overlaps * jnp.maximum(first_s, second_s) + (1.0 - overlaps) * (first_s + second_s)
