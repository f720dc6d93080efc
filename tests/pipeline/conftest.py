"""A small made-up study, so that what stores, asks and reports is tested without simulating anything."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.side_tables import SCHEMAS, parquet_bytes
from pipeline.store import open_results

Table = dict[str, Any]
CHIPS = {  # name, peak FLOP/s, purchase USD per accelerator, training FLOP at which utilisation has halved
    "old_chip": ("Old chip", 1.5e12, 700.0, 1e25),
    "new_chip": ("New chip", 1.0e15, 50_000.0, 1e28),
}
CEILING = 0.7
RUN_LIMIT_S = 7.885e6
SIZES_FLOP = 10.0 ** np.arange(23, 31)


def config() -> dict[str, Any]:
    """Return a configuration with a catalogue of two chips: ten sourced numbers, three of them assumptions."""
    hardware = {}
    for chip, (name, peak, price, _) in CHIPS.items():
        kinds = {"peak_dense_bf16_flop_per_s": "datasheet", "release_price_usd": "list_price", "hbm_byte": "datasheet"}
        kinds |= {"matmul_latency_s": "measured", "sustained_fraction": "assumption"}
        if chip == "old_chip":
            kinds["matmul_latency_s"] = "unverified"
        hardware[chip] = {
            "name": name,
            "vendor": "Maker",
            "released": "2012-11",
            "peak_dense_bf16_flop_per_s": peak,
            "release_price_usd": price,
            "hbm_byte": 8e10,
            "matmul_latency_s": 4.5e-6,
            "sustained_fraction": CEILING,
            "sources": {key: {"ref": "maker_sheet", "where": "table 1", "kind": kind} for key, kind in kinds.items()},
        }
    return {"hardware": hardware, "topology": {"vendor": {"name": "the vendor's own"}}, "run": {"limit_s": RUN_LIMIT_S}}


STUDY = {"study": "made_up", "config": config(), "scenario_count": 16}


def rows(chip: str, first: int, sizes: np.ndarray) -> Table:
    """Return one scenario a training size: utilisation falls off smoothly, the largest run does not end in time."""
    _, peak, price, half = CHIPS[chip]
    n = len(sizes)
    mfu = CEILING / (1.0 + sizes / half)
    feasible = mfu > 0.005
    count = 2.0 ** np.ceil(np.log2(sizes / (peak * mfu * RUN_LIMIT_S)))
    run_time = np.where(feasible, sizes / (peak * mfu * count), np.nan)
    parameters = np.sqrt(sizes / 120.0)
    ids = np.arange(first, first + n)
    pipeline = np.minimum(count, 8.0)
    data = np.minimum(count / pipeline, 2.0**24)
    return {
        "point_id": ids,
        "scenario_id": ids,
        "series_id": np.full(n, list(CHIPS).index(chip) * len(SIZES_FLOP)),
        **{key: np.full(n, value) for key, value in {"study": "made_up", "hardware": chip}.items()},
        **{key: np.full(n, value) for key, value in {"topology": "vendor", "model": "dense"}.items()},
        **{key: np.full(n, value) for key, value in {"physics": "epoch2024", "precision": "bf16"}.items()},
        **{key: np.full(n, value) for key, value in {"variant": "as_is", "price_date": "release"}.items()},
        "training_flop": sizes,
        "parameter_count": parameters,
        "dataset_token": 20 * parameters,
        "d_model": np.full(n, 12288),
        "d_ff": np.full(n, 49152),
        "layer_count": np.full(n, 96),
        "expert_count": np.full(n, 1),
        "sequence_token": np.full(n, 2048),
        "global_batch_token": np.full(n, 4194304),
        "run_limit_s": np.full(n, RUN_LIMIT_S),
        "sustained_fraction": np.full(n, CEILING),
        "accelerator_count": count,
        "data_ranks": data,
        "tensor_model_ranks": np.ones(n),
        "tensor_ff_ranks": count / pipeline / data,
        "pipeline_ranks": pipeline,
        "expert_ranks": np.ones(n),
        "microbatch_count": pipeline,
        "interleave_count": np.ones(n),
        "is_zero_bubble": np.zeros(n),
        "step_time_s": np.where(feasible, run_time / 1e5, np.nan),
        "run_time_s": run_time,
        "model_flop_utilisation_fraction": np.where(feasible, mfu, np.nan),
        "matmul_time_s": run_time * 0.6 / 1e5,
        "tensor_time_s": run_time * 0.1 / 1e5,
        "layer_transfer_time_s": run_time * 0.1 / 1e5,
        "data_time_s": run_time * 0.1 / 1e5,
        "latency_time_s": run_time * 0.1 / 1e5,
        "bubble_fraction": np.where(feasible, 0.1, np.nan),
        "memory_byte": np.where(feasible, 4e10, np.nan),
        "is_feasible": feasible,
        "infeasible_reason": np.where(feasible, "", "time"),
        "purchase_usd": np.where(feasible, count * price, np.nan),
        **money(count, run_time, price),
        "site_count": np.where(ids % 2, 1, 2),
        "local_step_count": np.ones(n),
        "site_link_one_way_byte_per_s": np.full(n, 1e9),
        "site_link_latency_s": np.full(n, 1e-3),
        "token_penalty_ratio": np.ones(n),
        "constant_dollar_ratio": np.ones(n),
        "candidate_count": np.full(n, 10),
    }


def money(count: np.ndarray, run_time_s: np.ndarray, price: float) -> Table:
    """Return the costs of runs by simple rules: written off over 1e8 s, 1 kW an accelerator, 2e-8 USD/J."""
    hardware = count * price * run_time_s / 1e8
    energy = 1e3 * count * run_time_s
    nowhere = np.full(len(count), np.nan)
    return {
        "chip_purchase_usd": np.where(np.isfinite(run_time_s), count * price / 2, np.nan),
        "amortised_hardware_usd": hardware,
        "energy_j": energy,
        "energy_usd": energy * 2e-8,
        "total_usd": hardware + energy * 2e-8,
        "cloud_usd": nowhere,
    }


def unit_table(unit: range) -> Table:
    """Return the rows of a work unit: scenarios 0-7 are of the old chip, 8-15 of the new one."""
    tables = []
    for position, chip in enumerate(CHIPS):
        ids = [i for i in unit if i // len(SIZES_FLOP) == position]
        if ids:
            tables.append(rows(chip, ids[0], SIZES_FLOP[[i % len(SIZES_FLOP) for i in ids]]))
    return {name: np.concatenate([each[name] for each in tables]) for name in tables[0]}


UNITS = [range(0, 6), range(6, 12), range(12, 16)]  # the second holds rows of both chips


SIDE = {
    "prices": [
        {"hardware": "new_chip", "day": date(2024, 1, 1), "kind": "purchase_chip", "is_rent": False, "usd": 5e4}
    ],
    "runs": [{"model": "gpt", "name": "GPT", "hardware": "new_chip", "training_flop": 3e24}],
    "export_status": [
        {"hardware": chip, "day": date(2024, 1, 1), "outcome": outcome, "is_obtainable": free, "rule": "", "reason": ""}
        for chip, outcome, free in (("old_chip", "not_restricted", True), ("new_chip", "restricted", False))
    ],
}


@pytest.fixture
def study() -> dict[str, Any]:
    return {**STUDY, "config": config()}


@pytest.fixture
def units() -> list[range]:
    return UNITS


@pytest.fixture
def make_table() -> Callable[[range], Table]:
    return unit_table


@pytest.fixture(scope="session")
def results_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished results folder of the made-up study; tests only read it."""
    folder = tmp_path_factory.mktemp("results") / "made_up"
    with open_results(str(folder), STUDY, UNITS) as results:
        for unit in UNITS:
            results.write_unit(unit, unit_table(unit))
        results.finish()
    (folder / "catalogue").mkdir()
    for name, rows in SIDE.items():
        (folder / "catalogue" / f"{name}.parquet").write_bytes(parquet_bytes(rows, SCHEMAS[name]))
    return folder
