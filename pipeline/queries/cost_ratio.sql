-- Question: What does the same run take on one chip against another, in chips and by each basis of cost?
-- One row per: pair (chip and network, baseline chip and network) of one model family, physics and place on the axes
-- Columns:
--   hardware: accelerator
--   topology: its network
--   model: model family
--   physics: cost model preset
--   variant: named change of the scenario's numbers; as_is = none
--   price_date: day whose prices count: release (of the chip), or a date
--   series_id: scenarios that differ in model size alone share it
--   training_flop [FLOP]: the smallest run swept that is at least as large as asked
--   accelerator_count [1]: accelerators that the run takes, empty if it is infeasible
--   model_flop_utilisation_fraction [1]: its utilisation
--   run_time_day [day]: its time
--   purchase_million_usd [million USD]: purchase of its whole cluster: accelerators, servers, network
--   baseline_hardware: the chip compared with
--   baseline_topology: its network
--   baseline_purchase_million_usd [million USD]: purchase price of the baseline's run
--   accelerator_ratio [1]: accelerators / baseline's accelerators
--   purchase_ratio [1]: purchase price / baseline's purchase price
--   chip_ratio [1]: price of the accelerators alone / the baseline's
--   amortised_ratio [1]: share of the purchase used up by the run / the baseline's
--   energy_ratio [1]: electricity in J / the baseline's
--   energy_cost_ratio [1]: cost of the electricity / the baseline's
--   total_ratio [1]: amortised hardware + electricity / the baseline's
--   cloud_ratio [1]: rent of the same accelerator hours / the baseline's, empty where one of them is not for rent
--   constant_total_ratio [1]: total_ratio with both in constant dollars
-- Parameters:
--   training_flop [FLOP] = 2.1e25: size of the run asked for (about that of GPT-4)
--   baseline = all: the chip compared with
--   baseline_topology = the same: the baseline's network; by default each row's own
-- Ties: none, a series has one row
with placed as (
    -- Series of one chip and network differ in their place on the axes, which every chip has in the same order
    select
        series_id,
        row_number() over (
            partition by hardware, topology, model, physics, variant, price_date order by series_id
        ) as place
    from scenarios
    group by hardware, topology, model, physics, variant, price_date, series_id
),
source as (
    select scenarios.*, placed.place
    from scenarios
    join placed using (series_id)
    where training_flop >= coalesce(getvariable('training_flop')::double, 2.1e25)
    qualify training_flop = min(training_flop) over (partition by series_id)
),
baseline as (
    select * from source where hardware = coalesce(getvariable('baseline'), hardware)
),
pairs as (
    select
        source.*,
        baseline.hardware as baseline_hardware,
        baseline.topology as baseline_topology,
        if(baseline.is_feasible, baseline.accelerator_count, null) as baseline_accelerator_count,
        baseline.purchase_usd as baseline_purchase_usd,
        source.chip_purchase_usd / baseline.chip_purchase_usd as chip_ratio,
        source.amortised_hardware_usd / baseline.amortised_hardware_usd as amortised_ratio,
        source.energy_j / baseline.energy_j as energy_ratio,
        source.energy_usd / baseline.energy_usd as energy_cost_ratio,
        source.total_usd / baseline.total_usd as total_ratio,
        source.cloud_usd / baseline.cloud_usd as cloud_ratio,
        source.constant_dollar_ratio / baseline.constant_dollar_ratio * total_ratio as constant_total_ratio
    from source
    join baseline
        on source.model = baseline.model
        and source.physics = baseline.physics
        and source.variant = baseline.variant
        and source.price_date = baseline.price_date
        and source.training_flop = baseline.training_flop
        and source.run_limit_s = baseline.run_limit_s
        and source.place = baseline.place
        and baseline.topology = coalesce(getvariable('baseline_topology'), source.topology)
),
final as (
    select
        hardware, topology, model, physics, variant, price_date, series_id, training_flop,
        if(is_feasible, accelerator_count, null) as accelerator_count,
        model_flop_utilisation_fraction, run_time_s / 86400 as run_time_day, purchase_usd / 1e6 as purchase_million_usd,
        baseline_hardware, baseline_topology, baseline_purchase_usd / 1e6 as baseline_purchase_million_usd,
        if(is_feasible, accelerator_count, null) / baseline_accelerator_count as accelerator_ratio,
        purchase_usd / baseline_purchase_usd as purchase_ratio,
        chip_ratio, amortised_ratio, energy_ratio, energy_cost_ratio, total_ratio, cloud_ratio, constant_total_ratio
    from pairs
)
select * from final
order by model, physics, variant, price_date, baseline_hardware, baseline_topology, hardware, topology, series_id
