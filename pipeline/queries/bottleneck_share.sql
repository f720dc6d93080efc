-- Question: What holds each run back: which part of the step, beside the arithmetic itself, costs most?
-- One row per: scenario that is feasible
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   precision: number format of the matmuls
--   variant: named change of the scenario's numbers; as_is = none
--   series_id: scenarios that differ in model size alone share it
--   training_flop [FLOP]: model FLOP of the whole run
--   model_flop_utilisation_fraction [1]: utilisation
--   ideal_matmul_share [1]: time of the arithmetic at the sustained ceiling / step time
--   matmul_share [1]: time of the matmuls / step time
--   bubble_share [1]: share of the pipeline's time that a rank waits
--   bottleneck: the part that costs most; matmul: what they take beyond their time at the ceiling
--   bottleneck_share [1]: its time / step time, without what hides behind the arithmetic
-- Ties: parts of equal time: the first in the alphabet
with source as (
    select
        *, matmul_time_s / step_time_s as matmul_share,
        model_flop_utilisation_fraction / sustained_fraction as ideal_matmul_share,
        -- Traffic that hides behind matmuls costs nothing: no part costs more than what these and the bubble leave
        greatest(0, 1 - matmul_share - bubble_fraction) as left_share
    from scenarios
    where is_feasible
),
parts as (
    unpivot (
        select
            scenario_id, step_time_s as whole_s, left_share,
            columns(
                lambda c: c like '%_time_s'
                and c not in ('step_time_s', 'run_time_s', 'exchange_time_s', 'matmul_time_s', 'bubble_time_s')
            )
        from source
    )
    on columns('_time_s$') into name part value amount
),
losses as (
    select scenario_id, part[:-8] as part, least(amount / whole_s, left_share) as loss
    from parts
    where isfinite(amount)
    union all by name
    select scenario_id, 'bubble' as part, bubble_fraction as loss from source
    union all by name
    select scenario_id, 'matmul' as part, matmul_share - ideal_matmul_share as loss from source
),
largest as (
    select scenario_id, part as bottleneck, loss as bottleneck_share
    from losses
    qualify row_number() over (partition by scenario_id order by loss desc, part) = 1
),
final as (
    select
        hardware, topology, model, physics, precision, variant, series_id, training_flop,
        model_flop_utilisation_fraction, ideal_matmul_share, matmul_share, bubble_fraction as bubble_share,
        bottleneck, bottleneck_share
    from source
    join largest using (scenario_id)
)
select * from final
order by hardware, topology, model, physics, precision, variant, series_id, training_flop
