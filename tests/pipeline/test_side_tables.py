"""Prices, published runs and export status go along with a study's rows and can be joined in SQL."""

from datetime import date

import pytest

from pipeline.config import compose_study
from pipeline.grid import build_grid
from pipeline.query import ask, connect
from pipeline.query_files import parse_query
from pipeline.sweep import run

OVERRIDES = ["hardware=[a100_sxm4_80,a800_sxm]", "topology=vendor", "run.training_flop_near=[2.1e25]"]


@pytest.fixture(scope="module")
def connection(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("side") / "study")
    study = compose_study([*OVERRIDES, f"results={folder}", "price_dates=[2022-12-01]"])
    run(study, build_grid(study))
    return connect(folder)


def rows(connection, sql):
    return ask(connection, parse_query("test", sql))[1]


def test_the_rule_of_october_2022_stops_the_a100_and_not_the_a800_that_of_2023_both(connection):
    sql = "select hardware, is_obtainable from export_status where day = '{}' order by hardware"
    assert rows(connection, sql.format("2022-12-01")) == [("a100_sxm4_80", False), ("a800_sxm", True)]
    assert rows(connection, sql.format("2023-10-17")) == [("a100_sxm4_80", False), ("a800_sxm", False)]


def test_prices_are_dated_observations_either_bought_or_rented(connection):
    found = rows(connection, "select day, usd, usd_per_s, is_rent from prices where hardware = 'a100_sxm4_80'")
    assert len(found) > 3
    assert all((usd is None) == is_rent == (usd_per_s is not None) for _, usd, usd_per_s, is_rent in found)
    assert all(date(2016, 1, 1) < day for day, *_ in found)


def test_published_runs_can_be_set_beside_points(connection):
    joined = "select runs.name from runs join (select distinct hardware from points) using (hardware) order by name"
    assert ("BLOOM-176B",) in rows(connection, joined)
