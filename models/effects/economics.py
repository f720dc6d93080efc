"""What a run costs: hardware, energy, rent and emissions, each basis a number of its own.

The bases are not parts of one sum. Hardware amortised and electricity add up to the cost of a run on machines one owns
(`total_usd`); rent is the other way to pay for the same; purchase is what must be paid before the first step.
"""

import jax.numpy as jnp

from models.point import bundle, number
from models.quantities import Quantity, Scalar


@bundle
class Economics:
    """Prices and habits that turn accelerators and seconds into dollars."""

    chip_price_usd: Quantity = number("USD", "price of one accelerator at the price date")
    server_cost_ratio: Quantity = number("1", "server-level cost per accelerator / accelerator price")
    network_cost_fraction: Quantity = number("1", "share of the whole cluster's cost that is network between servers")
    lifetime_s: Quantity = number("s", "time over which hardware is written off")
    fleet_utilisation_fraction: Quantity = number("1", "share of its life in which hardware is in use at all")
    value_decay_per_s: Quantity = number("1/s", "rate at which newer hardware devalues this one (exponential)")
    hardware_age_s: Quantity = number("s", "time between the price date and the run")
    tdp_w: Quantity = number("W", "thermal design power of one accelerator")
    power_fraction: Quantity = number("1", "mean power in training / thermal design power")
    server_power_ratio: Quantity = number("1", "power of the server per accelerator / that of the accelerator")
    pue_ratio: Quantity = number("1", "power of the building / power of its computers")
    electricity_price_usd_per_j: Quantity = number("USD/J", "price of electricity")
    carbon_kg_per_j: Quantity = number("kg/J", "emissions of electricity, CO2 equivalent")
    cloud_price_usd_per_s: Quantity = number("USD/s", "rent of one accelerator; 0 = none known")


@bundle
class RunCost:
    """What one run costs, by basis, in dollars of the price date."""

    chip_purchase_usd: Quantity = number("USD", "the accelerators alone")
    server_purchase_usd: Quantity = number("USD", "the rest of their servers")
    network_purchase_usd: Quantity = number("USD", "the network between the servers")
    purchase_usd: Quantity = number("USD", "the whole cluster: accelerators, servers, network")
    amortised_hardware_usd: Quantity = number("USD", "share of the purchase used up by the run, written off evenly")
    decayed_hardware_usd: Quantity = number("USD", "loss of the cluster's value during the run, exponential decay")
    site_power_w: Quantity = number("W", "mean power of the run: servers, cooling, conversion")
    energy_j: Quantity = number("J", "electricity of the run")
    energy_usd: Quantity = number("USD", "electricity of the run")
    emissions_kg: Quantity = number("kg", "emissions of the electricity, CO2 equivalent")
    cloud_usd: Quantity = number("USD", "rent of the same accelerator hours; 0 = no rent known")
    total_usd: Quantity = number("USD", "amortised hardware + electricity: the run on hardware one owns")


def chip_purchase_usd(*, accelerator_count: Quantity, chip_price_usd: Quantity) -> Scalar:
    """Return the price of the accelerators: count x price."""
    return jnp.asarray(accelerator_count * chip_price_usd)


def server_purchase_usd(*, chip_purchase_usd: Quantity, server_cost_ratio: Quantity) -> Scalar:
    """Return the price of the servers without their accelerators: chips x (ratio - 1).

    Source: Cottier et al. 2024 (arXiv 2405.21015), appendix on hardware acquisition cost.
    Ignores: land and building.
    """
    return jnp.asarray(chip_purchase_usd * (server_cost_ratio - 1.0))


def network_purchase_usd(*, server_level_usd: Quantity, network_cost_fraction: Quantity) -> Scalar:
    """Return the price of the network between servers: servers x f / (1 - f), f its share of the whole.

    Source: Cottier et al. 2024 (arXiv 2405.21015): 19% of a cluster's cost.
    """
    return jnp.asarray(server_level_usd * network_cost_fraction / (1.0 - network_cost_fraction))


def amortised_hardware_usd(
    *, purchase_usd: Quantity, run_time_s: Quantity, lifetime_s: Quantity, fleet_utilisation_fraction: Quantity
) -> Scalar:
    """Return the share of the purchase that a run uses up: purchase x run time / (lifetime x fleet utilisation).

    Valid when: the hardware is used before and after; a run longer than its life pays for it more than once.
    Source: straight-line depreciation; hours in which the fleet idles are charged to the hours in which it does not.
    Ignores: resale value, interest.
    """
    return jnp.asarray(purchase_usd * run_time_s / (lifetime_s * fleet_utilisation_fraction))


