"""Sites that exchange weights now and then: against one site's own step and a hand-worked exchange."""

import numpy as np
import pytest

from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.simulate import run_unit

ROUNDING = 1e-12  # the same float64 arithmetic in another order
SITE = 32768
STUDY = ["study=reference_model", "hardware=[epoch_h100_sxm]", "model=epoch_dense", "run.training_flop_near=[3e25]"]
SITES = [*STUDY, "topology=epoch_data_centres"]


def rows(*overrides):
    grid = build_grid(compose_study(list(overrides)))
    return run_unit(grid, range(grid.size))


def test_local_steps_are_one_sites_step_and_a_share_of_the_exchange():
    both = rows(*SITES, f"run.accelerator_count={2 * SITE}", "axes.local_step_count=[1,100]")
    apart = {name: values[1] for name, values in both.items()}
    batch = int(apart["global_batch_token"]) // 2
    alone = rows(*SITES, f"run.accelerator_count={SITE}", f"axes.global_batch_token={batch}")
    # 2 sites: 2 (s - 1) / s = 1 time the weights in 2 bytes, a quarter of it sent, 0.5 GB/s from each of 32,768 chips
    exchange_s = apart["parameter_count"] * 2 / 4 / (5e8 * SITE) + 2 * 1e-3
    assert apart["exchange_time_s"] == pytest.approx(exchange_s, rel=ROUNDING)
    assert apart["step_time_s"] == pytest.approx(alone["step_time_s"][0] + exchange_s / 100, rel=ROUNDING)
    steps = apart["dataset_token"] / apart["global_batch_token"]
    penalty = 1 + 0.01 * np.log2(100)
    assert apart["run_time_s"] == pytest.approx(apart["step_time_s"] * steps * penalty, rel=ROUNDING)
    assert (apart["site_count"], apart["accelerator_count"]) == (2, 2 * SITE)
    ranks = [apart[f"{degree}_ranks"] for degree in ("data", "tensor_model", "tensor_ff", "pipeline", "expert")]
    assert np.prod(ranks) == 2 * SITE


def test_rows_in_step_are_what_they_were_without_local_steps():
    both = rows(*SITES, f"run.accelerator_count={2 * SITE}", "axes.local_step_count=[1,100]")
    plain = rows(*SITES, f"run.accelerator_count={2 * SITE}")
    for name in ("step_time_s", "run_time_s", "data_time_s", "data_ranks", "candidate_count"):
        assert both[name][0] == plain[name][0]


def test_utilisation_follows_from_the_step():
    table = rows(*SITES, f"run.accelerator_count={4 * SITE}", "axes.local_step_count=[1,10,1000]")
    for i in range(3):
        flop = table["training_flop"][i] / (table["dataset_token"][i] / table["global_batch_token"][i])
        peak = table["peak_flop_per_s"][i] * table["accelerator_count"][i] * table["step_time_s"][i]
        assert table["model_flop_utilisation_fraction"][i] == pytest.approx(flop / peak, rel=1e-9)


def test_one_site_knows_no_exchange():
    table = rows(*SITES, f"run.accelerator_count={SITE}", "axes.local_step_count=[1,100]")
    assert table["site_count"].tolist() == [1, 1]
    assert table["run_time_s"][0] == table["run_time_s"][1]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("axes.local_step_count=[1,8]", "needs a number of accelerators"),
        (f"run.accelerator_count={SITE + 1}", "evenly"),
    ],
)
def test_what_cannot_be_split_is_refused(override, said):
    local = [] if "local" in override else ["axes.local_step_count=8"]
    with pytest.raises(UserError, match=said):
        rows(*SITES, override, *local)


def test_a_network_without_sites_has_no_local_steps():
    with pytest.raises(UserError, match="local_step_count"):
        rows(*STUDY, "axes.local_step_count=[1,8]")
