"""Axes of names: each change moves the number it names and nothing else, and prices are searched once."""

import numpy as np
import pytest

from pipeline.block import scenario_table
from pipeline.config import compose_study
from pipeline.distinct import search_distinct
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.physics import PhysicsEntry
from pipeline.search import search
from pipeline.simulate import run_unit

TINY = ["hardware=[h100_sxm5]", "topology=vendor", "price_dates=null", "run.training_flop_near=[2.1e25]"]


def grid_of(*overrides):
    return build_grid(compose_study([*TINY, *overrides]))


def columns_of(grid):
    block = grid.blocks[0]
    index = np.arange(block.size)
    return block.columns(index), block.labels(index)


def test_a_size_near_which_one_model_is_kept():
    columns, labels = columns_of(grid_of())
    every, _ = columns_of(build_grid(compose_study(TINY[:3])))
    assert columns["training_flop"].tolist() == [min(size for size in every["training_flop"] if size >= 2.1e25)]
    assert labels["variant"].tolist() == ["as_is"] and labels["price_date"].tolist() == ["release"]


def test_a_variant_sets_multiplies_and_copies():
    change = "variants={plain: {}, set: {hbm_byte: 1.0e+12}, twice: {hbm_byte_ratio: 2}}"
    columns, labels = columns_of(grid_of(change))
    by_name = dict(zip(labels["variant"].tolist(), columns["hbm_byte"].tolist(), strict=True))
    assert by_name == {"plain": 8e10, "set": 1e12, "twice": 1.6e11}
    copied, _ = columns_of(grid_of("variants={flat: {level_1_one_way_byte_per_s: level_0_one_way_byte_per_s}}"))
    assert copied["level_1_one_way_byte_per_s"] == copied["level_0_one_way_byte_per_s"]


def test_a_variant_changes_what_it_names_alone():
    columns, _ = columns_of(grid_of("variants={plain: {}, twice: {hbm_byte_ratio: 2}}"))
    moved = [name for name, values in columns.items() if not np.array_equal(values[0], values[1], equal_nan=True)]
    assert moved == ["hbm_byte"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("variants={odd: {hbm_bite: 1}}", "variants.odd.hbm_bite"),
        ("variants={odd: {hbm_byte: l3_byte}}", "variants.odd.l3_byte"),
        ("variants=[odd]", "must map names to changes"),
        ("price_dates=[yesterday]", "must be a date"),
        ("price_dates=[release,release]", "stands twice"),
        ("run.training_flop_near=[x]", "must be a number"),
    ],
)
def test_mistakes_are_refused_in_one_line(override, said):
    with pytest.raises(UserError, match=said) as caught:
        grid_of(override)
    assert "\n" not in str(caught.value)


def test_prices_of_two_dates_differ_in_money_alone():
    table = run_unit(grid_of("price_dates=[release, 2025-07-01]"), range(2))
    assert table["price_date"].tolist() == ["release", "2025-07-01"]
    assert table["run_time_s"][0] == table["run_time_s"][1]
    assert table["purchase_usd"][0] != table["purchase_usd"][1]
    assert table["constant_dollar_ratio"][1] == 1.0 < table["constant_dollar_ratio"][0]


def test_before_its_release_a_chip_has_no_price_and_the_same_run():
    table = run_unit(grid_of("price_dates=[2022-06, 2022-10]"), range(2))  # released in September 2022
    assert np.isnan(table["purchase_usd"]).tolist() == [True, False]
    assert table["run_time_s"][0] == table["run_time_s"][1]


def test_each_assumption_has_a_low_and_a_high_beside_the_rest_as_it_is():
    grid = grid_of("variants=assumptions")
    columns, labels = columns_of(grid)
    names = labels["variant"].tolist()
    assert names[0] == "as_is" and len(set(names)) == len(names) > 4
    for position, name in enumerate(names[1:], start=1):
        moved = [
            each for each, values in columns.items() if not np.array_equal(values[0], values[position], equal_nan=True)
        ]
        assert len(moved) == 1, name
    group, key = names[1].split("=")[0].split(".", 1)
    source = grid.study.entries["hardware"]["h100_sxm5"]["sources"][key]
    assert group == "hardware" and source["kind"] in ("assumption", "unverified")


def test_scenarios_that_differ_in_prices_are_searched_once_with_the_same_winners():
    grid = grid_of("price_dates=[release, 2024, 2025]", "axes.hbm_byte_per_s_ratio=[1,2]")
    block = grid.blocks[0]
    table = scenario_table(block, block.columns(np.arange(block.size)))
    assert isinstance(block.physics, PhysicsEntry)
    one = search_distinct(table, block.physics.physics, block.physics.rules)
    other = search(table, block.physics.physics, block.physics.rules)
    assert block.size == 6
    np.testing.assert_array_equal(one.layout, other.layout)
    np.testing.assert_array_equal(one.candidate_count, other.candidate_count)


def test_an_axis_or_variants_on_the_command_line_stand_in_place_of_the_studys():
    study = compose_study(["study=batch_and_parallelism", "axes.accelerator_count=[8,16]", "variants={one: {}}"])
    assert dict(study.axes)["accelerator_count"].tolist() == [8, 16] and "global_batch_token" not in dict(study.axes)
    other = compose_study(["study=what_holds_it_back", "variants={as_is: {}, twice: {hbm_byte_ratio: 2}}"])
    assert [name for name, _ in other.variants] == ["as_is", "twice"]
    ranged = compose_study(["study=batch_and_parallelism", "axes.accelerator_count={log2: [1, 2**4]}"])
    assert dict(ranged.axes)["accelerator_count"].tolist() == [1, 2, 4, 8, 16]
