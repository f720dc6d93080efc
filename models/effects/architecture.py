"""Size and work of the model that is trained."""

from models.point import Architecture, Workload
from models.quantities import Scalar


def parameter_count(architecture: Architecture) -> Scalar:
    """Return all weights: 2 d_model d_ff per expert and layer.

    Source: arXiv 2411.01137, section on the model of a training run.  Ignores: attention, embeddings, norms.
    """
    a = architecture
    return 2.0 * a.d_model * a.d_ff * a.layer_count * a.expert_count


def active_parameter_count(architecture: Architecture) -> Scalar:
    """Return the weights one token meets (one expert a layer): all weights / experts."""
    return parameter_count(architecture) / architecture.expert_count


def step_model_flop(architecture: Architecture, workload: Workload) -> Scalar:
    """Return the model FLOP of one step: 6 x active parameters x tokens (forward 2, backward 4).

    Source: Kaplan et al. 2020 (arXiv 2001.08361), section 2.1.
    """
    return 6.0 * active_parameter_count(architecture) * workload.global_batch_token
