"""Memory an accelerator must hold."""

from models.point import Layout, Physics, Workload
from models.quantities import Quantity, Scalar


def state_byte_per_accelerator(
    *, parameters: Quantity, accelerator_count: Quantity, layout: Layout, workload: Workload, physics: Physics
) -> Scalar:
    """Return weights and optimiser state of one accelerator.

    (weights x data ranks + optimiser copies x weights) / accelerators: weights are replicated over data ranks,
    optimiser state is sharded over them.
    Source: arXiv 2411.01137, section on memory; Rajbhandari et al. 2019 (arXiv 1910.02054), stage 1.
    Ignores: activations, gradients, buffers.
    """
    weight_byte = parameters * workload.word_byte
    return weight_byte * (layout.data_ranks + physics.optimizer_weight_copies) / accelerator_count
