"""What goes into the calibrated model: accelerator, links, transformer, layout, software, constants.

Every field is a number, also where it stands for a choice of the software: one compiled model evaluates all of them.
"""

from models.point import bundle, number
from models.quantities import Quantity


@bundle
class Accelerator:
    """One accelerator at the precision of its linear layers. Rates are dense nominal peaks."""

    peak_16bit_flop_per_s: Quantity = number(
        "FLOP/s", "dense peak at 16 bits, accumulating at 32 (32 bits on chips without)"
    )
    peak_linear_flop_per_s: Quantity = number("FLOP/s", "dense peak at the precision of the linear layers")
    achievable_matmul_fraction: Quantity = number("1", "published rate of large matmuls / 16-bit peak")
    exponential_per_s: Quantity = number("1/s", "special-function results of the whole chip")
    hbm_byte_per_s: Quantity = number("B/s", "bandwidth of device memory")
    processor_count: Quantity = number("1", "multiprocessors or cores that share matmul tiles")
    power_ratio: Quantity = number("1", "power limit / that of the full part of the same design")


@bundle
class Links:
    """Three network levels, domain, pod and what joins pods; the placement of ranks decides which one a group uses."""

    scale_up_byte_per_s: Quantity = number("B/s", "one-way bandwidth of an accelerator inside a domain")
    scale_out_byte_per_s: Quantity = number("B/s", "one-way bandwidth of an accelerator between domains of one pod")
    domain_ranks: Quantity = number("1", "accelerators of one scale-up domain")
    pod_ranks: Quantity = number("1", "accelerators of one pod, hall or site; more than any run has where there is one")
    top_byte_per_s: Quantity = number("B/s", "one-way bandwidth of an accelerator between pods")
    top_latency_s: Quantity = number("s", "time of the smallest message between pods")


@bundle
class Transformer:
    """The shape of a transformer. Widths in elements over all heads."""

    layer_count: Quantity = number("1", "layers")
    moe_layer_fraction: Quantity = number("1", "share of the layers that have experts; 0 = dense")
    hidden_width: Quantity = number("1", "width of the residual stream")
    ffn_width: Quantity = number("1", "hidden width of the dense layers' feed-forward")
    ffn_matrix_count: Quantity = number("1", "2 (GELU, ReLU) or 3 (SwiGLU)")
    query_width: Quantity = number("1", "heads x query/key head width")
    key_value_width: Quantity = number("1", "kv heads x head width (MLA: heads x non-rotary key width)")
    value_width: Quantity = number("1", "heads x value head width (used with MLA only)")
    query_rank_width: Quantity = number("1", "MLA query compression, 0 without")
    key_value_rank_width: Quantity = number("1", "MLA key/value compression, 0 without MLA")
    rope_width: Quantity = number("1", "MLA rotary key width")
    score_head_count: Quantity = number("1", "query heads")
    sequence_token: Quantity = number("token", "length of one sequence")
    window_token: Quantity = number("token", "sliding attention window; the sequence where there is none")
    windowed_layer_fraction: Quantity = number("1", "share of the layers whose attention is windowed")
    vocabulary_size: Quantity = number("1", "rows of the embedding")
    embedding_is_tied: Quantity = number("0/1", "input and output embedding are one")
    learned_position_count: Quantity = number("1", "rows of a learned position embedding")
    expert_count: Quantity = number("1", "routed experts of a mixture layer; 0 = dense")
    experts_per_token: Quantity = number("1", "routed experts one token meets")
    shared_expert_count: Quantity = number("1", "experts every token meets")
    expert_ffn_width: Quantity = number("1", "hidden width of one expert")


