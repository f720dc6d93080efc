"""The pruned search finds what looking at every candidate finds, on networks of one, two and three levels."""

import numpy as np
import pytest

from pipeline.config import compose_study
from pipeline.grid import build_grid
from pipeline.simulate import run_unit

SUMS = 1e-12  # the same formulas, compiled for one placement and for many
CHIPS = ("epoch_h100_sxm_nvlink_everywhere", "epoch_h100_sxm", "epoch_h100_sxm_superpod", "epoch_h100_sxm_superpod_zl")


def rows(chip: str, keep: str, *overrides: str) -> dict[str, np.ndarray]:
    chosen = [f"hardware={chip}", "model=epoch_sparse", "topology=vendor", "study=reference_model", f"keep={keep}"]
    grid = build_grid(compose_study([*chosen, "run.training_flop_maximum=2e26", *overrides]))
    return run_unit(grid, range(grid.size))


@pytest.mark.parametrize("chip", CHIPS)
def test_the_winner_is_the_first_of_all_in_time_traffic_and_order(chip: str):
    best, everything = rows(chip, "best"), rows(chip, "all")
    assert best["is_feasible"].any()
    for at, scenario in enumerate(best["scenario_id"]):
        inside = np.nonzero((everything["scenario_id"] == scenario) & everything["is_feasible"])[0]
        assert best["is_feasible"][at] == (len(inside) > 0)
        if len(inside):
            assert (everything["accelerator_count"][inside] == best["accelerator_count"][at]).all()
            least = everything["step_time_s"][inside].min()
            np.testing.assert_allclose(best["step_time_s"][at], least, rtol=SUMS)


@pytest.mark.parametrize("chip", CHIPS)
def test_parts_of_each_degree_multiply_to_it(chip: str):
    table = rows(chip, "all")
    for degree in ("data_ranks", "tensor_model_ranks", "tensor_ff_ranks", "pipeline_ranks", "expert_ranks"):
        levels = [values for name, values in table.items() if name.startswith(f"{degree}_level_")]
        assert (np.prod(levels, axis=0) == table[degree]).all()


def test_a_smaller_cluster_does_not_end_in_time():
    table = rows("epoch_h100_sxm", "best")
    for count, flop in zip(table["accelerator_count"], table["training_flop"], strict=True):
        near = [f"run.training_flop_minimum={flop * 0.999}", f"run.training_flop_maximum={flop * 1.001}"]
        half = rows("epoch_h100_sxm", "best", *near, f"axes.accelerator_count=[{count // 2}]")
        assert not half["is_feasible"][0] or half["run_time_s"][0] >= half["run_limit_s"][0]


def test_searching_again_gives_the_same_bits():
    one, other = rows("epoch_h100_sxm", "best"), rows("epoch_h100_sxm", "best")
    for name, values in one.items():
        assert np.array_equal(values, other[name], equal_nan=values.dtype.kind == "f")


def test_nothing_of_the_search_depends_on_how_many_are_searched_together():
    whole = rows("epoch_h100_sxm", "best", "axes.run_limit_s=[4e6, 6e6, 8e6]")
    for limit in ("4e6", "6e6", "8e6"):
        alone = rows("epoch_h100_sxm", "best", f"axes.run_limit_s=[{limit}]")
        these = whole["run_limit_s"] == float(limit)
        for name in ("step_time_s", "data_ranks", "pipeline_ranks_level_1", "candidate_count"):
            assert np.array_equal(whole[name][these], alone[name], equal_nan=True)
