"""Costs: worked by hand, and what must hold whatever the prices are."""

from typing import Any

import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.effects import economics
from models.effects.economics import Economics, run_cost

ROUNDING = 1e-12
YEAR_S = 31557600.0
COUNTS = st.floats(min_value=1.0, max_value=1e7)
TIMES = st.floats(min_value=1.0, max_value=1e8)


def plain(**changes: float) -> Economics:
    """Return round numbers: 10,000 USD chips, servers half as much again, a fifth of the cluster is network."""
    numbers = {
        "chip_price_usd": 10000.0,
        "server_cost_ratio": 1.5,
        "network_cost_fraction": 0.2,
        "lifetime_s": 4.0 * YEAR_S,
        "fleet_utilisation_fraction": 0.8,
        "value_decay_per_s": 0.3 / YEAR_S,
        "hardware_age_s": 0.0,
        "tdp_w": 400.0,
        "power_fraction": 0.75,
        "server_power_ratio": 2.0,
        "pue_ratio": 1.25,
        "electricity_price_usd_per_j": 0.072 / 3.6e6,
        "carbon_kg_per_j": 0.36 / 3.6e6,
        "cloud_price_usd_per_s": 3.6 / 3600.0,
    }
    return Economics(**{key: jnp.asarray(value) for key, value in (numbers | changes).items()})


def cost(count: float, run_time_s: float, **changes: float) -> Any:
    """Return the cost of a run under round numbers."""
    return run_cost(
        economics=plain(**changes), accelerator_count=jnp.asarray(count), run_time_s=jnp.asarray(run_time_s)
    )


def test_a_run_by_hand() -> None:
    # 100 chips, a tenth of a year
    found = cost(100.0, 0.1 * YEAR_S)
    assert float(found.chip_purchase_usd) == pytest.approx(1.0e6, rel=ROUNDING)
    assert float(found.server_purchase_usd) == pytest.approx(0.5e6, rel=ROUNDING)
    assert float(found.network_purchase_usd) == pytest.approx(1.5e6 * 0.2 / 0.8, rel=ROUNDING)
    assert float(found.purchase_usd) == pytest.approx(1.875e6, rel=ROUNDING)
    assert float(found.amortised_hardware_usd) == pytest.approx(1.875e6 * 0.1 / (4 * 0.8), rel=ROUNDING)
    assert float(found.site_power_w) == pytest.approx(100 * 400 * 0.75 * 2 * 1.25, rel=ROUNDING)  # 75 kW
    kwh = 75.0 * 0.1 * YEAR_S / 3600
    assert float(found.energy_usd) == pytest.approx(kwh * 0.072, rel=ROUNDING)
    assert float(found.emissions_kg) == pytest.approx(kwh * 0.36, rel=ROUNDING)
    assert float(found.cloud_usd) == pytest.approx(100 * 0.1 * YEAR_S / 3600 * 3.6, rel=ROUNDING)
    assert float(found.total_usd) == pytest.approx(
        float(found.amortised_hardware_usd) + float(found.energy_usd), rel=ROUNDING
    )


def test_the_network_is_its_share_of_the_whole() -> None:
    found = cost(7.0, 1.0)
    assert float(found.network_purchase_usd / found.purchase_usd) == pytest.approx(0.2, rel=ROUNDING)


def test_decay_of_a_short_run_is_linear_and_of_an_endless_one_the_whole() -> None:
    assert float(cost(1.0, 1.0).decayed_hardware_usd) == pytest.approx(18750 * 0.3 / YEAR_S, rel=1e-7)  # second order
    assert float(cost(1.0, 1e12).decayed_hardware_usd) == pytest.approx(18750, rel=ROUNDING)
    aged = cost(1.0, 1.0, hardware_age_s=YEAR_S).decayed_hardware_usd / cost(1.0, 1.0).decayed_hardware_usd
    assert float(aged) == pytest.approx(float(jnp.exp(-0.3)), rel=ROUNDING)


@given(count=COUNTS, run_time_s=TIMES)
def test_hours_are_what_is_paid_for(count: float, run_time_s: float) -> None:
    one, other = cost(count, run_time_s), cost(2.0 * count, run_time_s / 2.0)
    for basis in ("amortised_hardware_usd", "energy_usd", "cloud_usd", "emissions_kg", "total_usd"):
        assert float(getattr(other, basis)) == pytest.approx(float(getattr(one, basis)), rel=ROUNDING)
    assert float(other.purchase_usd) == pytest.approx(2.0 * float(one.purchase_usd), rel=ROUNDING)


@given(count=COUNTS, run_time_s=TIMES, factor=st.floats(min_value=0.01, max_value=100.0))
def test_dollars_scale_with_prices_and_joules_do_not(count: float, run_time_s: float, factor: float) -> None:
    prices = ("chip_price_usd", "electricity_price_usd_per_j", "cloud_price_usd_per_s")
    base, one = plain(), cost(count, run_time_s)
    other = cost(count, run_time_s, **{key: float(getattr(base, key)) * factor for key in prices})
    for basis in ("purchase_usd", "amortised_hardware_usd", "decayed_hardware_usd", "energy_usd", "cloud_usd"):
        assert float(getattr(other, basis)) == pytest.approx(factor * float(getattr(one, basis)), rel=ROUNDING)
    assert float(other.energy_j) == float(one.energy_j)


def test_a_ratio_to_nothing_is_zero_not_infinite() -> None:
    assert float(economics.cost_ratio(jnp.asarray(5.0), jnp.asarray(2.0))) == 2.5
    assert float(economics.cost_ratio(jnp.asarray(5.0), jnp.asarray(0.0))) == 0.0
