-- Question: What is the best way to lay out each run?
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
--   data_ranks [1]: data-parallel degree
--   tensor_model_ranks [1]: tensor-parallel degree over d_model
--   tensor_ff_ranks [1]: tensor-parallel degree over d_ff
--   pipeline_ranks [1]: pipeline-parallel degree
--   expert_ranks [1]: expert-parallel degree
--   microbatch_count [1]: microbatches of one step
--   interleave_count [1]: layer chunks a pipeline rank holds
--   schedule: 1f1b (interleaved where interleave_count > 1) or zero_bubble
--   model_flop_utilisation_fraction [1]: utilisation
--   step_time_s [s]: time of one optimiser step
--   bubble_fraction [1]: share of the pipeline's time that a rank waits
--   memory_gigabyte [GB]: memory that one accelerator needs
-- Parameters:
--   hardware = all: this chip alone
--   training_flop [FLOP] = all: the smallest run swept that is at least this large, in each series
-- Ties: step time, then traffic time, then the order of the layouts (see the view `scenarios`)
with source as (
    select *
    from scenarios
    where is_feasible
        and hardware = coalesce(getvariable('hardware'), hardware)
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
),
chosen as (
    select *
    from source
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by series_id)
),
final as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id, training_flop, accelerator_count,
        data_ranks, tensor_model_ranks, tensor_ff_ranks, pipeline_ranks, expert_ranks,
        microbatch_count, interleave_count,
        if(is_zero_bubble, 'zero_bubble', '1f1b') as schedule,
        model_flop_utilisation_fraction, step_time_s, bubble_fraction, memory_byte / 1e9 as memory_gigabyte
    from chosen
)
select * from final
order by hardware, topology, model, physics, precision, variant, price_date, series_id, training_flop
