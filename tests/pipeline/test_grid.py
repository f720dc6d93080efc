"""The grid: every index decodes to what a nested loop would give, and an axis moves what it names."""

from itertools import product

import numpy as np
import pytest

from models.effects.economics import Economics, RunCost
from models.packing import field_names
from pipeline.config import compose_study
from pipeline.grid import Grid, build_grid
from pipeline.simulate import run_unit, work_units

BASE = ["study=reference_model", "hardware=epoch_h100_sxm", "run.training_flop_maximum=1e26"]


def grid_of(*overrides: str) -> Grid:
    return build_grid(compose_study([*BASE, *overrides]))


def test_indices_decode_like_nested_loops() -> None:
    grid = grid_of("axes.run_limit_s=[1e6,2e6,4e6]", "axes.hbm_byte_ratio=[1,2]")
    block = grid.blocks[0]
    columns = block.columns(np.arange(block.size))
    expected = list(product(block.points["d_model"], [1e6, 2e6, 4e6], [80e9, 160e9]))
    got = list(zip(columns["d_model"], columns["run_limit_s"], columns["hbm_byte"], strict=True))
    assert got == expected


def test_parts_cover_every_scenario_once() -> None:
    grid = grid_of("hardware=[epoch_h100_sxm,epoch_a100_sxm]", "axes.run_limit_s=[1e6,2e6]", "unit_scenarios=7")
    units = work_units(grid)
    assert [each for unit in units for each in unit] == list(range(grid.size))
    seen = [ids for unit in units for _, _, ids in grid.parts(unit.start, unit.stop)]
    assert np.concatenate(seen).tolist() == list(range(grid.size))


def test_the_rows_do_not_depend_on_the_units() -> None:
    grid = grid_of()
    whole = run_unit(grid, range(0, grid.size))
    pieces = [run_unit(grid, range(k, k + 1)) for k in range(grid.size)]
    for name in ("scenario_id", "step_time_s", "accelerator_count", "model_flop_utilisation_fraction", "purchase_usd"):
        np.testing.assert_array_equal(whole[name], np.concatenate([piece[name] for piece in pieces]))


def test_flop_follow_tokens() -> None:
    columns = grid_of("axes.dataset_token_ratio=[1,3]").blocks[0].columns(np.arange(2))
    assert columns["training_flop"][1] == pytest.approx(3 * columns["training_flop"][0], rel=1e-12)


@pytest.mark.parametrize(
    "name",
    ["peak_flop_per_s", "sustained_fraction", "hbm_byte_per_s", "l2_byte_per_s", "shared_memory_byte_per_s"]
    + ["matmul_latency_s", "level_1_one_way_byte_per_s", "level_0_one_way_byte_per_s", "level_1_latency_s"]
    + ["level_0_latency_s", "l2_byte", "register_block_byte", "register_blocks_per_multiprocessor"]
    + ["multiprocessor_count", "word_byte", "global_batch_token", "hbm_byte"],
)
def test_every_number_moves_something(name: str) -> None:
    """An input that moves no result is a bug: each moves the time, its latency, memory or feasibility of some run.

    The length of a sequence is left out: the reference model counts the batch in tokens, and a sequence only rounds it.
    """
    factor = {"hbm_byte": 1e-3, "global_batch_token": 0.5}.get(name, 0.25)
    flop = ["run.training_flop_minimum=6e24", "run.training_flop_maximum=1e29"]
    rows = run_unit(grid := grid_of(*flop, f"axes.{name}_ratio=[{factor},1]"), range(0, grid.size))
    columns = ("step_time_s", "latency_time_s", "memory_byte", "accelerator_count", "is_feasible")
    low, plain = ({each: rows[each][k::2] for each in columns} for k in (0, 1))
    assert any(not np.array_equal(low[each], plain[each], equal_nan=True) for each in columns)


def test_what_has_no_scenarios_is_said_and_the_rest_goes_on() -> None:
    """A family none of whose sizes lies within the bounds, and a network built for other chips."""
    chosen = ["hardware=[epoch_h100_sxm,gtx580]", "topology=[vendor,gtx580_2012_a]", "model=[epoch_dense,epoch_sparse]"]
    grid = build_grid(compose_study([*chosen, "physics=epoch2024", "run.training_flop_maximum=1e25"]))
    assert grid.size > 0 and {block.model for block in grid.blocks} == {"epoch_dense"}
    pair, family = grid.skipped
    assert pair.startswith("epoch_h100_sxm on gtx580_2012_a (only_hardware")
    assert family.startswith("epoch_sparse (no size of it within run.training_flop_minimum, _maximum = ")


@pytest.mark.parametrize(
    ("axis", "number"),
    [
        ("electricity_price_usd_per_j_ratio", "electricity_price_usd_per_j"),
        ("electricity_price_usd_per_j", "electricity_price_usd_per_j"),
        ("chip_price_usd_ratio", "chip_price_usd"),
        ("server_cost_ratio", "server_cost_ratio"),  # a number whose own name ends so
        ("server_cost_ratio_ratio", "server_cost_ratio"),
    ],
)
def test_an_axis_of_prices_moves_the_prices_of_the_day(axis: str, number: str) -> None:
    """Prices are those of their date first; an axis multiplies or replaces them, and the costs follow."""
    chosen = [
        "study=reference_model",
        "hardware=h100_sxm5",
        "model=epoch_dense",
        "topology=vendor",
        "physics=epoch2024",
    ]
    chosen += ["run.training_flop_minimum=3e25", "run.training_flop_maximum=4e25"]
    plain = build_grid(compose_study(chosen)).blocks[0].columns(np.arange(1))[number][0]
    grid = build_grid(compose_study([*chosen, f"axes.{axis}=[1,2]"]))
    found = grid.blocks[0].columns(np.arange(2))[number]
    assert found.tolist() == pytest.approx([1, 2] if axis == number else [plain, 2 * plain])
    rows = run_unit(grid, range(2))
    assert rows["total_usd"][0] < rows["total_usd"][1] and rows[number].tolist() == found.tolist()


@pytest.mark.parametrize("name", field_names(Economics))
def test_every_price_moves_a_cost(name: str) -> None:
    """As an axis of a study: an economic input that moves no result is a bug."""
    axis = f"axes.{name}=[1e6,3e7]" if name == "hardware_age_s" else f"axes.{name}_ratio=[1,2]"
    chosen = ["study=reference_model", "hardware=h100_sxm5", "model=epoch_dense", "physics=epoch2024", axis]
    grid = build_grid(compose_study([*chosen, "run.training_flop_minimum=3e25", "run.training_flop_maximum=4e25"]))
    rows = run_unit(grid, range(2))
    assert any(rows[each][0] != rows[each][1] for each in field_names(RunCost))
