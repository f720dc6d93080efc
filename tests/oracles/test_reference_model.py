"""The reference model, row by row: its published code's results for matmuls, fixed layouts and full searches.

`FLOPSCAPE_ORACLES` names another folder with files of the same names and columns.
"""

import ast
import os
from functools import lru_cache, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

from models.effects.matmul import hierarchy_matmul_time_s
from models.packing import field_names
from models.point import Hardware
from pipeline.catalogue import CONF_DIRECTORY, hardware_fields, load_chip, read_yaml
from pipeline.config import compose_study
from pipeline.evaluate_table import evaluate_frame
from pipeline.grid import build_grid
from pipeline.physics import load_physics
from pipeline.simulate import run_unit

TABLES = Path(os.environ.get("FLOPSCAPE_ORACLES", Path(__file__).parent.parent / "data" / "oracles"))
ROUNDING = 1e-9  # the same formulas in another order of operations
SEARCH_ROUNDING = 1e-6  # winners may differ between exact ties
SECONDS_PER_MONTH = 3.154e7 / 12
FAMILIES = {"default": "", "none": "_fixed_batch", "deepseek": "_deepseek_batch"}


@lru_cache
def hardware_of(name: str) -> str:
    """Return the catalogue id of a chip of the reference model."""
    for path in (CONF_DIRECTORY / "hardware").glob("epoch_*.yaml"):
        if read_yaml(path).get("reference_name") == name:
            return path.stem
    raise KeyError(name)


def table(name: str) -> pl.DataFrame:
    return pl.read_csv(TABLES / name, null_values="NA", infer_schema_length=None)


def physics():
    return load_physics(read_yaml(CONF_DIRECTORY / "physics" / "epoch2024.yaml"), "physics/epoch2024.yaml", "epoch2024")


def test_matmul_time() -> None:
    rows = table("epoch_matmul_time.csv")
    for key, group in rows.group_by("gpu", "for_weight_grads"):
        gpu, is_weight_gradient = str(key[0]), bool(key[1])
        file = f"hardware/{hardware_of(gpu)}.yaml"
        numbers = hardware_fields(load_chip(read_yaml(CONF_DIRECTORY / file), file), "auto")
        chip = Hardware(**{name: jnp.float64(numbers[name]) for name in field_names(Hardware)})

        def time_s(d1, d2, b, *, chip: Hardware, flag: bool):
            return hierarchy_matmul_time_s(
                rows=d1,
                columns=d2,
                batch=b,
                word_byte=jnp.float64(2.0),
                hardware=chip,
                physics=physics().physics,
                is_weight_gradient=flag,
            )

        sides = [jnp.asarray(group[side].to_numpy(), dtype=jnp.float64) for side in ("d1", "d2", "b")]
        got = jax.vmap(partial(time_s, chip=chip, flag=is_weight_gradient))(*sides)
        np.testing.assert_allclose(got, group["time_s"].to_numpy(), rtol=ROUNDING)


def batch_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the table's points in our words."""
    names = {"d_model": "d_model", "d_ff": "d_ff", "layers": "layer_count", "sparsity": "expert_count"}
    names |= {"seq_len": "sequence_token", "microbatches": "microbatch_count", "interleave": "interleave_count"}
    names |= {"DP_tup": "data_ranks", "TPm_tup": "tensor_model_ranks", "TPff_tup": "tensor_ff_ranks"}
    names |= {"PP_tup": "pipeline_ranks", "EP_tup": "expert_ranks", "zero_bubble": "is_zero_bubble"}
    names |= {"overlap_TP": "overlaps_tensor", "overlap_DP": "overlaps_data", "overlap_PP": "overlaps_pipeline"}
    return rows.select(
        pl.col("gpu").map_elements(hardware_of, return_dtype=pl.String).alias("hardware"),
        (pl.col("batch_seqs") * pl.col("seq_len")).alias("global_batch_token"),
        *(pl.col(theirs).alias(ours) for theirs, ours in names.items()),
    )


def test_batch_time() -> None:
    rows = table("epoch_batch_time.csv")
    points = batch_points(rows)
    got = evaluate_frame(points, physics())
    weights = 2.0 * rows["d_model"] * rows["d_ff"] * rows["layers"] * rows["sparsity"]
    steps = (20.0 * weights / points["global_batch_token"]).to_numpy()
    np.testing.assert_allclose(got["run_time_s"], rows["total_time_s"], rtol=ROUNDING)
    np.testing.assert_allclose(got["model_flop_utilisation_fraction"], rows["utilization"], rtol=ROUNDING)
    for ours, theirs in (
        ("tensor_time_s", "tp_comm_s"),
        ("data_time_s", "dp_comm_s"),
        ("layer_transfer_time_s", "pp_ep_comm_s"),
        ("latency_time_s", "latency_s"),
    ):
        np.testing.assert_allclose(got[ours].to_numpy() * steps, rows[theirs].to_numpy(), rtol=ROUNDING, atol=1e-12)


