-- Question: Which uncertain input moves each result most, from its low to its high?
-- One row per: series and uncertain input (an assumption, or stated but unverified, with both bounds)
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   catalogue_group: hardware, topology or economics
--   input: key of the entry
--   low [the input's]: its lower bound
--   high [the input's]: its upper bound
--   swing [1]: the larger of the two swings
--   total_swing [1]: largest / smallest cost of the run between the input's low, as it is and high
--   end_of_linear_swing [1]: the same of the end of linear scaling, empty if no run is linear
--   total_ratio_at_low [1]: cost of the run with the input at its low / as it is
--   total_ratio_at_high [1]: cost of the run with the input at its high / as it is
--   end_of_linear_ratio_at_low [1]: end of linear scaling at the low / as it is
--   end_of_linear_ratio_at_high [1]: end of linear scaling at the high / as it is
-- Parameters:
--   training_flop [FLOP] = 2.1e25: size of the run whose cost (amortised hardware + electricity) counts
--   linear_share [1] = 0.8: share of the sustained ceiling that counts as linear
-- Ties: by the name of the input
with source as (
    select * from judged_scenarios
),
series as (
    select
        hardware, topology, model, physics, price_date, variant,
        max(training_flop) filter (is_linear) as end_of_linear,
        arg_min(total_usd, training_flop) filter (is_large) as total_usd
    from source
    group by all
),
sides as (
    select
        series.hardware, series.topology, series.model, series.physics, series.price_date,
        regexp_extract(series.variant, '^([^.]+)\.(.+)=(low|high)$', ['catalogue_group', 'input', 'side']) as moved,
        series.total_usd / as_is.total_usd as total_ratio,
        series.end_of_linear / as_is.end_of_linear as end_of_linear_ratio
    from series
    join series as as_is using (hardware, topology, model, physics, price_date)
    where as_is.variant = 'as_is' and series.variant like '%=%'
),
logic as (
    select
        hardware, topology, model, physics, price_date, moved.catalogue_group, moved.input,
        any_value(total_ratio) filter (moved.side = 'low') as total_ratio_at_low,
        any_value(total_ratio) filter (moved.side = 'high') as total_ratio_at_high,
        any_value(end_of_linear_ratio) filter (moved.side = 'low') as end_of_linear_ratio_at_low,
        any_value(end_of_linear_ratio) filter (moved.side = 'high') as end_of_linear_ratio_at_high,
        greatest(max(total_ratio), 1) / least(min(total_ratio), 1) as total_swing,
        if(
            count(end_of_linear_ratio) = 0, null,
            greatest(max(end_of_linear_ratio), 1) / least(min(end_of_linear_ratio), 1)
        ) as end_of_linear_swing
    from sides
    group by all
),
final as (
    select
        logic.hardware, logic.topology, logic.model, logic.physics, logic.catalogue_group, logic.input,
        catalogue.low, catalogue.high, greatest(total_swing, end_of_linear_swing) as swing, total_swing, end_of_linear_swing,
        total_ratio_at_low, total_ratio_at_high, end_of_linear_ratio_at_low, end_of_linear_ratio_at_high
    from logic
    left join catalogue
        on catalogue.catalogue_group = logic.catalogue_group and catalogue.input = logic.input
        and (logic.catalogue_group = 'economics' or catalogue.entry_id in (logic.hardware, logic.topology))
)
select * from final
order by model, physics, hardware, topology, swing desc nulls last, catalogue_group, input
