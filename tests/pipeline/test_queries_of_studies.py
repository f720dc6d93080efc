"""Questions that studies ask: their answers on small made-up tables, worked by hand."""

from datetime import date

import duckdb
import pyarrow as pa
import pytest

from pipeline.config import compose_study
from pipeline.grid import build_grid
from pipeline.query import ask, connect
from pipeline.query_files import packaged_sql, read_query
from pipeline.sweep_run import run_study

COMMON = {
    "topology": "vendor",
    "model": "dense",
    "physics": "epoch2024",
    "precision": "bf16",
    "variant": "as_is",
    "price_date": "release",
    "run_limit_s": 1e7,
    "is_feasible": True,
    "sustained_fraction": 0.8,
    "constant_dollar_ratio": 1.0,
    "data_ranks": 1,
    "pipeline_ranks": 1,
    "tensor_model_ranks": 2,
    "tensor_ff_ranks": 4,
    "expert_ranks": 1,
    "microbatch_count": 1,
    "step_time_s": 1.0,
    "tensor_time_s": 0.0,
    "layer_transfer_time_s": 0.0,
    "data_time_s": 0.0,
}


def database(rows, catalogue=(), export_status=()):
    """Return a database whose `points` are the rows over the common values, with the views of a results folder."""
    connection = duckdb.connect()
    filled = [{**COMMON, "scenario_id": i, "series_id": i, "point_id": i, **row} for i, row in enumerate(rows)]
    points = pa.Table.from_pylist(filled)
    connection.register("points", points)
    scenarios, _, rest = packaged_sql("_views").partition("-- Table `catalogue`")
    connection.execute(scenarios)
    for name, given in (("catalogue", catalogue), ("export_status", export_status)):
        if given:
            connection.register(name, pa.Table.from_pylist(list(given)))
    return connection


def answer(connection, name, **parameters):
    columns, rows = ask(connection, read_query(name), parameters)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def run(hardware, price_date="release", *, total, flop=1e25, count=8, time=1e6, energy=3.6e12, **more):
    money = {"total_usd": total, "purchase_usd": 10 * total, "energy_usd": total / 10, "energy_j": energy}
    row = {"hardware": hardware, "price_date": price_date, "training_flop": flop, "accelerator_count": count}
    return row | money | {"run_time_s": time, "model_flop_utilisation_fraction": 0.4} | more


def test_cost_by_year_takes_the_cheapest_that_is_for_sale():
    rows = [
        run("old", "2012", total=1e8),
        run("new", "2012", total=1.0),  # not released: no price, see below
        run("old", "2020", total=9e7, constant_dollar_ratio=1.2),
        run("new", "2020", total=1e7, constant_dollar_ratio=1.2),
        run("broken", "2020", total=1e6, is_feasible=False),
    ]
    rows[1] |= dict.fromkeys(("total_usd", "purchase_usd", "energy_usd", "energy_j"), None)
    found = answer(database(rows), "cost_by_year")
    assert [(each["price_date"], each["hardware"], each["chip_count"]) for each in found] == [
        ("2012", "old", 1),
        ("2020", "new", 2),
    ]
    assert found[1]["cost_million_usd"] == 10 and found[1]["constant_cost_million_usd"] == pytest.approx(12)
    assert answer(database(rows), "cost_by_year", cost="purchase")[0]["cost_million_usd"] == 1000


STATUS = [
    {"hardware": chip, "vendor_country": country, "day": date(2024, 1, 1), "rule": rule, "outcome": outcome}
    | {"is_obtainable": free, "reason": ""}
    for chip, country, rule, outcome, free in (
        ("best", "US", "bis", "restricted", False),
        ("cut", "US", "", "not_restricted", True),
        ("local", "CN", "", "not_restricted", True),
    )
]


def test_export_rule_effect_compares_the_cheapest_with_the_cheapest_obtainable():
    rows = [
        run("best", "2024", total=1e7, count=8, time=1e6, energy=1e12),
        run("cut", "2024", total=4e7, count=32, time=1e6, energy=5e12),
        run("local", "2024", total=3e7, count=16, time=2e6, energy=6e12),
    ]
    connection = database(rows, export_status=STATUS)
    (any_maker,) = answer(connection, "export_rule_effect")
    assert (any_maker["free_hardware"], any_maker["free_rule"], any_maker["bound_hardware"]) == ("best", "bis", "local")
    ratios = ("accelerator_ratio", "accelerator_time_ratio", "total_ratio", "energy_ratio")
    assert [any_maker[name] for name in ratios] == pytest.approx([2, 4, 3, 6])
    (foreign,) = answer(connection, "export_rule_effect", maker="foreign")
    assert foreign["bound_hardware"] == "cut" and foreign["total_ratio"] == pytest.approx(4)


def test_export_status_of_chips_gives_chips_times_time_against_the_least():
    rows = [run("best", total=1.0, count=8, time=1e6), run("cut", total=1.0, count=32, time=1e6)]
    found = {
        each["hardware"]: each
        for each in answer(database(rows, export_status=STATUS), "export_status_of_chips", training_flop=1e25)
    }
    assert found["best"]["accelerator_time_ratio"] == 1 and found["cut"]["accelerator_time_ratio"] == 4
    assert found["local"]["accelerator_time_ratio"] is None and not found["best"]["is_obtainable"]


