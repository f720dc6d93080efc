-- Question: How does utilisation fall as training runs on a chip grow?
-- One row per: scenario that is feasible (chip, network, model size)
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
--   model_flop_utilisation_fraction [1]: model FLOP achieved / dense nominal peak
--   sustained_fraction [1]: the ceiling, what large matmuls reach
--   accelerator_count [1]: accelerators in the run
--   run_time_day [day]: time of the whole run
--   purchase_million_usd [million USD]: purchase of the whole cluster: accelerators, servers, network
-- Ties: none, a scenario has one best row
with source as (
    select * from scenarios where is_feasible
),
final as (
    select
        hardware, topology, model, physics, precision, variant, price_date, series_id, training_flop,
        model_flop_utilisation_fraction, sustained_fraction, accelerator_count,
        run_time_s / 86400 as run_time_day,
        purchase_usd / 1e6 as purchase_million_usd
    from source
)
select * from final
order by hardware, topology, model, physics, precision, variant, price_date, series_id, training_flop
