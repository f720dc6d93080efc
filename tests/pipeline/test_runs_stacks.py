"""What a run's stack does: which one it is, and what follows from its year, its chip and its notes."""

from pathlib import Path

import pytest

from pipeline.accelerators import precision_fields
from pipeline.runs import read_runs
from tests.pipeline.test_runs import written

MIXTURE = {"n_experts": "128", "top_k": "8", "moe_d_ff": "1536", "ep": "8", "zero_stage_or_fsdp": "zero1"}


def one(tmp_path: Path, **changes: str) -> dict[str, float]:
    runs = read_runs(written(tmp_path, changes))
    return {name: float(values[0]) for name, values in runs.columns.items()}


@pytest.mark.parametrize(
    ("framework", "year", "gpu", "stack"),
    [
        ("MaxText (JAX)", "2025", "tpu_v5p", "xla"),
        ("MaxText (JAX) 24.12", "2024", "h100_sxm", "xla_gpu"),
        ("Paxml (JAX) 24.11", "2024", "h100_sxm", "xla_gpu"),
        ("NeMo 24.07", "2024", "h100_sxm", "vendor_recipes_24_0"),
        ("NeMo AutoModel", "2025", "h100_sxm", "automodel"),
        ("NeMo 25.04", "2025", "h100_sxm", "vendor_recipes"),
        ("Megatron-Bridge 26.02", "2026", "b200", "vendor_recipes_bridge"),
        ("Megatron-Bridge 26.06", "2026", "b200", "vendor_recipes_26_06"),
        ("AscendSpeed (Megatron)", "2023", "ascend910b", "megatron_lm_2023"),
        ("Megatron-LM", "2024", "h100_sxm", "megatron_lm"),
        ("Megatron-DeepSpeed", "2024", "a100", "megatron_deepspeed"),
        ("deepspeed 0.11.1", "2024", "a100", "deepspeed"),
    ],
)
def test_the_first_stack_that_matches(tmp_path: Path, framework: str, year: str, gpu: str, stack: str) -> None:
    changes = {"framework": framework, "year": year, "gpu": gpu}
    assert read_runs(written(tmp_path, changes)).about["stack"].to_list() == [stack]


@pytest.mark.parametrize(
    ("changes", "waits", "launches"),
    [
        ({"framework": "Megatron-Core"}, 1.0, 1.0),
        ({"framework": "NeMo 25.04"}, 0.0, 1.0),  # its recipes drop what experts cannot hold
        ({"framework": "Megatron-Bridge 26.02", "gpu": "gb200"}, 0.5, 0.5),  # half of it in graphs
        ({"framework": "Megatron-Bridge 26.02", "gpu": "b200"}, 0.5, 0.5),
        ({"framework": "Megatron-Bridge 26.02", "gpu": "b200", "pp": "4", "dp": "16"}, 1.0, 1.0),
        ({"framework": "Megatron-Bridge 26.02", "gpu": "gb200", "notes": "tokendrop"}, 0.0, 0.5),
        ({"framework": "Megatron-Bridge 26.02", "gpu": "gb200", "notes": "dropless"}, 0.5, 0.5),
        ({"framework": "Megatron-Bridge 26.06", "gpu": "gb200"}, 0.0, 0.0),
        ({"framework": "MaxText", "gpu": "tpu_v6e"}, 0.0, 0.0),
    ],
)
def test_what_experts_cost_the_host(tmp_path: Path, changes: dict[str, str], waits: float, launches: float) -> None:
    got = one(tmp_path, **(MIXTURE | changes))
    assert (got["expert_host_ratio"], got["expert_launch_ratio"]) == (waits, launches)


@pytest.mark.parametrize(
    ("changes", "is_eager"),
    [
        ({"year": "2024"}, 1.0),
        ({"year": "2025"}, 0.0),
        ({"year": "2024", "notes": "compile"}, 0.0),
        ({"year": "2025", "notes": "eager"}, 1.0),
        ({"year": "2024", "precision": "float8"}, 0.0),
    ],
)
def test_when_torchtitan_is_compiled(tmp_path: Path, changes: dict[str, str], is_eager: float) -> None:
    """By its notes; else where it multiplies in 8 bits, which needs it, and from 2025."""
    assert one(tmp_path, framework="torchtitan", **changes)["is_eager"] == is_eager


def test_vendors_ports_have_fused_attention(tmp_path: Path) -> None:
    ported = {"framework": "Megatron-DeepSpeed", "precision": "bf16"}
    assert one(tmp_path, **ported, gpu="gaudi2", year="2024")["is_unfused_attention"] == 0.0
    assert one(tmp_path, **ported, gpu="a100", year="2024")["is_unfused_attention"] == 1.0


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"framework": "deepspeed", "zero_stage_or_fsdp": "zero1", "precision": "bf16"}, (2, 16, 2, 2)),
        ({"framework": "DeepSpeed", "zero_stage_or_fsdp": "zero1", "precision": "bf16", "year": "2022"}, (6, 12, 2, 2)),
        ({"framework": "NeMo AutoModel"}, (2, 4, 2, 2)),
        ({"framework": "torchtitan", "precision": "float8"}, (4, 8, 4, 1)),
        ({"framework": "NeMo 25.04", "zero_stage_or_fsdp": "zero1", "precision": "fp8"}, (4, 12, 2, 1)),
        ({"framework": "Megatron-LM", "zero_stage_or_fsdp": "zero1", "precision": "fp8"}, (4, 12, 2, 2)),
    ],
)
def test_bytes_of_state(tmp_path: Path, changes: dict[str, str], state: tuple[float, ...]) -> None:
    """(gradient, optimiser, weight, weight as sent) of a parameter."""
    got = one(tmp_path, **changes)
    names = ("gradient_byte", "optimizer_byte", "weight_byte", "gather_byte")
    assert tuple(got[name] for name in names) == state


@pytest.mark.parametrize(("precision", "byte"), [("bf16", 2.0), ("fp8", 1.0), ("fp4", 1.0), ("fp32", 2.0)])
def test_weights_of_a_planned_run_are_sent_as_they_are_multiplied(precision: str, byte: float) -> None:
    assert precision_fields(precision)["gather_byte"] == byte


def test_tiles_of_the_vocabulary_hold_fewer_logits(tmp_path: Path) -> None:
    whole = one(tmp_path)["byte_per_logit"]
    assert one(tmp_path, notes="16 vocabulary tiles")["byte_per_logit"] == whole / 16
