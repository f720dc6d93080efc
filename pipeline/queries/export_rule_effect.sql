-- Question: What does an export rule cost the one it binds, against a buyer whom none binds?
-- One row per: size of run, date, model family and physics
-- Columns:
--   training_flop [FLOP]: model FLOP of the whole run
--   price_date: day whose rules and prices count
--   model: model family
--   physics: cost model preset
--   free_hardware: accelerator of the cheapest run without rules
--   free_rule: the rule that keeps it from the bound buyer, empty if none does
--   bound_hardware: accelerator of the cheapest run with what the rules of the date leave
--   bound_outcome: what the rules make of that accelerator
--   accelerator_ratio [1]: accelerators that the bound buyer needs / those of the free one
--   accelerator_time_ratio [1]: accelerators x run time / those of the free buyer: how much longer on as many chips
--   total_ratio [1]: amortised hardware + electricity / that of the free buyer
--   purchase_ratio [1]: purchase of the cluster / that of the free buyer
--   energy_ratio [1]: electricity in J / that of the free buyer
--   free_total_million_usd [million USD]: amortised hardware + electricity of the free buyer's run
--   bound_total_million_usd [million USD]: the same of the bound buyer's run
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
--   maker = any: makers that the bound buyer may turn to: any, or foreign (chips designed in China left out)
-- Ties: the chip, then the network, first in the alphabet
with source as (
    select
        points.*, status.vendor_country, status.rule, status.outcome,
        status.is_obtainable and not (getvariable('maker') = 'foreign' and status.vendor_country = 'CN')
            is true as is_obtainable
    from scenarios as points
    join export_status as status
        on points.hardware = status.hardware
        and status.day = cast(rpad(points.price_date, 10, '-01-01') as date)
    where is_feasible and total_usd is not null and price_date != 'release' and variant = 'as_is'
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by points.model, points.physics)
),
cheapest as (
    select *, row_number() over (
        partition by training_flop, price_date, model, physics order by total_usd, hardware, topology, series_id
    ) as place
    from source
),
free as (select * from cheapest where place = 1),
bound as (
    select * from source where is_obtainable
    qualify row_number() over (
        partition by training_flop, price_date, model, physics order by total_usd, hardware, topology, series_id
    ) = 1
),
final as (
    select
        training_flop, price_date, model, physics,
        free.hardware as free_hardware, if(free.is_obtainable, '', free.rule) as free_rule,
        bound.hardware as bound_hardware, bound.outcome as bound_outcome,
        bound.accelerator_count / free.accelerator_count as accelerator_ratio,
        bound.accelerator_count * bound.run_time_s / (free.accelerator_count * free.run_time_s)
            as accelerator_time_ratio,
        bound.total_usd / free.total_usd as total_ratio, bound.purchase_usd / free.purchase_usd as purchase_ratio,
        bound.energy_j / free.energy_j as energy_ratio,
        free.total_usd / 1e6 as free_total_million_usd, bound.total_usd / 1e6 as bound_total_million_usd
    from free
    left join bound using (training_flop, price_date, model, physics)
)
select * from final
order by model, physics, training_flop, price_date
