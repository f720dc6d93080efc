-- Question: Up to which size does a run on each chip keep most of the utilisation that it can have?
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
--   end_of_linear_training_flop [FLOP]: largest run whose utilisation is at least 80% of the sustained ceiling
--   accelerator_count [1]: accelerators in that run
--   model_flop_utilisation_fraction [1]: its utilisation
--   purchase_million_usd [million USD]: purchase of its whole cluster: accelerators, servers, network
--   first_below_training_flop [FLOP]: smallest run at or below 80% of the ceiling (the reference model's own variant)
--   is_beyond_sweep [0/1]: the largest run swept is still above, so the end lies further out
-- Parameters:
--   linear_share [1] = 0.8: share of the sustained ceiling that counts as linear
-- Ties: none, sizes differ within a series
with source as (
    select
        *,
        is_feasible and model_flop_utilisation_fraction
            >= coalesce(getvariable('linear_share')::double, 0.8) * sustained_fraction as is_linear,
        is_feasible and model_flop_utilisation_fraction
            <= coalesce(getvariable('linear_share')::double, 0.8) * sustained_fraction as is_below
    from scenarios
),
logic as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id,
        max(training_flop) filter (is_linear) as end_of_linear_training_flop,
        arg_max(accelerator_count, training_flop) filter (is_linear) as accelerator_count,
        arg_max(model_flop_utilisation_fraction, training_flop) filter (is_linear) as model_flop_utilisation_fraction,
        arg_max(purchase_usd, training_flop) filter (is_linear) as purchase_usd,
        min(training_flop) filter (is_below) as first_below_training_flop,
        max(training_flop) as largest_training_flop
    from source
    group by all
),
final as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id,
        end_of_linear_training_flop, accelerator_count,
        model_flop_utilisation_fraction, purchase_usd / 1e6 as purchase_million_usd, first_below_training_flop,
        coalesce(end_of_linear_training_flop = largest_training_flop, false) as is_beyond_sweep
    from logic
)
select * from final
order by hardware, topology, model, physics, precision, variant, price_date, series_id
