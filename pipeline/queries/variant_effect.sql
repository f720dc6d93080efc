-- Question: What does each change (one thing ideal, one assumption moved) do to how far runs go and what they cost?
-- One row per: series (chip, network, model family, physics, precision, price date, numeric axes and variant)
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   precision: number format of the matmuls
--   price_date: day whose prices count: release (of the chip), or a date
--   variant: named change of the scenario's numbers; as_is = none
--   end_of_linear_training_flop [FLOP]: largest run whose utilisation is at least 80% of the sustained ceiling
--   end_of_linear_ratio [1]: the same / that of as_is
--   largest_training_flop [FLOP]: largest feasible run
--   largest_ratio [1]: the same / that of as_is
--   training_flop [FLOP]: the smallest run swept that is at least as large as asked
--   model_flop_utilisation_fraction [1]: its utilisation
--   utilisation_ratio [1]: the same / that of as_is
--   total_million_usd [million USD]: amortised hardware + electricity of the run
--   total_ratio [1]: the same / that of as_is
-- Parameters:
--   training_flop [FLOP] = 2.1e25: size of the run asked for (about that of GPT-4)
--   linear_share [1] = 0.8: share of the sustained ceiling that counts as linear
-- Ties: none, a series has one row
with source as (
    select * from judged_scenarios
),
logic as (
    select
        hardware, topology, model, physics, precision, price_date, variant, series_id,
        max(training_flop) filter (is_linear) as end_of_linear_training_flop,
        max(training_flop) filter (is_feasible) as largest_training_flop,
        min(training_flop) filter (is_large) as training_flop,
        arg_min(model_flop_utilisation_fraction, training_flop) filter (is_large) as model_flop_utilisation_fraction,
        arg_min(total_usd, training_flop) filter (is_large) as total_usd
    from source
    group by all
),
as_is as (
    select * from logic where variant = 'as_is'
    qualify row_number() over (
        partition by hardware, topology, model, physics, precision, price_date order by series_id
    ) = 1
),
final as (
    select
        logic.hardware, logic.topology, logic.model, logic.physics, logic.precision, logic.price_date, logic.variant,
        logic.end_of_linear_training_flop,
        logic.end_of_linear_training_flop / as_is.end_of_linear_training_flop as end_of_linear_ratio,
        logic.largest_training_flop, logic.largest_training_flop / as_is.largest_training_flop as largest_ratio,
        logic.training_flop, logic.model_flop_utilisation_fraction,
        logic.model_flop_utilisation_fraction / as_is.model_flop_utilisation_fraction as utilisation_ratio,
        logic.total_usd / 1e6 as total_million_usd, logic.total_usd / as_is.total_usd as total_ratio
    from logic
    left join as_is using (hardware, topology, model, physics, precision, price_date)
)
select * from final
order by hardware, topology, model, physics, precision, price_date, variant = 'as_is' desc, variant
