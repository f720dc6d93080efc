-- Question: What does each network change for the same chip?
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
--   training_flop [FLOP]: the smallest run swept that is at least as large as asked
--   accelerator_count [1]: accelerators that it takes, empty if it is infeasible
--   model_flop_utilisation_fraction [1]: its utilisation
--   purchase_million_usd [million USD]: purchase of its whole cluster: accelerators, servers, network
--   end_of_linear_training_flop [FLOP]: largest run whose utilisation is at least 80% of the sustained ceiling
--   largest_training_flop [FLOP]: largest feasible run
--   largest_run_ratio [1]: largest feasible run / that of the chip's best network in this study
-- Parameters:
--   training_flop [FLOP] = 2.1e25: size of the run asked for (about that of GPT-4)
--   linear_share [1] = 0.8: share of the sustained ceiling that counts as linear
-- Ties: none, a series has one row
with source as (
    select * from judged_scenarios
),
logic as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id,
        min(training_flop) filter (is_large) as asked_training_flop,
        max(training_flop) filter (is_linear) as end_of_linear_training_flop,
        max(training_flop) filter (is_feasible) as largest_training_flop
    from source
    group by all
),
final as (
    select
        logic.hardware, logic.topology, logic.model, logic.physics, logic.precision, logic.variant,
        logic.price_date, logic.series_id,
        asked_training_flop as training_flop,
        if(asked.is_feasible, asked.accelerator_count, null) as accelerator_count,
        asked.model_flop_utilisation_fraction, asked.purchase_usd / 1e6 as purchase_million_usd,
        end_of_linear_training_flop, largest_training_flop,
        largest_training_flop / max(largest_training_flop) over (
            partition by logic.hardware, logic.model, logic.physics, logic.precision, logic.variant, logic.price_date
        ) as largest_run_ratio
    from logic
    left join source as asked
        on asked.series_id = logic.series_id and asked.training_flop = logic.asked_training_flop
)
select * from final
order by hardware, topology, model, physics, precision, variant, price_date, series_id
