-- Question: Which kinds of parallelism make up the best layouts as runs grow?
-- One row per: scenario that is feasible
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   precision: number format of the matmuls
--   variant: named change of the scenario's numbers; as_is = none
--   price_date: day whose prices count: release (of the chip), or a date
--   series_id: scenarios that differ in model size alone share it
--   training_flop [FLOP]: model FLOP of the whole run
--   accelerator_count [1]: accelerators in the run
--   data_share [1]: log(data ranks) / log(accelerators); the four shares sum to 1
--   tensor_share [1]: log(tensor ranks, over d_model and d_ff) / log(accelerators)
--   pipeline_share [1]: log(pipeline ranks) / log(accelerators)
--   expert_share [1]: log(expert ranks) / log(accelerators)
-- Ties: none, a scenario has one best row
with source as (
    select *, ln(accelerator_count) as total from scenarios where is_feasible and accelerator_count > 1
),
final as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id, training_flop, accelerator_count,
        ln(data_ranks) / total as data_share,
        ln(tensor_model_ranks::bigint * tensor_ff_ranks) / total as tensor_share,
        ln(pipeline_ranks) / total as pipeline_share,
        ln(expert_ranks) / total as expert_share
    from source
)
select * from final
order by hardware, topology, model, physics, precision, variant, price_date, series_id, training_flop