def sized(variant, sizes, mfus, total=1e6):
    return [
        run("chip", total=total, flop=size, variant=variant, series_id=len(variant))
        | {"model_flop_utilisation_fraction": mfu, "is_feasible": mfu > 0}
        for size, mfu in zip(sizes, mfus, strict=True)
    ]


def test_variant_effect_against_as_is():
    """80% of the ceiling 0.8 is 0.64: linear to 1e26 as it is and to 1e27 without latency."""
    rows = sized("as_is", [1e25, 1e26, 1e27, 1e28], [0.75, 0.7, 0.5, 0.0])
    rows += sized("no_latency", [1e25, 1e26, 1e27, 1e28], [0.79, 0.75, 0.65, 0.3], total=8e5)
    found = {each["variant"]: each for each in answer(database(rows), "variant_effect", training_flop=1e25)}
    assert found["as_is"]["end_of_linear_training_flop"] == 1e26 and found["as_is"]["largest_training_flop"] == 1e27
    changed = found["no_latency"]
    assert (changed["end_of_linear_ratio"], changed["largest_ratio"]) == (10, 10)
    assert changed["utilisation_ratio"] == pytest.approx(0.79 / 0.75) and changed["total_ratio"] == pytest.approx(0.8)


def test_sensitivity_pairs_low_and_high_and_orders_by_swing():
    rows = sized("as_is", [1e25, 1e26], [0.75, 0.7], total=1e6)
    rows += sized("hardware.small=low", [1e25, 1e26], [0.75, 0.7], total=9e5)
    rows += sized("hardware.small=high", [1e25, 1e26], [0.75, 0.7], total=1.1e6)
    rows += sized("hardware.large=low", [1e25, 1e26], [0.75, 0.5], total=1e6)
    entry = {"catalogue_group": "hardware", "entry_id": "chip", "low": 1.0, "high": 2.0}
    catalogue = [{**entry, "input": "small"}, {**entry, "input": "large"}]
    found = answer(database(rows, catalogue=catalogue), "sensitivity", training_flop=1e25)
    assert [each["input"] for each in found] == ["large", "small"]
    assert found[0]["swing"] == 10 and found[0]["end_of_linear_ratio_at_low"] == pytest.approx(0.1)
    assert found[1]["swing"] == pytest.approx(1.1 / 0.9)
    assert (found[1]["total_ratio_at_low"], found[1]["total_ratio_at_high"]) == pytest.approx((0.9, 1.1))
    assert (found[1]["low"], found[1]["high"]) == (1.0, 2.0)


def sites(count, byte_per_s, time, local=1.0):
    return run("chip", total=1.0, count=64, time=time) | {
        "site_count": count,
        "site_link_one_way_byte_per_s": byte_per_s,
        "site_link_latency_s": 1e-3,
        "local_step_count": local,
        "token_penalty_ratio": 1.0,
    }


SITES = [
    sites(1, 1e9, 1e6),
    sites(4, 1e8, 2e6),
    sites(4, 1e9, 1.1e6),
    sites(4, 1e10, 1.05e6),
    sites(4, 1e8, 1.1e6, 100),
]


def test_multi_site_penalty_is_against_one_site_of_as_many():
    found = answer(database(SITES), "multi_site_penalty")
    by_link = {(each["link_gigabyte_per_s"], each["local_step_count"]): each for each in found}
    assert (
        len(found) == 4 and by_link[0.1, 1]["time_ratio"] == 2 and by_link[1.0, 1]["time_ratio"] == pytest.approx(1.1)
    )
    # 16 chips a site x 1e9 B/s x 8 bit = 0.128 Tbit/s; 1 ms of fibre at c / 1.468 = 204 km
    assert by_link[1.0, 1]["site_link_terabit_per_s"] == pytest.approx(0.128)
    assert by_link[1.0, 1]["fibre_km"] == pytest.approx(204.2, abs=0.1)


def test_site_bandwidth_is_the_least_that_keeps_the_speed():
    found = {each["local_step_count"]: each for each in answer(database(SITES), "site_bandwidth")}
    assert found[1]["link_gigabyte_per_s"] == 1 and found[1]["time_ratio"] == pytest.approx(1.1)
    assert found[100]["link_gigabyte_per_s"] == pytest.approx(0.1)
    strict = {each["local_step_count"]: each for each in answer(database(SITES), "site_bandwidth", speed_share=0.99)}
    assert strict[1]["link_gigabyte_per_s"] is None and strict[1]["best_time_ratio"] == pytest.approx(1.05)


