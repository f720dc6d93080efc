-- Question: What can each chip do, and what does a run of one size take on it?
-- One row per: series (chip, network, model family, physics, precision and numeric axes)
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   variant: named change of the scenario's numbers; as_is = none
--   price_date: day whose prices count: release (of the chip), or a date
--   series_id: scenarios that differ in model size alone share it
--   end_of_linear_training_flop [FLOP]: largest run whose utilisation is at least 80% of the sustained ceiling
--   largest_training_flop [FLOP]: largest feasible run
--   training_flop [FLOP]: the smallest run swept that is at least as large as asked
--   accelerator_count [1]: accelerators that it takes, empty if it is infeasible
--   model_flop_utilisation_fraction [1]: its utilisation
--   run_time_day [day]: its time
--   purchase_million_usd [million USD]: purchase of its whole cluster: accelerators, servers, network
--   accelerator_ratio [1]: accelerators / those of the baseline
--   purchase_ratio [1]: purchase price / that of the baseline
-- Parameters:
--   training_flop [FLOP] = 2.1e25: size of the run asked for (about that of GPT-4)
--   linear_share [1] = 0.8: share of the sustained ceiling that counts as linear
--   baseline = none: the chip compared with
--   baseline_topology = vendor: its network
-- Ties: if the baseline has several series of one model and physics, the one of the lowest series_id counts
with source as (
    select * from judged_scenarios
),
series as (
    select
        hardware, topology, model, physics, variant, price_date, series_id,
        max(training_flop) filter (is_linear) as end_of_linear_training_flop,
        max(training_flop) filter (is_feasible) as largest_training_flop,
        min(training_flop) filter (is_large) as asked_training_flop
    from source
    group by all
),
asked as (
    -- Series of one chip and network differ in their place on the axes, which every chip has in the same order
    select
        series.*, run.accelerator_count, run.model_flop_utilisation_fraction, run.run_time_s, run.purchase_usd,
        row_number() over (
            partition by
                series.hardware, series.topology, series.model, series.physics, series.variant, series.price_date
            order by series.series_id
        ) as place
    from series
    left join source as run
        on run.series_id = series.series_id and run.training_flop = series.asked_training_flop and run.is_feasible
),
baseline as (
    select model, physics, variant, price_date, asked_training_flop, place, accelerator_count, purchase_usd
    from asked
    where hardware = getvariable('baseline') and topology = coalesce(getvariable('baseline_topology'), 'vendor')
    qualify row_number() over (
        partition by model, physics, variant, price_date, asked_training_flop, place order by series_id
    ) = 1
),
final as (
    select
        asked.hardware, asked.topology, asked.model, asked.physics, asked.variant, asked.price_date, asked.series_id,
        asked.end_of_linear_training_flop, asked.largest_training_flop,
        asked.asked_training_flop as training_flop, asked.accelerator_count, asked.model_flop_utilisation_fraction,
        asked.run_time_s / 86400 as run_time_day, asked.purchase_usd / 1e6 as purchase_million_usd,
        asked.accelerator_count / baseline.accelerator_count as accelerator_ratio,
        asked.purchase_usd / baseline.purchase_usd as purchase_ratio
    from asked
    left join baseline using (model, physics, variant, price_date, asked_training_flop, place)
)
select * from final
order by model, physics, hardware, topology, series_id