@bundle
class TransformerLayout:
    """How the run is split. Rank order, inner to outer: tensor, context, data (experts inside), pipeline."""

    tensor_ranks: Quantity = number("1", "tensor-parallel degree")
    sequence_ranks: Quantity = number("1", "tensor_ranks with sequence parallelism, else 1")
    context_ranks: Quantity = number("1", "context-parallel degree")
    context_all_to_all_ranks: Quantity = number(
        "1", "context ranks that exchange heads by all-to-all (Ulysses); 1: all pass keys and values round a ring"
    )
    expert_ranks: Quantity = number("1", "ranks that share one set of experts, out of tensor x context x data")
    pipeline_ranks: Quantity = number("1", "pipeline-parallel degree")
    data_ranks: Quantity = number("1", "data-parallel degree")
    microbatch_sequence: Quantity = number("1", "sequences in one microbatch")
    microbatch_count: Quantity = number("1", "microbatches per step and data rank")
    interleave_ratio: Quantity = number("1", "model chunks per stage, 1 without interleaving")
    end_stage_layer_credit: Quantity = number("1", "2 if embedding and logits count as a layer each, else 0")
    sharding_stage: Quantity = number("1", "ZeRO 0..3, FSDP = 3")
    shard_ranks: Quantity = number(
        "1", "ranks that share the parameters at stage 3 (hybrid: fewer than data x context)"
    )
    is_gpipe: Quantity = number("0/1", "GPipe: all microbatches forward before any backward")
    bubble_ratio: Quantity = number("1", "1 GPipe/1F1B/interleaved, 1/3 zero bubble H1, 0 ideal")
    recompute_matmul_fraction: Quantity = number("1", "share of the forward done again in backward, by kind")
    recompute_attention_fraction: Quantity = number("1", "the same for attention")
    recompute_elementwise_fraction: Quantity = number("1", "the same for memory-bound kernels")
    stored_activation_fraction: Quantity = number(
        "1", "share of a layer's activations kept from forward (full recompute 0)"
    )


@bundle
class Software:
    """What the software stack does: data, not branches."""

    is_unfused_attention: Quantity = number("0/1", "separate kernels, score matrix in HBM")
    is_foreign_attention: Quantity = number("0/1", "flash kernel not written for this chip")
    is_early_attention: Quantity = number("0/1", "first-generation flash kernel")
    is_eager: Quantity = number("0/1", "unfused memory-bound kernels")
    host_ratio: Quantity = number(
        "1", "host cost per layer over PyTorch eager: 1, compiled or TE 0.5, CUDA graphs or XLA 0"
    )
    expert_host_ratio: Quantity = number("1", "1 host waits for token counts, 0 not")
    expert_launch_ratio: Quantity = number(
        "1", "1 host launches each local expert's kernels, less in CUDA graphs, 0 compiled or grouped"
    )
    expert_pass_ratio: Quantity = number("1", "1, or less when permutation, padding and quantisation are fused")
    is_eager_expert: Quantity = number("0/1", "expert bias and activation unfused")
    operand_byte: Quantity = number("B", "bytes of a matmul operand")
    cast_byte: Quantity = number("B", "bytes moved per operand element to quantise it, 0 for 16 bit")
    is_4bit: Quantity = number("0/1", "linear layers run at 4 bits")
    gradient_byte: Quantity = number("B", "bytes per parameter held (and reduced) as gradient")
    gather_byte: Quantity = number("B", "bytes a weight is gathered in: 2, or 1 where 8-bit weights are sent")
    optimizer_byte: Quantity = number("B", "master weights and moments")
    weight_byte: Quantity = number("B", "bytes held a weight")
    byte_per_logit: Quantity = number("B", "peak bytes per logit: 4 fused loss, 8 vocabulary parallel, 12 fp32 upcast")
    stage_output_count: Quantity = number("1", "stage outputs kept per microbatch in flight (DeepSpeed 1)")
    bucket_byte: Quantity = number("B", "communication buckets held all the time")
    is_static_allocation: Quantity = number("0/1", "memory planned by the compiler")
    has_dropout: Quantity = number("0/1", "activations are dropped out")
    pipeline_exposed_ratio: Quantity = number("1", "1, or less when sends overlap")
    pipeline_is_split: Quantity = number("0/1", "each tensor rank sends its share")
    tensor_exposed_ratio: Quantity = number("1", "1, or 0.5 with asynchronous tensor parallelism")
    is_reduction_overlapped: Quantity = number("0/1", "gradients reduced during backward")
    expert_load_ratio: Quantity = number("1", "tokens of the busiest expert rank over the mean, 1 balanced")