def test_bottleneck_counts_what_is_not_hidden():
    """0.7 of the step is matmul: of 0.5 + 0.1 traffic at most 0.2 is outside it and the bubble of 0.1."""
    parts = {"matmul_time_s": 0.7, "tensor_time_s": 0.5, "data_time_s": 0.1, "latency_time_s": 0.0}
    row = run("chip", total=1.0) | parts | {"bubble_fraction": 0.1, "model_flop_utilisation_fraction": 0.48}
    hidden = row | {"matmul_time_s": 0.9, "model_flop_utilisation_fraction": 0.64, "training_flop": 2e25}
    first, second = answer(database([row, hidden]), "bottleneck_share")
    assert (first["bottleneck"], first["bottleneck_share"]) == ("tensor", pytest.approx(0.2))
    assert first["ideal_matmul_share"] == pytest.approx(0.6)
    # all traffic hides behind matmuls, which take 0.9 of the step for arithmetic of 0.8: 0.1 lost, as in the bubble
    assert second["bottleneck"] in ("bubble", "matmul") and second["bottleneck_share"] == pytest.approx(0.1)


def test_time_parts_name_each_part_and_the_bubble():
    parts = {"matmul_time_s": 1.4, "latency_time_s": 0.2, "step_time_s": 2.0, "bubble_fraction": 0.1}
    found = {each["part"]: each for each in answer(database([run("chip", total=1.0) | parts]), "time_parts")}
    assert found["matmul"]["step_share"] == pytest.approx(0.7) and found["latency"]["part_time_s"] == pytest.approx(0.2)
    assert found["bubble"]["part_time_s"] == pytest.approx(0.2)
    assert "step" not in found and "run" not in found


def test_batch_effect_compares_with_fewest_chips_and_smallest_batch():
    rows = [
        run("chip", total=1.0, count=count, time=time) | {"global_batch_token": batch}
        for count, batch, time in ((8, 1e6, 8e6), (16, 1e6, 5e6), (8, 4e6, 8e6), (16, 4e6, 4e6))
    ]
    found = {
        (each["accelerator_count"], each["global_batch_token"]): each for each in answer(database(rows), "batch_effect")
    }
    assert found[16, 1e6]["speedup_ratio"] == pytest.approx(1.6) and found[16, 4e6]["speedup_ratio"] == 2
    assert found[16, 4e6]["batch_speedup_ratio"] == pytest.approx(1.25) and found[8, 1e6]["batch_speedup_ratio"] == 1
    assert found[8, 1e6]["tensor_ranks"] == 8


def test_frontier_by_year_names_the_ends():
    rows = [
        run("cheap", "2020", total=1e6, time=9e6, energy=9e12),
        run("fast", "2020", total=5e6, time=1e6, energy=8e12),
        run("lean", "2020", total=4e6, time=5e6, energy=3.6e12),
    ]
    (found,) = answer(database(rows), "frontier_by_year")
    assert [found[f"{end}_hardware"] for end in ("cheapest", "fastest", "least_energy")] == ["cheap", "fast", "lean"]
    assert (found["run_count"], found["least_energy_gigawatt_hour"]) == (3, 1)


def test_cost_ratio_has_every_basis():
    bases = ("chip_purchase_usd", "amortised_hardware_usd", "cloud_usd")
    rows = [run("one", total=2e6) | dict.fromkeys(bases, 1.0), run("two", total=6e6) | dict.fromkeys(bases, 5.0)]
    rows[1]["constant_dollar_ratio"], rows[1]["cloud_usd"] = 2.0, None
    found = answer(database(rows), "cost_ratio", training_flop=1e25, baseline="one")
    two = next(each for each in found if each["hardware"] == "two")
    assert (two["chip_ratio"], two["amortised_ratio"], two["total_ratio"]) == (5, 5, 3)
    assert two["constant_total_ratio"] == 6 and two["cloud_ratio"] is None


def test_chips_are_compared_at_the_same_place_on_the_axes(tmp_path) -> None:
    """Three prices of electricity: three ratios a pair, each with both chips at that price, and 1 against oneself."""
    chosen = ["hardware=[h100_sxm5,v100_sxm2_32]", "model=epoch_dense", "topology=vendor", "physics=epoch2024"]
    chosen += ["run.training_flop_maximum=1e26", "axes.electricity_price_usd_per_j_ratio=[0.5,1,2]"]
    study = compose_study(["study=reference_model", *chosen, f"results={tmp_path / 'run'}"])
    run_study(study, build_grid(study))
    connection = connect(study.results)
    columns, rows = ask(connection, read_query("cost_ratio"), {"training_flop": 2e25})
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert len(found) == 2 * 2 * 3
    alone = [row["energy_cost_ratio"] for row in found if row["hardware"] == row["baseline_hardware"]]
    assert alone == [1.0] * 6
    between = [row for row in found if row["hardware"] == "v100_sxm2_32" and row["baseline_hardware"] == "h100_sxm5"]
    prices = [row["energy_cost_ratio"] / row["energy_ratio"] for row in between]  # of a joule, then over now
    assert prices == pytest.approx([prices[0]] * 3, rel=1e-12)
    assert len({row["total_ratio"] for row in between}) == 3
    columns, rows = ask(connection, read_query("headline"), {"training_flop": 2e25, "baseline": "h100_sxm5"})
    ratios = [dict(zip(columns, row, strict=True)) for row in rows]
    assert len(ratios) == 6 and all(row["purchase_ratio"] is not None for row in ratios)
