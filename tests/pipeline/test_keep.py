"""keep=best, top:K, pareto and all agree: the first three are what a reader of all rows would choose."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from pipeline.candidate_columns import CHUNK_ROWS, LONG_RUN, Spans, by_piece, repeated, sealed
from pipeline.config import compose_study
from pipeline.grid import Grid, build_grid
from pipeline.layouts import divisors
from pipeline.query import connect
from pipeline.search_layouts import placement_counts
from pipeline.simulate import run_unit, unit_tables, work_units
from pipeline.store import open_results
from pipeline.sweep_run import run_study

SUMS = 1e-12  # the same formulas, compiled once for one layout and once for many placements
SMALL = ("run.training_flop_maximum=1e26", "study=reference_model")


@lru_cache
def grid_of(keep: str, *overrides: str) -> Grid:
    chosen = ["hardware=[epoch_h100_sxm,epoch_v100_sxm]", "model=[epoch_dense,epoch_sparse]", "topology=vendor"]
    return build_grid(compose_study([*chosen, "physics=epoch2024", f"keep={keep}", *SMALL, *overrides]))


@lru_cache
def rows_of(keep: str, *overrides: str) -> dict[str, np.ndarray]:
    grid = grid_of(keep, *overrides)
    return run_unit(grid, range(grid.size))


def ordered(everything: dict[str, np.ndarray], scenario: int) -> np.ndarray:
    """Return the feasible rows of a scenario in the written order: time, traffic, enumeration."""
    rows = np.nonzero((everything["scenario_id"] == scenario) & everything["is_feasible"])[0]
    names = ("tensor_time_s", "layer_transfer_time_s", "data_time_s")
    traffic = np.sum([everything[name][rows] for name in names], axis=0)
    return rows[np.lexsort((rows, traffic, everything["step_time_s"][rows]))]


def test_all_has_every_candidate_once():
    best, everything = rows_of("best"), rows_of("all")
    ids, rows = np.unique(everything["scenario_id"], return_counts=True)
    assert ids.tolist() == best["scenario_id"].tolist()
    assert rows.tolist() == best["candidate_count"].tolist()
    assert len(np.unique(everything["point_id"])) == len(everything["point_id"])
    assert (everything["point_id"] >> np.uint64(32) == everything["scenario_id"]).all()


@pytest.mark.parametrize(
    "network", [("topology=one_level",), ("axes.level_0_group_ranks=[6]",), ("topology=tpu_v4_pod",)]
)
def test_degrees_multiply_on_every_network(network: tuple[str, ...]):
    one = ("hardware=epoch_h100_sxm", "model=epoch_dense", "axes.accelerator_count=[48]", *network)
    best, everything = rows_of("best", *one), rows_of("all", *one)
    rows = np.unique(everything["scenario_id"], return_counts=True)[1]
    assert rows.tolist() == np.maximum(best["candidate_count"], 1).tolist()
    for degree in ("data_ranks", "tensor_model_ranks", "tensor_ff_ranks", "pipeline_ranks", "expert_ranks"):
        levels = [everything[name] for name in everything if name.startswith(f"{degree}_level_")]
        assert (np.prod(levels, axis=0) == everything[degree]).all()


def test_all_flags_what_does_not_fit_or_end_in_time():
    table = rows_of("all")
    does_not_fit = table["memory_byte"] > table["hbm_byte"]
    assert does_not_fit.any() and (table["infeasible_reason"][does_not_fit] == "memory").all()
    too_late = ~does_not_fit & (table["run_time_s"] >= table["run_limit_s"])
    assert too_late.any() and (table["infeasible_reason"][too_late] == "time").all()
    assert (table["is_feasible"] == ~(does_not_fit | too_late)).all()
    assert np.isfinite(table["step_time_s"]).all()


@pytest.mark.parametrize("keep", ["best", "top:1", "top:5"])
def test_top_is_the_first_of_all_in_order(keep: str):
    table, everything = rows_of(keep), rows_of("all")
    for scenario in np.unique(table["scenario_id"]):
        kept = np.nonzero(table["scenario_id"] == scenario)[0]
        expected = ordered(everything, scenario)[: len(kept)]
        for name in ("step_time_s", "data_ranks", "tensor_ff_ranks", "pipeline_ranks_level_1", "memory_byte"):
            np.testing.assert_allclose(table[name][kept], everything[name][expected], rtol=SUMS)


def test_pareto_is_what_nothing_beats_in_time_cost_and_memory():
    table, everything = rows_of("pareto"), rows_of("all")
    for scenario in np.unique(table["scenario_id"]):
        rows = ordered(everything, scenario)
        time_s, memory = everything["step_time_s"][rows], everything["memory_byte"][rows]
        cost = everything["accelerator_count"][rows] * time_s
        front = set()
        for at in range(len(rows)):
            no_worse = (time_s <= time_s[at]) & (cost <= cost[at]) & (memory <= memory[at])
            better = no_worse & ((time_s < time_s[at]) | (memory < memory[at]))
            if not better.any():
                front.add((time_s[at], memory[at]))
        kept = table["scenario_id"] == scenario
        found = sorted(zip(table["step_time_s"][kept], table["memory_byte"][kept], strict=True))
        np.testing.assert_allclose(found, sorted(front), rtol=SUMS)


def test_infeasible_scenario_keeps_one_row_with_its_reason():
    for keep in ("best", "top:3", "pareto", "all"):
        table = rows_of(keep, "run.limit_s=1")
        assert not table["is_feasible"].any()
        assert (table["infeasible_reason"] == "time").all()
        assert len(np.unique(table["scenario_id"])) == grid_of(keep).size


def test_a_scenario_without_layouts_is_an_empty_row_among_all_candidates(tmp_path):
    grid = grid_of("all", "axes.accelerator_count=[7, 4096]")
    with open_results(str(tmp_path), {"study": "x", "config": grid.study.as_composed}, work_units(grid)) as results:
        for unit in work_units(grid):
            results.writer.write_tables(unit, unit_tables(grid, unit))
        rows = results.finish()["row_count"]
    table = rows_of("all", "axes.accelerator_count=[7, 4096]")
    assert rows == len(table["scenario_id"])
    assert set(np.unique(table["scenario_id"])) == set(range(grid.size))
    assert "no_layout" in set(table["infeasible_reason"])


def test_pieces_of_a_unit_are_the_unit(monkeypatch):
    monkeypatch.setattr("models.evaluate.EXPAND_POINTS", 1 << 12)  # scenarios fall into pieces, pieces share a call
    grid = grid_of("all")
    pieces = list(unit_tables(grid, range(2, 5)))
    assert len(pieces) >= 3
    whole = rows_of("all")
    at = (whole["scenario_id"] >= 2) & (whole["scenario_id"] < 5)
    for name in ("point_id", "data_ranks_level_1", "infeasible_reason"):
        assert np.concatenate([np.asarray(piece[name]) for piece in pieces]).tolist() == whole[name][at].tolist()
    times = np.concatenate([np.asarray(piece["step_time_s"]) for piece in pieces])
    np.testing.assert_allclose(times, whole["step_time_s"][at], rtol=SUMS)


def test_units_cover_the_grid_and_stay_within_blocks():
    grid = grid_of("all")
    units = work_units(grid)
    assert [at for unit in units for at in unit] == list(range(grid.size))
    for unit in units:
        assert len(grid.parts(unit.start, unit.stop)) == 1


def test_placements_are_counted_as_enumerated():
    degrees = np.array([[8, 6, 1, 12], [2, 4, 1, 16], [3, 1, 5, 9]], dtype=np.float64)
    used = (4, 6)
    counted = placement_counts(degrees, used).tolist()
    by_hand = []
    for column in degrees.T.astype(int):
        ways = 0
        for a in divisors(4):
            for b in divisors(4 // int(a)):
                for c in divisors(6):
                    for d in divisors(6 // int(c)):
                        low = (int(a), int(b), 4 // int(a * b))
                        high = (int(c), int(d), 6 // int(c * d))
                        ways += all(n % (x * y) == 0 for n, x, y in zip(column, low, high, strict=True))
        by_hand.append(ways)
    assert counted == by_hand


@pytest.mark.parametrize("rows", [[3, 0, 5], [LONG_RUN, 4 * LONG_RUN, 1]])
@pytest.mark.parametrize("values", [[1.5, np.nan, 3.0], [1, 2, 3]])
def test_long_runs_are_those_of_numpy(values: list[float], rows: list[int]):
    numbers, counts = np.array(values), np.array(rows)
    found = repeated(numbers, Spans(counts))
    assert found.dtype == numbers.dtype
    np.testing.assert_array_equal(found, np.repeat(numbers, counts))


@pytest.mark.parametrize("rows", [[CHUNK_ROWS, 2 * CHUNK_ROWS + 5, 1], [3 * CHUNK_ROWS - 1, 2, CHUNK_ROWS], [4, 5, 6]])
@pytest.mark.parametrize("values", [[1.5e9, np.nan, 3e9], [1.5e9, 2e9, 2e9], [np.nan] * 3])
def test_a_number_of_each_piece_is_in_all_its_rows(values: list[float], rows: list[int]):
    """By one array or, where pieces are long, by chunks that share a short one: a missing number is a null in both."""
    column = sealed({"it": by_piece("training_flop", np.array(values), Spans(np.array(rows)))})["it"]
    expected = np.repeat(values, rows)
    assert len(column) == sum(rows) and column.null_count == np.isnan(expected).sum()
    np.testing.assert_array_equal(column.to_numpy(zero_copy_only=False), expected)


def test_an_empty_scenario_keeps_its_place_among_the_others():
    """On one level every placement is tried in one call; a scenario without layouts (a prime of chips) ends it."""
    study = [*SMALL, "topology=one_level", "hardware=epoch_h100_sxm", "model=epoch_dense", "physics=epoch2024"]
    grid = build_grid(compose_study([*study, "keep=all", "axes.accelerator_count=[256,10000019,512]"]))
    table = run_unit(grid, range(grid.size))
    assert (np.diff(table["scenario_id"].astype(np.int64)) >= 0).all()
    assert "no_layout" in table["infeasible_reason"] and table["is_feasible"].any()


STUDIED = {
    "epoch2024": ("hardware=epoch_h100_sxm", "model=[epoch_dense,epoch_sparse]", "run.training_flop_maximum=1e26"),
    "calibrated": ("hardware=h100_sxm5", "model=[gpt3_175b,mixtral_8x22b]", "axes.accelerator_count=[8,256]"),
}


@pytest.mark.parametrize("physics", STUDIED)
def test_the_view_of_scenarios_is_what_a_search_for_the_best_writes(tmp_path: Path, physics: str) -> None:
    """Whatever else was kept: the same layout of each scenario, ties and scenarios without a solution included."""
    wanted = "scenario_id, is_feasible, step_time_s, data_ranks, tensor_ff_ranks, pipeline_ranks, expert_ranks"
    found = {}
    for keep in ("best", "all", "top:3", "pareto"):
        chosen = [*STUDIED[physics], "topology=vendor", "study=reference_model", f"physics={physics}", f"keep={keep}"]
        study = compose_study([*chosen, f"results={tmp_path / keep.replace(':', '_')}"])
        run_study(study, build_grid(study))
        rows = connect(study.results).execute(f"select {wanted} from scenarios order by scenario_id").fetchall()
        found[keep] = [row if row[1] else row[:2] for row in rows]
    assert len(found["best"]) > 1 and any(row[1] for row in found["best"])
    assert all(rows == found["best"] for rows in found.values())
