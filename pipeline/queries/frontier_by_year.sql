-- Question: How did the ends of the frontier (cheapest, fastest, least energy) move from date to date?
-- One row per: size of run and price date, of one model family and physics
-- Columns:
--   model: model family
--   physics: cost model preset
--   training_flop [FLOP]: model FLOP of the whole run
--   price_date: day whose prices count; chips released later do not take part
--   run_count [1]: feasible runs that compete
--   cheapest_million_usd [million USD]: least amortised hardware + electricity, in dollars of the price date
--   cheapest_hardware: accelerator of that run
--   fastest_day [day]: least time
--   fastest_hardware: accelerator of that run
--   least_energy_gigawatt_hour [GWh]: least electricity
--   least_energy_hardware: accelerator of that run
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
-- Ties: the chip first in the alphabet
with source as (
    select *
    from scenarios
    where is_feasible and total_usd is not null and energy_j is not null and variant = 'as_is'
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by model, physics)
),
final as (
    select
        model, physics, training_flop, price_date, count(*) as run_count,
        min(total_usd) / 1e6 as cheapest_million_usd, arg_min(hardware, (total_usd, hardware)) as cheapest_hardware,
        min(run_time_s) / 86400 as fastest_day, arg_min(hardware, (run_time_s, hardware)) as fastest_hardware,
        min(energy_j) / 3.6e12 as least_energy_gigawatt_hour,
        arg_min(hardware, (energy_j, hardware)) as least_energy_hardware
    from source
    group by all
)
select * from final
order by model, physics, training_flop, price_date
