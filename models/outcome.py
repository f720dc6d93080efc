"""What the model says of one point."""

from models.point import bundle, number
from models.quantities import Quantity


@bundle
class Outcome:
    """One step, taken apart."""

    step_time_s: Quantity = number("s", "time of one optimiser step")
    model_flop_utilisation_fraction: Quantity = number("1", "model FLOP of a step / (peak x accelerators x step time)")
    matmul_time_s: Quantity = number("s", "matmul time of one accelerator in one step")
    tensor_time_s: Quantity = number("s", "bandwidth time of tensor-parallel traffic in one step")
    layer_transfer_time_s: Quantity = number("s", "bandwidth time of pipeline and expert traffic in one step")
    data_time_s: Quantity = number("s", "bandwidth time of the gradient all-reduce in one step")
    latency_time_s: Quantity = number("s", "network latency along one step")
    bubble_fraction: Quantity = number("1", "share of the pipeline's time that a rank waits")
    memory_byte: Quantity = number("B", "memory one accelerator needs")
    fits_in_memory: Quantity = number("0/1", "memory needed <= memory present")
