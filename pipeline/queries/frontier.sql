-- Question: Which runs are not beaten by another in time, cost and energy at once?
-- One row per: point on the exact Pareto frontier of time, cost and energy, for each model size, variant and price date
-- Columns:
--   model: model family
--   physics: cost model preset
--   variant: named change of the scenario's numbers; as_is = none
--   price_date: day whose prices count: release (of the chip), or a date
--   training_flop [FLOP]: model FLOP of the whole run
--   run_time_day [day]: time of the whole run
--   purchase_million_usd [million USD]: purchase of the whole cluster: accelerators, servers, network
--   total_million_usd [million USD]: amortised hardware + electricity of the run
--   energy_gigawatt_hour [GWh]: electricity of the run
--   hardware: accelerator
--   topology: network
--   precision: number format of the matmuls
--   accelerator_count [1]: accelerators in the run
--   model_flop_utilisation_fraction [1]: utilisation
--   scenario_id: scenario of the point
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
--   cost = purchase: the cost that counts: purchase of the cluster, or total (amortised hardware + electricity)
-- Ties: of points equal in time, cost and energy that of the lowest scenario_id stays
with source as not materialized (
    -- Runs compete if they train the same; a cell joins those that are alike in time and cost
    select
        model, physics, variant, price_date, training_flop, run_time_s, purchase_usd, total_usd, energy_j,
        hardware, topology, precision, accelerator_count, model_flop_utilisation_fraction, scenario_id,
        if(getvariable('cost') = 'total', total_usd, purchase_usd) as cost_usd,
        hash(model, physics, variant, price_date, training_flop) as contest,
        (4 * log2(run_time_s))::int as time_cell,
        (4 * log2(cost_usd))::int as cost_cell,
        hash(contest, time_cell, cost_cell) as cell
    from points
    where is_feasible and cost_usd is not null and energy_j is not null
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
),
cells as (
    select
        cell, any_value(contest) as contest, any_value(time_cell) as time_cell, any_value(cost_cell) as cost_cell,
        min(energy_j) as least_j
    from source
    group by cell
),
better as (
    -- The least energy of cells that are faster and cheaper: who needs as much or more is beaten
    select one.cell, min(other.least_j) as better_j
    from cells as one
    left join cells as other
        on one.contest = other.contest and other.time_cell < one.time_cell and other.cost_cell < one.cost_cell
    group by one.cell
),
near as (
    select source.* exclude (cell)
    from source join better using (cell)
    where better_j is null or energy_j < better_j
),
lean as (
    -- Of runs that differ in one of the three alone, or in none, one stays: an axis of prices makes many of them
    select * from near
    qualify cost_usd = min(cost_usd) over (partition by contest, run_time_s, energy_j)
        and energy_j = min(energy_j) over (partition by contest, run_time_s, cost_usd)
        and run_time_s = min(run_time_s) over (partition by contest, cost_usd, energy_j)
        and scenario_id = min(scenario_id) over (partition by contest, run_time_s, cost_usd, energy_j)
),
final as (
    select distinct
        model, physics, variant, price_date, training_flop, run_time_s / 86400 as run_time_day,
        purchase_usd / 1e6 as purchase_million_usd, total_usd / 1e6 as total_million_usd,
        energy_j / 3.6e12 as energy_gigawatt_hour,
        hardware, topology, precision, accelerator_count, model_flop_utilisation_fraction, scenario_id
    from lean as one
    where not exists (
        from lean as other
        where other.contest = one.contest and other.run_time_s <= one.run_time_s and other.cost_usd <= one.cost_usd
            and other.energy_j <= one.energy_j
            and (other.run_time_s < one.run_time_s or other.cost_usd < one.cost_usd or other.energy_j < one.energy_j)
    )
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by model, physics, variant, price_date)
)
select * from final
order by model, physics, variant, price_date, training_flop, run_time_day, purchase_million_usd
