"""Memory-bound kernels: norms, activations, casts, permutation, gradient accumulation, logits, optimiser."""

from models.quantities import Quantity, Scalar


def elementwise_time_s(
    *,
    token: Quantity,
    hidden_width: Quantity,
    ffn_width: Quantity,
    ffn_matrix_count: Quantity,
    tensor_ranks: Quantity,
    sequence_ranks: Quantity,
    pass_count: Quantity,
    pass_replicated_fraction: Quantity,
    pass_ffn_ratio: Quantity,
    element_byte: Quantity,
    hbm_byte_per_s: Quantity,
) -> Scalar:
    """Return the time of norms, residuals, biases, dropout and activation function of one layer, forward.

    t = bytes n T [ h (r/sp + (1-r)/tp) + c f (matrices)/tp ] / B; n = equivalent passes over T h, r = share of them
    not split by tensor parallelism (split by sp when sequence parallel), c = passes of the activation function over n.
    Valid when: T h exceeds L2. Source: Korthikanti 2022 sec. 4.2 (which tensors are replicated); n fitted.
    """
    width = hidden_width * (pass_replicated_fraction / sequence_ranks + (1 - pass_replicated_fraction) / tensor_ranks)
    return (
        element_byte
        * pass_count
        * token
        * (width + pass_ffn_ratio * ffn_matrix_count * ffn_width / tensor_ranks)
        / hbm_byte_per_s
    )


def cast_time_s(*, token: Quantity, operand_width: Quantity, cast_byte: Quantity, hbm_byte_per_s: Quantity) -> Scalar:
    """Return the time of quantising matmul inputs to 8 or 4 bits; 0 at 16 bits.

    t = c T w / B. cast_byte = 3: read 2, write 1; the column-wise copy and the amax pass are taken as fused.
    Source: Micikevicius 2022; Transformer Engine user guide. Ignores: fusion into producers.
    """
    return cast_byte * token * operand_width / hbm_byte_per_s


def expert_permutation_time_s(
    *,
    routed_token: Quantity,
    hidden_width: Quantity,
    expert_ffn_width: Quantity,
    pass_count: Quantity,
    element_byte: Quantity,
    hbm_byte_per_s: Quantity,
) -> Scalar:
    """Return the time of the memory-bound work around the experts of one layer, forward.

    Permute, pad, activation, weighted sum, un-permute.

    t = n bytes R (h + f) / B, R = tokens x experts per token on this rank. n = equivalent passes, fitted.
    Valid when: dropless routing. Source: MegaBlocks (Gale 2022); Megatron-Core MoE token dispatcher; n fitted.
    Ignores: router softmax and top-k (T x experts, below 1%).
    """
    return pass_count * element_byte * routed_token * (hidden_width + expert_ffn_width) / hbm_byte_per_s


def gradient_accumulation_time_s(
    *, parameter_count: Quantity, gradient_byte: Quantity, hbm_byte_per_s: Quantity
) -> Scalar:
    """Return the time of adding one microbatch's weight gradients into the accumulator: read and write it, 2 g P / B.

    Source: Megatron gradient_accumulation_fusion. Ignores: skipping it when there is one microbatch.
    """
    return 2 * gradient_byte * parameter_count / hbm_byte_per_s


def logit_traffic_time_s(
    *,
    token: Quantity,
    vocabulary_size: Quantity,
    tensor_ranks: Quantity,
    traffic_byte: Quantity,
    hbm_byte_per_s: Quantity,
) -> Scalar:
    """Return the time of softmax, loss and their gradient over the logits of one microbatch.

    t = bytes moved per logit x T V / (tp B).

    traffic_byte about 16: write 2, read for max and sum 4 + 4, read and write the gradient 4 + 2. Source: counting.
    """
    return traffic_byte * token * vocabulary_size / tensor_ranks / hbm_byte_per_s


def optimizer_time_s(*, parameter_count: Quantity, step_byte: Quantity, hbm_byte_per_s: Quantity) -> Scalar:
    """Return the time of the Adam update of the parameters one rank owns: bytes moved per parameter / HBM bandwidth.

    step_byte: read grad 4 + master 4 + two moments 8, write master 4 + moments 8 + weight 2 = 30. Source: counting.
    """
    return step_byte * parameter_count / hbm_byte_per_s
