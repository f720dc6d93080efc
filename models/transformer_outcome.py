"""What the calibrated model says of one point."""

from models.point import bundle, number
from models.quantities import Quantity


@bundle
class TransformerOutcome:
    """One training step, taken apart. The parts of the time add up to the step, rounding aside."""

    step_time_s: Quantity = number("s", "time of one optimiser step")
    model_flop_utilisation_fraction: Quantity = number("1", "model FLOP of a step / (peak x accelerators x step time)")
    hardware_flop_utilisation_fraction: Quantity = number("1", "the same with recomputed FLOP counted")
    step_model_flop: Quantity = number(
        "FLOP", "model FLOP of one step: weights, attention and logits, no recomputation"
    )
    matmul_time_s: Quantity = number("s", "linear layers of one accelerator in one step")
    attention_time_s: Quantity = number("s", "attention kernels")
    elementwise_time_s: Quantity = number("s", "memory-bound kernels, casts, permutation, gradient accumulation")
    recompute_time_s: Quantity = number("s", "forward work done again in the backward pass")
    tensor_time_s: Quantity = number("s", "exposed tensor-parallel traffic")
    context_time_s: Quantity = number("s", "exposed context-parallel traffic")
    expert_time_s: Quantity = number("s", "exposed expert-parallel traffic")
    host_time_s: Quantity = number("s", "waiting for the host to launch kernels")
    gather_time_s: Quantity = number("s", "exposed gathering of sharded weights")
    logit_time_s: Quantity = number("s", "what logits and loss add to the slowest stage")
    bubble_time_s: Quantity = number("s", "waiting for the pipeline to fill and drain")
    layer_transfer_time_s: Quantity = number("s", "exposed sends between pipeline stages")
    data_time_s: Quantity = number("s", "exposed gradient reduction")
    optimizer_time_s: Quantity = number("s", "optimiser and fixed time of a step")
    goodput_fraction: Quantity = number("1", "share of wall time that is progress, failures and checkpoints counted")
    memory_byte: Quantity = number("B", "peak memory of the fullest accelerator")
    state_byte: Quantity = number("B", "weights, gradients and optimiser state of the first stage")
    activation_byte: Quantity = number("B", "activations of the first stage")
    logit_byte: Quantity = number("B", "logits and their gradient")
