-- Question: Where does the time of a training step go?
-- One row per: feasible scenario and part of its step
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   precision: number format of the matmuls
--   variant: named change of the scenario's numbers; as_is = none
--   series_id: scenarios that differ in model size alone share it
--   training_flop [FLOP]: model FLOP of the whole run
--   part: what the time goes to: matmul, bubble, or a kind of traffic (the column of its name, less _time_s)
--   part_time_s [s]: its time in one step
--   step_share [1]: its time / step time; where parts overlap (physics epoch2024) they add up to more than the step
-- Ties: none, a scenario has one row for each part
with source as (
    select * from scenarios where is_feasible
),
logic as (
    unpivot (
        select
            scenario_id, step_time_s as whole_s,
            columns(lambda c: c like '%_time_s' and c not in ('step_time_s', 'run_time_s', 'exchange_time_s')
                or c = 'bubble_fraction')
        from source
    )
    on columns('_time_s$|^bubble_fraction$') into name part value amount
),
final as (
    select
        hardware, topology, model, physics, precision, variant, series_id, training_flop,
        regexp_replace(part, '_time_s$|_fraction$', '') as part,
        max(if(part = 'bubble_fraction', amount * whole_s, amount)) as part_time_s,
        max(if(part = 'bubble_fraction', amount, amount / whole_s)) as step_share
    from logic
    join source using (scenario_id)
    where isfinite(amount)
    group by all
)
select * from final
order by hardware, topology, model, physics, precision, variant, series_id, training_flop, part
