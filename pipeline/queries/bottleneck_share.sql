-- Question: What holds each run back: which part of the step, beside the arithmetic itself, takes most?
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
--   matmul_share [1]: time of the matmuls / step time
--   ideal_matmul_share [1]: time they would take at the sustained ceiling / step time
--   bottleneck: the largest part beside the matmuls; matmul where these take more than they would at the ceiling by more
--   bottleneck_share [1]: its time / step time
-- Ties: parts of equal time: the first in the alphabet
with source as (
    select * from scenarios where is_feasible
),
parts as (
    unpivot (
        select
            scenario_id, step_time_s as whole_s,
            columns(
                lambda c: c like '%_time_s' and c not in ('step_time_s', 'run_time_s', 'exchange_time_s', 'matmul_time_s')
                or c = 'bubble_fraction'
            )
        from source
    )
    on columns('_time_s$|^bubble_fraction$') into name part value amount
),
shares as (
    select
        scenario_id, regexp_replace(part, '_time_s$|_fraction$', '') as part,
        if(part = 'bubble_fraction', amount, amount / whole_s) as share
    from parts
    where isfinite(amount)
    union all
    -- Matmuls below the ceiling: small pieces, memory, launches
    select
        scenario_id, 'matmul' as part,
        matmul_time_s / step_time_s - model_flop_utilisation_fraction / sustained_fraction as share
    from source
),
largest as (
    select scenario_id, part as bottleneck, share as bottleneck_share
    from shares
    qualify row_number() over (partition by scenario_id order by share desc, part) = 1
),
final as (
    select
        hardware, topology, model, physics, precision, variant, series_id, training_flop,
        model_flop_utilisation_fraction, matmul_time_s / step_time_s as matmul_share,
        model_flop_utilisation_fraction / sustained_fraction as ideal_matmul_share, bottleneck, bottleneck_share
    from source
    join largest using (scenario_id)
)
select * from final
order by hardware, topology, model, physics, precision, variant, series_id, training_flop
