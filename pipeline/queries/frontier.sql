-- Question: Which runs are not beaten by another that is both faster and cheaper?
-- One row per: point on the exact Pareto frontier of time against cost, for each model size, variant and price date
-- Columns:
--   model: model family
--   physics: cost model preset
--   variant: named change of the scenario's numbers; as_is = none
--   price_date: day whose prices count: release (of the chip), or a date
--   training_flop [FLOP]: model FLOP of the whole run
--   run_time_day [day]: time of the whole run
--   purchase_million_usd [million USD]: purchase of the whole cluster: accelerators, servers, network
--   hardware: accelerator
--   topology: network
--   precision: number format of the matmuls
--   accelerator_count [1]: accelerators in the run
--   model_flop_utilisation_fraction [1]: utilisation
--   scenario_id: scenario of the point
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
-- Ties: of points equal in time and cost the one of the lowest scenario_id stays; then smaller degrees
with source as (
    select *
    from points
    where is_feasible and purchase_usd is not null
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by model, physics, variant, price_date)
),
logic as (
    -- A row stays if it is cheaper than every faster one
    select
        *,
        min(purchase_usd) over (
            partition by model, physics, variant, price_date, training_flop
            order by run_time_s, purchase_usd, scenario_id, data_ranks, pipeline_ranks, tensor_model_ranks,
                expert_ranks, microbatch_count
            rows between unbounded preceding and 1 preceding
        ) as cheapest_faster_usd
    from source
),
final as (
    select
        model, physics, variant, price_date, training_flop, run_time_s / 86400 as run_time_day,
        purchase_usd / 1e6 as purchase_million_usd,
        hardware, topology, precision, accelerator_count, model_flop_utilisation_fraction, scenario_id
    from logic
    where cheapest_faster_usd is null or purchase_usd < cheapest_faster_usd
)
select * from final
order by model, physics, variant, price_date, training_flop, run_time_day, purchase_million_usd
