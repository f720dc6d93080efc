-- Question: Which chips does each export rule catch, and what is a run worth on what it leaves?
-- One row per: chip and date (the day each rule came into force, and every price date)
-- Columns:
--   day: date whose rules count
--   hardware: accelerator
--   vendor_country: where it is designed
--   outcome: what the rules in force make of it
--   is_obtainable [0/1]: it can be had without asking for a licence
--   rule: the rule that decides
--   accelerator_count [1]: accelerators that the run takes on it, empty if it is infeasible
--   accelerator_time_ratio [1]: accelerators x run time / the least of all chips of the study
--   reason: the clause with its numbers
-- Parameters:
--   training_flop [FLOP] = 2.1e25: size of the run: the smallest swept that is at least this large
-- Ties: of a chip's series the one with the least accelerators x run time
with source as (
    select hardware, accelerator_count, accelerator_count * run_time_s as accelerator_s
    from scenarios
    where is_feasible and training_flop >= coalesce(getvariable('training_flop')::double, 2.1e25)
    qualify training_flop = min(training_flop) over ()
),
logic as (
    select *, min(accelerator_s) over () as least_s
    from source
    qualify row_number() over (partition by hardware order by accelerator_s, accelerator_count) = 1
),
final as (
    select
        day, hardware, vendor_country, outcome, is_obtainable, rule, accelerator_count,
        accelerator_s / least_s as accelerator_time_ratio, reason
    from export_status
    left join logic using (hardware)
)
select * from final
order by day, accelerator_time_ratio, hardware
