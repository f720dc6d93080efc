-- Question: How large a run can each chip do at all within the time allowed?
-- One row per: series (chip, network, model family, physics, precision and numeric axes)
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   precision: number format of the matmuls
--   variant: named change of the scenario's numbers; as_is = none
--   price_date: day whose prices count: release (of the chip), or a date
--   series_id: scenarios that differ in model size alone share it
--   largest_training_flop [FLOP]: largest run that fits in memory and ends in time, empty if none does
--   accelerator_count [1]: accelerators in that run
--   model_flop_utilisation_fraction [1]: its utilisation
--   run_time_day [day]: its time
--   purchase_million_usd [million USD]: purchase of its whole cluster: accelerators, servers, network
--   stopped_by: why the next larger run swept is infeasible (no_layout, memory, time), empty if none was swept
-- Ties: none, sizes differ within a series
with source as (
    select * from scenarios
),
largest as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id,
        max(training_flop) filter (is_feasible) as largest_training_flop,
        arg_max(accelerator_count, training_flop) filter (is_feasible) as accelerator_count,
        arg_max(model_flop_utilisation_fraction, training_flop) filter (is_feasible)
            as model_flop_utilisation_fraction,
        arg_max(run_time_s, training_flop) filter (is_feasible) as run_time_s,
        arg_max(purchase_usd, training_flop) filter (is_feasible) as purchase_usd
    from source
    group by all
),
stops as (
    select series_id, arg_min(infeasible_reason, training_flop) as stopped_by
    from source
    join largest using (series_id)
    where not is_feasible and training_flop > coalesce(largest_training_flop, 0)
    group by series_id
),
final as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id,
        largest_training_flop, accelerator_count,
        model_flop_utilisation_fraction, run_time_s / 86400 as run_time_day,
        purchase_usd / 1e6 as purchase_million_usd, coalesce(stopped_by, '') as stopped_by
    from largest
    left join stops using (series_id)
)
select * from final
order by hardware, topology, model, physics, precision, variant, price_date, series_id
