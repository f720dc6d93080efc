"""The words that sources use for chips, precisions, sharding, windows and layouts, each read as what it means."""

from pathlib import Path

import pytest

from pipeline.catalogue import read_entries
from pipeline.runs import read_runs
from pipeline.runs_chips import chip_of
from tests.pipeline.test_runs import written

CHIPS = read_entries("hardware")


@pytest.mark.parametrize(
    ("name", "hbm_byte"),
    [
        ("H100 94GB", 94e9),
        ("A100-SXM-64GB", 64e9),
        ("GH200 96GB", 96e9),
        ("H100-SXM5-80GB", 80e9),
        ("B200 192GB", 180e9),
    ],
)
def test_memory_that_a_name_states(name: str, hbm_byte: float) -> None:
    """Chips are sold with more and less; what differs by less than a tenth is one part, counted twice."""
    found = chip_of(name, CHIPS)
    assert found is not None and found.hbm_byte == hbm_byte


@pytest.mark.parametrize(
    ("gpu", "words", "operand_byte", "peak", "flags"),
    [
        ("h100_sxm", "MXFP8", 1, 1.979e15, []),
        ("h100_sxm", "bf16+fp8", 1, 1.979e15, []),
        ("h100_sxm", "FP8 (E4M3)", 1, 1.979e15, []),
        ("b200", "NVFP4", 0.5, 9e15, []),
        ("tpu_v5p", "int8", 1, 9.18e14, []),
        ("h100_sxm", "bfloat16", 2, 9.894e14, []),
        ("h100_sxm", "amp", 2, 9.894e14, ["precision"]),
        ("h100_sxm", "fp32", 4, 4.947e14, ["precision"]),
        ("v100", "fp32", 4, None, []),
        ("a100", "fp8", 2, 3.12e14, ["precision"]),
    ],
)
def test_spellings_of_precisions(
    tmp_path: Path, gpu: str, words: str, operand_byte: float, peak: float | None, flags: list[str]
) -> None:
    """The fewest bits that are named count; amp is 16 bits; fp32 runs as TF32 where NVIDIA has it; others fall back."""
    runs = read_runs(written(tmp_path, {"gpu": gpu, "precision": words}))
    assert runs.columns["operand_byte"][0] == operand_byte
    assert peak is None or runs.columns["peak_linear_flop_per_s"][0] == pytest.approx(peak, rel=0.03)
    assert runs.about["flags"].to_list() == [flags]


@pytest.mark.parametrize(
    ("words", "stage", "shard_ranks", "flags"),
    [
        ("ZeRO-3", 3, 64, []),
        ("3", 3, 64, []),
        ("ZeRO-DP O1", 1, 64, []),
        ("zero stage 2", 2, 64, []),
        ("SHARD_GRAD_OP", 2, 64, []),
        ("FULL_SHARD", 3, 64, []),
        ("FSDP 16, dp across", 3, 16, []),
        ("hsdp", 3, 8, []),
        ("distributed optimizer", 1, 64, []),
        ("ddp", 0, 64, []),
        ("none", 0, 64, []),
        ("our own scheme", 1, 64, ["zero"]),
    ],
)
def test_spellings_of_sharding(tmp_path: Path, words: str, stage: float, shard_ranks: float, flags: list[str]) -> None:
    runs = read_runs(written(tmp_path, {"zero_stage_or_fsdp": words}))
    got = runs.columns["sharding_stage"][0], runs.columns["shard_ranks"][0], runs.about["flags"].to_list()
    assert got == (stage, shard_ranks, [flags])


def test_fewer_sequences_than_ranks_are_shared(tmp_path: Path) -> None:
    """FSDP over 64 ranks with 16 sequences: four ranks share one. A printed degree is not overruled, but set aside."""
    few = {"global_batch_sequences": "16", "dp": "", "cp": ""}
    runs = read_runs(written(tmp_path, few, {**few, "cp": "1", "dp": "64"}))
    assert [runs.columns[name][0] for name in ("data_ranks", "context_ranks", "microbatch_count")] == [16, 4, 1]
    assert "cp" in runs.about["flags"][0].to_list()
    assert runs.about["aside"].to_list() == ["", "layout"]


@pytest.mark.parametrize("change", [{"tp": "3"}, {"dp": "32"}, {"tp": "128"}, {"global_batch_sequences": "32"}])
def test_a_layout_that_contradicts_itself_is_set_aside(tmp_path: Path, change: dict[str, str]) -> None:
    assert read_runs(written(tmp_path, change)).about["aside"].to_list() == ["layout"]


def test_windows_are_read_with_their_share(tmp_path: Path) -> None:
    notes = (
        "1024-token sliding window",
        "alternating 1024-token sliding window",
        "",
        "5 of 6 layers 1024-token sliding window",
    )
    runs = read_runs(written(tmp_path, *({"notes": note} for note in notes)))
    assert runs.columns["windowed_layer_fraction"].tolist() == pytest.approx([1.0, 0.5, 0.0, 5 / 6])
    assert runs.columns["window_token"].tolist() == [1024, 1024, 8192, 1024]


def test_what_a_row_says_of_its_attention_goes_before_its_stack(tmp_path: Path) -> None:
    old = {"framework": "Megatron-DeepSpeed", "year": "2024"}
    said = ("", "flash attention 2", "without flash attention", "no FlashAttention")
    runs = read_runs(written(tmp_path, *({**old, "notes": note} for note in said)))
    assert runs.columns["is_unfused_attention"].tolist() == [1, 0, 1, 1]


def test_experts_that_tensor_ranks_split(tmp_path: Path) -> None:
    mixture = {"n_experts": "8", "top_k": "2", "moe_d_ff": "14336", "ep": "8", "tp": "4", "dp": "16"}
    runs = read_runs(
        written(tmp_path, {**mixture, "notes": "ETP 4"}, {**mixture, "notes": "expert tensor parallel: 4"}, mixture)
    )
    assert runs.columns["expert_ranks"].tolist() == [32, 32, 8]


def test_a_named_model_fills_blanks_of_its_shape(tmp_path: Path) -> None:
    """Only blanks, only of the same width, and flagged: `llama3_8b` without heads has 8 of keys and values, not 32."""
    blank = {"model_name": "llama3_8b", "n_layers": "", "d_model": "", "n_heads": "", "n_kv_heads": "", "vocab": "0"}
    other = {"model_name": "llama3_8b", "d_model": "2048", "n_kv_heads": ""}
    runs = read_runs(written(tmp_path, blank, other, {"model_name": "llama3_8b"}))
    assert runs.columns["layer_count"].tolist() == [32, 32, 32]
    assert runs.columns["key_value_width"].tolist() == [1024, 4096, 1024]
    assert [("shape" in flags) for flags in runs.about["flags"].to_list()] == [True, False, False]


def test_experts_of_which_little_is_published(tmp_path: Path) -> None:
    runs = read_runs(written(tmp_path, {"n_experts": "8", "ep": "8", "top_k": "", "moe_d_ff": ""}))
    assert runs.about["flags"].to_list() == [["top_k", "moe_d_ff"]]
    assert [runs.columns[name][0] for name in ("experts_per_token", "expert_ffn_width")] == [2, 14336]


@pytest.mark.parametrize(("words", "matrices"), [("SwiGLU", 3), ("silu", 3), ("geglu", 3), ("gelu", 2), ("relu2", 2)])
def test_spellings_of_feed_forwards(tmp_path: Path, words: str, matrices: float) -> None:
    assert read_runs(written(tmp_path, {"ffn_type": words})).columns["ffn_matrix_count"].tolist() == [matrices]