@bundle
class Constants:
    """The constants of the calibrated model; values, ranges and what they were fitted on: conf/physics."""

    sustained_matmul_fraction: Quantity = number(
        "1", "rate of large matmuls inside a step over the published achievable rate"
    )
    flash_attention_fraction: Quantity = number(
        "1", "tensor rate of flash kernels over the achievable rate, exponentials apart"
    )
    exponential_work_ratio: Quantity = number(
        "1",
        "special-function work per score, in exponentials: itself, and maximum, scaling, sum and conversion",
    )
    foreign_attention_time_ratio: Quantity = number(
        "1", "time of a flash kernel not written for the chip (FA1/FA2/Triton on Hopper or later) over one that is"
    )
    early_attention_time_ratio: Quantity = number(
        "1", "time of a first-generation flash kernel (FA1, Triton; before mid 2023) over a second-generation one"
    )
    fused_pass_count: Quantity = number("1", "passes over T h per layer forward, fused kernels")
    eager_pass_count: Quantity = number("1", "the same for eager or legacy kernels")
    score_pass_count: Quantity = number("1", "passes over the score matrix, unfused attention")
    host_layer_s: Quantity = number("s", "host time to launch one layer forward, eager")
    expert_host_s: Quantity = number("s", "host synchronisation of a dropless MoE layer pass")
    expert_launch_s: Quantity = number("s", "host time to launch the kernels of one local expert, forward")
    expert_pass_count: Quantity = number("1", "passes over routed tokens: permutation, activation, padding")
    scale_out_achieved_fraction: Quantity = number("1", "achieved share of NIC bandwidth")
    tensor_exposed_fraction: Quantity = number("1", "exposed share of tensor-parallel collectives")
    data_exposed_fraction: Quantity = number("1", "exposed share of gradient reduction")
    shard_exposed_fraction: Quantity = number("1", "exposed share of weight gathering")
    four_bit_gain_fraction: Quantity = number("1", "share of the gap from 16 to 4 bit peak realised")
    power_exponent: Quantity = number(
        "1", "rate over power limit, for a design sold at several limits: P ~ f V^2 gives 1/3 to 1"
    )
    pipeline_exposed_fraction: Quantity = number("1", "exposed share of pipeline sends")
    hbm_achieved_fraction: Quantity = number("1", "achieved share of HBM bandwidth")
    scale_up_achieved_fraction: Quantity = number("1", "achieved share of scale-up bandwidth")
    matmul_tile_width: Quantity = number("1", "matmul tile edge")
    wave_loss_fraction: Quantity = number("1", "share of the last-wave loss that is paid")
    unfused_matmul_fraction: Quantity = number("1", "rate of batched score matmuls over the large-matmul rate")
    fused_backward_ratio: Quantity = number("1", "flash attention backward over forward: 5 matmuls against 2")
    activation_byte: Quantity = number("B", "bytes of an activation element")
    pass_replicated_fraction: Quantity = number("1", "share of passes not split by tensor parallelism")
    pass_ffn_ratio: Quantity = number("1", "activation-function passes over all passes, per feed-forward matrix")
    collective_latency_s: Quantity = number("s", "fixed cost of one collective, its launch included")
    scale_up_ring_hop_s: Quantity = number("s", "one hop of a ring inside a domain")
    scale_out_ring_hop_s: Quantity = number("s", "one hop of a ring between domains")
    scale_out_tree_hop_s: Quantity = number("s", "one hop of a tree between domains")
    expert_exposed_fraction: Quantity = number("1", "exposed share of the expert all-to-all")
    backward_host_ratio: Quantity = number(
        "1", "host time of backward over forward: about two kernels for each forward one"
    )
    logit_traffic_byte: Quantity = number("B", "bytes moved per logit by softmax and loss")
    optimizer_step_byte: Quantity = number("B", "bytes moved per owned parameter by Adam")
    step_overhead_s: Quantity = number("s", "fixed host time per step")
    allocator_ratio: Quantity = number("1", "reserved over allocated memory")
    context_byte: Quantity = number("B", "CUDA context, NCCL buffers, workspaces")
    score_dropout_byte: Quantity = number("B", "bytes per score that attention dropout adds: mask 1, output 2")
    working_layer_count: Quantity = number("1", "layers' activations alive while recomputing")
    accelerator_mtbf_s: Quantity = number(
        "s", "mean time between failures of one accelerator and its share of the rest"
    )
    checkpoint_byte_per_s: Quantity = number("B/s", "share of storage bandwidth that one accelerator has")
    restart_time_s: Quantity = number("s", "time from a failure to training again")
