"""The batch interface: tables in, outcomes out, the same numbers as a sweep; mistakes are one line."""

from pathlib import Path

import polars as pl
import pytest

from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.evaluate_table import evaluate_frame, main
from pipeline.evaluate_transformers import evaluate_transformers
from pipeline.grid import build_grid
from pipeline.physics import PhysicsEntry
from pipeline.physics_calibrated import CalibratedEntry
from pipeline.simulate import run_unit

COMMON = ["study=reference_model", "topology=vendor"]
SAME = 1e-12  # the same kernel on the same numbers


def swept(*overrides: str) -> tuple[dict[str, object], PhysicsEntry | CalibratedEntry]:
    grid = build_grid(compose_study([*COMMON, *overrides]))
    return pl.DataFrame(run_unit(grid, range(0, 1))).row(0, named=True), grid.blocks[0].physics


def test_a_reference_point_equals_its_sweep() -> None:
    row, physics = swept("hardware=epoch_h100_sxm", "model=epoch_sparse")
    assert isinstance(physics, PhysicsEntry)
    degrees = ("data_ranks", "tensor_model_ranks", "tensor_ff_ranks", "pipeline_ranks", "expert_ranks")
    point = {name: f"{row[f'{name}_level_0']}x{row[f'{name}_level_1']}" for name in degrees}
    plain = ("layer_count", "d_model", "d_ff", "expert_count", "sequence_token", "global_batch_token")
    plain += ("microbatch_count", "interleave_count", "is_zero_bubble")
    point |= {name: int(row[name]) for name in plain} | {"hardware": "epoch_h100_sxm"}  # pyright: ignore
    got = evaluate_frame(pl.DataFrame([point]), physics).row(0, named=True)
    for name in ("step_time_s", "run_time_s", "memory_byte", "model_flop_utilisation_fraction"):
        assert got[name] == pytest.approx(row[name], rel=SAME)


def test_a_transformer_equals_its_sweep() -> None:
    row, physics = swept("hardware=h100_sxm5", "model=llama31_405b", "physics=calibrated", "run.accelerator_count=4096")
    assert isinstance(physics, CalibratedEntry)
    names = ("tensor_ranks", "pipeline_ranks", "data_ranks", "context_ranks", "expert_ranks", "sharding_stage")
    names += ("microbatch_sequence", "microbatch_count", "recompute_layer_fraction")
    point = {name: row[name] for name in names} | {"hardware": "h100_sxm5", "model": "llama31_405b"}
    point["interleave_ratio"] = row["interleave_count"]
    point["bubble_ratio"] = physics.rules.zero_bubble_ratio if row["is_zero_bubble"] else 1.0
    chunks = int(row["pipeline_ranks"]) * int(row["interleave_count"])  # pyright: ignore
    point["end_stage_layer_credit"] = 2 if 126 % chunks and 128 % chunks == 0 else 0
    got = evaluate_transformers(pl.DataFrame([point]), physics).row(0, named=True)
    for name in ("step_time_s", "memory_byte", "model_flop_utilisation_fraction"):
        assert got[name] == pytest.approx(row[name], rel=SAME)
    assert got["fits_in_memory"]


TABLE = """hardware,tensor_ranks,pipeline_ranks,data_ranks,microbatch_sequence,microbatch_count,model
h100_sxm5,8,1,8,1,16,llama3_8b
a100_sxm4_80,8,1,8,1,16,llama3_8b
"""


def test_command_writes_what_was_asked(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text(TABLE)
    for ending, read in ((".csv", pl.read_csv), (".parquet", pl.read_parquet), (".json", pl.read_json)):
        out = tmp_path / f"out{ending}"
        assert main([str(table), "--physics", "calibrated", "--out", str(out)]) == 0
        frame = read(out)
        assert frame.height == 2
        assert frame["step_time_s"][0] < frame["step_time_s"][1]  # an H100 is faster than an A100
        assert frame.columns[:7] == TABLE.splitlines()[0].split(",")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("h100_sxm5", "h100_smx5"), "hardware = 'h100_smx5': no such entry"),
        (("tensor_ranks", "tensor_rank"), "column tensor_rank: unknown"),
        ((",8,1,8,1,16,llama3_8b", ",8,1,,1,16,llama3_8b"), "data_ranks is empty"),
        (("h100_sxm5,8,1", "h100_sxm5,-8,1"), "tensor_ranks = -8: must be positive"),
        (("h100_sxm5,8,1", "h100_sxm5,many,1"), "must hold numbers"),
        (("llama3_8b", ""), "model is empty"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    table = tmp_path / "points.csv"
    table.write_text(TABLE.replace(*change, 1))
    with pytest.raises(UserError) as caught:
        main([str(table), "--physics", "calibrated"])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "points.csv"
    table.write_text(TABLE.splitlines()[0] + "\n")
    with pytest.raises(UserError, match="no rows"):
        main([str(table), "--physics", "calibrated"])
