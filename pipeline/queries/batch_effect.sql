-- Question: What do a larger batch and more accelerators buy for one model, and by which layout?
-- One row per: feasible scenario of a fixed number of accelerators
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   training_flop [FLOP]: model FLOP of the whole run
--   global_batch_token [token]: tokens in one optimiser step
--   accelerator_count [1]: accelerators in the run
--   model_flop_utilisation_fraction [1]: utilisation
--   run_time_day [day]: time of the run
--   speedup_ratio [1]: time on the fewest accelerators of this batch / time
--   batch_speedup_ratio [1]: time with the smallest batch on as many accelerators / time
--   data_ranks [1]: data-parallel degree
--   tensor_ranks [1]: tensor-parallel degree, over d_model and d_ff
--   pipeline_ranks [1]: pipeline-parallel degree
--   total_million_usd [million USD]: amortised hardware + electricity
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
-- Ties: none, a scenario has one row
with source as (
    select *, run_time_s / 86400 as run_time_day
    from scenarios
    where is_feasible and variant = 'as_is'
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by model, physics)
),
final as (
    select
        hardware, topology, model, physics, training_flop, global_batch_token, accelerator_count,
        model_flop_utilisation_fraction, run_time_day,
        first(run_time_day) over same_batch / run_time_day as speedup_ratio,
        first(run_time_day) over same_count / run_time_day as batch_speedup_ratio,
        data_ranks, tensor_model_ranks::bigint * tensor_ff_ranks as tensor_ranks, pipeline_ranks,
        total_usd / 1e6 as total_million_usd
    from source
    window
        same_batch as (
            partition by hardware, topology, model, physics, price_date, training_flop, global_batch_token
            order by accelerator_count
        ),
        same_count as (
            partition by hardware, topology, model, physics, price_date, training_flop, accelerator_count
            order by global_batch_token
        )
)
select * from final
order by hardware, topology, model, physics, training_flop, global_batch_token, accelerator_count
