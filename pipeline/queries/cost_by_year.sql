-- Question: What is the cheapest way to do a run, with the chips and prices of each date?
-- One row per: size of run, price date, model family and physics
-- Columns:
--   training_flop [FLOP]: model FLOP of the whole run
--   price_date: day whose prices count; chips released later do not take part
--   model: model family
--   physics: cost model preset
--   hardware: accelerator of the cheapest run
--   topology: its network
--   accelerator_count [1]: accelerators in the run
--   run_time_day [day]: its time
--   model_flop_utilisation_fraction [1]: its utilisation
--   cost_million_usd [million USD]: its cost, in dollars of the price date
--   constant_cost_million_usd [million USD]: the same in constant dollars (dollar_year of the economics entry)
--   purchase_million_usd [million USD]: purchase of its whole cluster, in dollars of the price date
--   energy_gigawatt_hour [GWh]: its electricity
--   chip_count [1]: chips that are for sale by then and can do the run
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
--   cost = total: what is least: total (amortised hardware + electricity), purchase, or energy (electricity alone)
-- Ties: the chip, then the network, first in the alphabet
with source as (
    select
        *,
        case getvariable('cost')
            when 'purchase' then purchase_usd
            when 'energy' then energy_usd
            else total_usd
        end as cost_usd
    from scenarios
    where price_date != 'release' and variant = 'as_is'
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by model, physics)
),
logic as (
    select *, count(distinct hardware) over same_run as chip_count
    from source
    where is_feasible and cost_usd is not null
    window same_run as (partition by training_flop, price_date, model, physics)
    qualify row_number() over (
        partition by training_flop, price_date, model, physics order by cost_usd, hardware, topology, series_id
    ) = 1
),
final as (
    select
        training_flop, price_date, model, physics, hardware, topology, accelerator_count,
        run_time_s / 86400 as run_time_day, model_flop_utilisation_fraction,
        cost_usd / 1e6 as cost_million_usd, cost_usd * constant_dollar_ratio / 1e6 as constant_cost_million_usd,
        purchase_usd / 1e6 as purchase_million_usd, energy_j / 3.6e12 as energy_gigawatt_hour, chip_count
    from logic
)
select * from final
order by model, physics, training_flop, price_date
