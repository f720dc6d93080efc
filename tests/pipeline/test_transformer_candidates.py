"""keep=all of the calibrated physics: every layout once, the numbers that one layout alone has, the same best."""

from functools import lru_cache

import numpy as np
import pytest

from models.evaluate_layouts import EXPAND_LANES, LANES
from pipeline.config import compose_study
from pipeline.grid import Grid, build_grid
from pipeline.simulate import run_unit

SUMS = 1e-12  # the same formulas, compiled for many layouts at once and for a few
COMMON = ("topology=vendor", "physics=calibrated", "study=reference_model")
CLUSTERS = ("hardware=h100_sxm5", "model=[mixtral_8x22b,gpt3_175b]", "axes.accelerator_count=[256,4096]")
# A run that has to end in a week: clusters double until one does
GROWING = ("hardware=h100_sxm5", "model=gpt3_175b", "run.limit_s=604800")
TOO_SMALL = ("hardware=a100_sxm4_40", "model=llama31_405b", "run.accelerator_count=8")
NO_LAYOUT = ("hardware=h100_sxm5", "model=gpt3_175b", "run.accelerator_count=10000019")  # a prime: no degree divides it


def grid_of(keep: str, *overrides: str) -> Grid:
    return build_grid(compose_study([*COMMON, f"keep={keep}", *overrides]))


@lru_cache
def rows_of(keep: str, *overrides: str) -> dict[str, np.ndarray]:
    grid = grid_of(keep, *overrides)
    return run_unit(grid, range(grid.size))


@pytest.mark.parametrize("overrides", [CLUSTERS, GROWING])
def test_every_layout_is_a_row_once(overrides: tuple[str, ...]) -> None:
    best, everything = rows_of("best", *overrides), rows_of("all", *overrides)
    ids, rows = np.unique(everything["scenario_id"], return_counts=True)
    assert ids.tolist() == best["scenario_id"].tolist()
    assert rows.tolist() == best["candidate_count"].tolist()
    assert len(np.unique(everything["point_id"])) == len(everything["point_id"])
    assert (everything["point_id"] >> np.uint64(32) == everything["scenario_id"]).all()
    assert max(rows) > EXPAND_LANES > LANES  # more than one chunk, and a padded tail


@pytest.mark.parametrize("overrides", [CLUSTERS, GROWING])
def test_the_best_of_all_is_the_best(overrides: tuple[str, ...]) -> None:
    best, everything = rows_of("best", *overrides), rows_of("all", *overrides)
    for row, scenario in enumerate(best["scenario_id"]):
        at = np.nonzero((everything["scenario_id"] == scenario) & everything["is_feasible"])[0]
        first = at[np.lexsort((at, everything["memory_byte"][at], everything["run_time_s"][at]))[0]]
        shared = [name for name in best if name in everything and name not in ("layout_rank", "point_id")]
        for name in shared:
            if best[name].dtype.kind == "f" and name != "nearest_memory_byte":
                assert everything[name][first] == pytest.approx(best[name][row], rel=SUMS, nan_ok=True), name
            elif name != "nearest_memory_byte":
                assert everything[name][first] == best[name][row], name


def test_columns_are_those_of_best() -> None:
    best, everything = rows_of("best", *CLUSTERS), rows_of("all", *CLUSTERS)
    assert set(best) - set(everything) == {"candidate_count"}  # each candidate is a row
    assert set(everything) <= set(best)


def test_what_does_not_fit_or_end_in_time_is_flagged() -> None:
    table = rows_of("all", *GROWING)
    large = table["memory_byte"] > table["hbm_byte"]
    late = ~large & (table["run_time_s"] >= table["run_limit_s"])
    assert large.any() and late.any() and table["is_feasible"].any()
    assert (table["infeasible_reason"] == np.where(large, "memory", np.where(late, "time", ""))).all()
    sizes = np.unique(table["accelerator_count"])
    assert len(sizes) > 1 and (np.diff(np.log2(sizes)) == 1).all()  # doubling
    assert (table["accelerator_count"][table["is_feasible"]] == sizes[-1]).all()  # until one ends in time


def test_where_nothing_fits_every_layout_says_so() -> None:
    table = rows_of("all", *TOO_SMALL)
    assert len(table["scenario_id"]) == rows_of("best", *TOO_SMALL)["candidate_count"][0]
    assert (table["infeasible_reason"] == "memory").all()
    assert (table["nearest_memory_byte"] == table["memory_byte"].min()).all()


def test_where_there_is_no_layout_one_row_says_so() -> None:
    table = rows_of("all", *NO_LAYOUT)
    assert table["infeasible_reason"].tolist() == ["no_layout"]
    assert not table["is_feasible"][0] and np.isnan(table["step_time_s"][0])