def decayed_hardware_usd(
    *, purchase_usd: Quantity, run_time_s: Quantity, value_decay_per_s: Quantity, hardware_age_s: Quantity
) -> Scalar:
    """Return the value that the cluster loses during a run: purchase exp(-r age) (1 - exp(-r run time)).

    r: the rate at which price-performance of hardware improves.
    Source: Cottier et al. 2024 (arXiv 2405.21015), amortised hardware cost: 0.14 orders of magnitude a year.
    """
    value_usd = purchase_usd * jnp.exp(-value_decay_per_s * hardware_age_s)
    return jnp.asarray(-value_usd * jnp.expm1(-value_decay_per_s * run_time_s))


def site_power_w(
    *,
    accelerator_count: Quantity,
    tdp_w: Quantity,
    power_fraction: Quantity,
    server_power_ratio: Quantity,
    pue_ratio: Quantity,
) -> Scalar:
    """Return the mean power of a run: count x TDP x fraction x server ratio x PUE.

    Source: Cottier et al. 2024 (arXiv 2405.21015), appendix on energy.
    Ignores: the network's own power (inside the server ratio), how the power follows the load.
    """
    return jnp.asarray(accelerator_count * tdp_w * power_fraction * server_power_ratio * pue_ratio)


def cloud_usd(*, accelerator_count: Quantity, run_time_s: Quantity, cloud_price_usd_per_s: Quantity) -> Scalar:
    """Return the rent of a run: count x time x price, as published per accelerator and hour."""
    return jnp.asarray(accelerator_count * run_time_s * cloud_price_usd_per_s)


def cost_ratio(cost_usd: Quantity, other_cost_usd: Quantity) -> Scalar:
    """Return how many times dearer one run is than another in the same basis; 0 where the other has no such cost."""
    has_other = other_cost_usd > 0.0
    # the inner where keeps the division finite where there is nothing to compare with
    return jnp.where(has_other, cost_usd / jnp.where(has_other, other_cost_usd, 1.0), 0.0)


def run_cost(*, economics: Economics, accelerator_count: Quantity, run_time_s: Quantity) -> RunCost:
    """Return the cost of `accelerator_count` accelerators for `run_time_s`, by basis."""
    e, count = economics, accelerator_count
    # What must be bought
    chips = chip_purchase_usd(accelerator_count=count, chip_price_usd=e.chip_price_usd)
    servers = server_purchase_usd(chip_purchase_usd=chips, server_cost_ratio=e.server_cost_ratio)
    network = network_purchase_usd(server_level_usd=chips + servers, network_cost_fraction=e.network_cost_fraction)
    purchase = chips + servers + network
    # What the run uses up of it
    amortised = amortised_hardware_usd(
        purchase_usd=purchase,
        run_time_s=run_time_s,
        lifetime_s=e.lifetime_s,
        fleet_utilisation_fraction=e.fleet_utilisation_fraction,
    )
    decayed = decayed_hardware_usd(
        purchase_usd=purchase,
        run_time_s=run_time_s,
        value_decay_per_s=e.value_decay_per_s,
        hardware_age_s=e.hardware_age_s,
    )
    # What it draws
    power_w = site_power_w(
        accelerator_count=count,
        tdp_w=e.tdp_w,
        power_fraction=e.power_fraction,
        server_power_ratio=e.server_power_ratio,
        pue_ratio=e.pue_ratio,
    )
    energy_j = power_w * run_time_s
    energy_usd = energy_j * e.electricity_price_usd_per_j
    rent = cloud_usd(accelerator_count=count, run_time_s=run_time_s, cloud_price_usd_per_s=e.cloud_price_usd_per_s)
    return RunCost(
        chip_purchase_usd=chips,
        server_purchase_usd=servers,
        network_purchase_usd=network,
        purchase_usd=purchase,
        amortised_hardware_usd=amortised,
        decayed_hardware_usd=decayed,
        site_power_w=power_w,
        energy_j=energy_j,
        energy_usd=energy_usd,
        emissions_kg=energy_j * e.carbon_kg_per_j,
        cloud_usd=rent,
        total_usd=amortised + energy_usd,
    )