def search_cases() -> list[tuple[str, str, str]]:
    return table("epoch_training_runs.csv").select("gpu", "sparse", "batch_fun").unique().sort(pl.all()).rows()


@lru_cache
def searched(gpu: str, sparse: str, batch: str) -> pl.DataFrame:
    """Return the sweep of one setting, as `flopscape sweep` would run it."""
    overrides = [f"hardware={hardware_of(gpu)}", f"model=epoch_{sparse}{FAMILIES[batch]}", "physics=epoch2024"]
    grid = build_grid(compose_study([*overrides, "topology=vendor", "study=reference_model"]))
    return pl.DataFrame(run_unit(grid, range(0, grid.size)))


@pytest.mark.parametrize(("gpu", "sparse", "batch"), search_cases())
def test_training_runs(gpu: str, sparse: str, batch: str) -> None:
    rows = table("epoch_training_runs.csv").filter(
        (pl.col("gpu") == gpu) & (pl.col("sparse") == sparse) & (pl.col("batch_fun") == batch)
    )
    ours = searched(gpu, sparse, batch).with_columns(pl.col("d_model").cast(pl.Int64))
    both = rows.join(ours, on="d_model", how="left", suffix="_ours")
    assert both["scenario_id"].null_count() == 0
    assert (both["months"].is_not_null() == both["is_feasible"]).all()
    feasible = both.filter("is_feasible")
    assert feasible["accelerator_count"].to_list() == feasible["N_gpu"].to_list()
    shape = {"layers": "layer_count", "sparsity": "expert_count", "batch_tokens": "global_batch_token"}
    for theirs, name in (shape | {"N_param": "parameter_count", "train_flop": "training_flop"}).items():
        np.testing.assert_allclose(feasible[name], feasible[theirs], rtol=ROUNDING)
    months = feasible["run_time_s"].to_numpy() / SECONDS_PER_MONTH
    np.testing.assert_allclose(months, feasible["months"], rtol=SEARCH_ROUNDING)
    np.testing.assert_allclose(
        feasible["model_flop_utilisation_fraction"], feasible["utilization"], rtol=SEARCH_ROUNDING
    )


DEGREES = {"TP_model": "tensor_model_ranks", "TP_ff": "tensor_ff_ranks", "PP": "pipeline_ranks", "DP": "data_ranks"}
DEGREES |= {"EP": "expert_ranks", "pp_interleave": "interleave_count", "microbatches": "microbatch_count"}


@pytest.mark.parametrize(("gpu", "sparse", "batch"), search_cases())
def test_training_run_degrees(gpu: str, sparse: str, batch: str) -> None:
    """Where the degrees differ, the published layout is an exact tie: evaluated by us, it takes the same time."""
    rows = table("epoch_training_runs.csv").filter(
        (pl.col("gpu") == gpu) & (pl.col("sparse") == sparse) & (pl.col("batch_fun") == batch),
        pl.col("months").is_not_null(),
    )
    ours = searched(gpu, sparse, batch).with_columns(pl.col("d_model").cast(pl.Int64))
    both = rows.join(ours, on="d_model", suffix="_ours")
    differs = both.filter(pl.any_horizontal(pl.col(theirs) != pl.col(name) for theirs, name in DEGREES.items()))
    if differs.height:
        points = differs.select(
            pl.lit(hardware_of(gpu)).alias("hardware"),
            "d_model",
            "d_ff",
            pl.col("layers").alias("layer_count"),
            pl.col("sparsity").alias("expert_count"),
            "sequence_token",
            pl.col("batch_tokens").alias("global_batch_token"),
            pl.col("DP_tup").alias("data_ranks"),
            pl.col("TPm_tup").alias("tensor_model_ranks"),
            pl.col("TPff_tup").alias("tensor_ff_ranks"),
            pl.col("PP_tup").alias("pipeline_ranks"),
            pl.col("EP_tup").alias("expert_ranks"),
            pl.col("microbatches").alias("microbatch_count"),
            pl.col("pp_interleave").alias("interleave_count"),
        )
        # the tables do not say the schedule: one of the two must give the time of ours
        times = [
            evaluate_frame(points.with_columns(is_zero_bubble=pl.lit(flag)), physics())["step_time_s"].to_numpy()
            for flag in (0, 1)
        ]
        ours_s = differs["step_time_s"].to_numpy()
        nearest = np.where(np.abs(times[0] - ours_s) < np.abs(times[1] - ours_s), *times)
        np.testing.assert_allclose(nearest, ours_s, rtol=1e-12)


def test_tables_are_whole() -> None:
    assert len(ast.literal_eval(table("epoch_batch_time.csv")["DP_tup"][0])) in (1, 2, 3)
    assert table("epoch_matmul_time.csv").height > 0
    assert table("epoch_training_runs.csv").height > 0
