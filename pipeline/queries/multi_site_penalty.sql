-- Question: What does it cost a run to be spread over several sites, against one site?
-- One row per: scenario on a network of sites (size, accelerators, link between sites, local steps)
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   training_flop [FLOP]: model FLOP of the whole run
--   accelerator_count [1]: accelerators in the run, all sites together
--   site_count [1]: sites that they fill
--   link_gigabyte_per_s [GB/s]: bandwidth between sites that each accelerator has, one direction
--   site_link_terabit_per_s [Tbit/s]: bandwidth out of one site, one direction
--   link_latency_ms [ms]: latency between sites, one direction
--   fibre_km [km]: fibre of that latency
--   local_step_count [1]: optimiser steps between two exchanges; 1 = sites in step
--   run_time_day [day]: time of the run
--   time_ratio [1]: the same / that of one site with as many accelerators
--   token_penalty_ratio [1]: the part of it that is further tokens
--   model_flop_utilisation_fraction [1]: utilisation
--   utilisation_ratio [1]: the same / that of one site with as many accelerators
-- Parameters:
--   training_flop [FLOP] = all: the smallest run swept that is at least this large
-- Ties: none, a scenario has one row; of several single sites of a size the fastest counts
with source as (
    select
        *, site_link_latency_s as link_latency_s, site_link_one_way_byte_per_s as link_byte_per_s
    from scenarios
    where is_feasible and site_count is not null
        and training_flop >= coalesce(getvariable('training_flop')::double, 0)
    qualify getvariable('training_flop') is null
        or training_flop = min(training_flop) over (partition by hardware, topology, model, physics)
),
one_site as (
    select
        hardware, model, physics, variant, training_flop, accelerator_count,
        min(run_time_s) as run_time_s, max(model_flop_utilisation_fraction) as utilisation
    from source
    where site_count = 1
    group by all
),
final as (
    select
        source.hardware, topology, source.model, source.physics, training_flop, accelerator_count, site_count,
        link_byte_per_s / 1e9 as link_gigabyte_per_s,
        link_byte_per_s * accelerator_count / site_count * 8 / 1e12 as site_link_terabit_per_s,
        link_latency_s * 1e3 as link_latency_ms, link_latency_s * 299792.458 / 1.468 as fibre_km, local_step_count,
        source.run_time_s / 86400 as run_time_day, source.run_time_s / one_site.run_time_s as time_ratio,
        coalesce(token_penalty_ratio, 1) as token_penalty_ratio, model_flop_utilisation_fraction,
        model_flop_utilisation_fraction / one_site.utilisation as utilisation_ratio
    from source
    left join one_site using (hardware, model, physics, variant, training_flop, accelerator_count)
    where site_count > 1
)
select * from final
order by
    hardware, topology, model, physics, training_flop, accelerator_count, local_step_count, link_latency_ms,
    link_gigabyte_per_s
