"""Work units: they cover a study once, and how it is cut changes no row; what a study counts beforehand."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest

from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import Grid, build_grid
from pipeline.simulate import block_candidates, count, run_unit, unit_tables, work_units

STUDIES = {  # several blocks, of two levels of network and of one; two models, two values of an axis, two dates
    "epoch2024": ("study=reference_model", "hardware=[h100_sxm5]", "topology=[vendor,one_level]")
    + ("model=dense", "run.training_flop_near=[1e22,1e23]", "run.accelerator_count=8", "axes.hbm_byte_ratio=[0.5,1]"),
    "calibrated": ("hardware=[h100_sxm5,v100_sxm2_32]", "topology=vendor", "model=[gpt3_small,gpt3_medium]")
    + ("run.dataset_token=1e9", "run.accelerator_count=4", "axes.hbm_byte_ratio=[0.5,1]"),
}
KEEPS = ("best", "top:2", "pareto", "all")
CUT = (1, 2, 6, 9)  # within blocks and across them


@lru_cache
def grid_of(physics: str, *overrides: str) -> Grid:
    dates = "price_dates=[release,2025-07-01]"
    return build_grid(compose_study([*STUDIES[physics], f"physics={physics}", dates, *overrides]))


@lru_cache
def whole(physics: str, keep: str) -> dict[str, np.ndarray]:
    grid = grid_of(physics, f"keep={keep}")
    return run_unit(grid, range(grid.size))


@pytest.mark.parametrize("physics", STUDIES)
@pytest.mark.parametrize("fixed", [None, 1, 3, 100])
def test_units_cover_every_scenario_once_in_order_and_within_blocks(physics: str, fixed: int | None) -> None:
    grid = grid_of(physics, *([f"unit_scenarios={fixed}"] if fixed else []))
    units = work_units(grid)
    assert [scenario for unit in units for scenario in unit] == list(range(grid.size))
    for unit in units:
        assert len(unit) <= (fixed or grid.size)
        assert len(grid.parts(unit.start, unit.stop)) == 1  # one block
    if fixed:
        short = [unit for unit in units if len(unit) < fixed]
        ends = {int(start) for start in grid.starts[1:]}
        assert all(unit.stop in ends for unit in short)  # only the last of a block is smaller than asked


@pytest.mark.parametrize("keep", KEEPS)
@pytest.mark.parametrize("physics", STUDIES)
def test_rows_do_not_depend_on_how_a_study_is_cut(physics: str, keep: str) -> None:
    grid, expected = grid_of(physics, f"keep={keep}"), whole(physics, keep)
    ends = [end for end in np.cumsum(CUT).tolist() if end < grid.size] + [grid.size]
    assert len(ends) > 2
    pieces = [run_unit(grid, range(start, end)) for start, end in pairwise([0, *ends])]
    for name, values in expected.items():
        # A level that no network of a piece has is no column of it, and zeros in the whole
        found = [each.get(name, np.zeros(len(each["scenario_id"]), values.dtype)) for each in pieces]
        np.testing.assert_array_equal(np.concatenate(found), values, err_msg=name)


@pytest.mark.parametrize("physics", STUDIES)
def test_rows_of_a_unit_follow_the_ids_and_no_id_is_missing(physics: str) -> None:
    for keep in KEEPS:
        ids = whole(physics, keep)["scenario_id"].astype(int)
        assert (np.diff(ids) >= 0).all()
        assert set(ids) == set(range(grid_of(physics).size))
        assert len(np.unique(whole(physics, keep)["point_id"])) == len(ids)
    assert len(whole(physics, "best")["scenario_id"]) == grid_of(physics).size


@pytest.mark.parametrize("physics", STUDIES)
def test_a_series_is_the_first_of_the_scenarios_that_differ_in_the_model_alone(physics: str) -> None:
    grid, best = grid_of(physics), whole(physics, "best")
    beside = ("hardware", "topology", "price_date", "variant")
    place = np.array([next(i for i, b in enumerate(grid.starts[1:]) if id < b) for id in range(grid.size)])
    chosen = [0 if physics == "epoch2024" else each for each in place]  # named models are blocks, no points of one
    axis = [grid.blocks[b].columns(np.array([i - grid.starts[b]]))["hbm_byte"][0] for i, b in enumerate(place)]
    keys = list(zip(*(best[name].tolist() for name in beside), axis, chosen, strict=True))
    first = [keys.index(key) for key in keys]
    assert best["series_id"].tolist() == first
    for keep in KEEPS[1:]:
        rows = whole(physics, keep)
        at = rows["scenario_id"].astype(int)
        for name in ("series_id", *beside):
            np.testing.assert_array_equal(rows[name], best[name][at])


@pytest.mark.parametrize("physics", STUDIES)
def test_pieces_of_a_unit_are_its_rows(physics: str) -> None:
    for keep in KEEPS:
        grid = grid_of(physics, f"keep={keep}")
        lengths = [len(each["scenario_id"]) for each in unit_tables(grid, range(grid.size))]
        assert sum(lengths) == len(whole(physics, keep)["scenario_id"])


@pytest.mark.parametrize("physics", STUDIES)
def test_count_is_the_candidates_of_the_first_cluster_size(physics: str) -> None:
    grid, best = grid_of(physics), whole(physics, "best")
    scenarios, candidates = count(grid)
    assert scenarios == grid.size
    assert candidates == sum(block_candidates(grid, block) for block in grid.blocks)
    # The size of each cluster is given, so the first is the only one: rows say how many candidates they are best of
    assert candidates == best["candidate_count"].sum()
    assert candidates == len(whole(physics, "all")["scenario_id"])


def test_local_steps_have_one_row_each() -> None:
    sites = ["topology=epoch_data_centres", "run.accelerator_count=65536", "axes.local_step_count=[1,100]"]
    base = ["study=reference_model", "hardware=[epoch_h100_sxm]", "model=epoch_dense", "run.training_flop_near=[3e25]"]
    for keep in KEEPS[1:]:
        grid = build_grid(compose_study([*base, *sites, f"keep={keep}"]))
        with pytest.raises(UserError) as caught:
            run_unit(grid, range(grid.size))
        assert str(caught.value) == (
            f"config.yaml: keep = {keep}: sites with local steps have one row each; choose keep=best"
        )
