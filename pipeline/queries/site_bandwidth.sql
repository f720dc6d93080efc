-- Question: Which bandwidth between sites keeps most of the speed that one site has?
-- One row per: size of run, number of sites, distance and local steps
-- Columns:
--   hardware: accelerator
--   topology: network
--   model: model family
--   physics: cost model preset
--   training_flop [FLOP]: model FLOP of the whole run
--   accelerator_count [1]: accelerators in the run, all sites together
--   site_count [1]: sites that they fill
--   fibre_km [km]: fibre between sites
--   link_latency_ms [ms]: latency between sites, one direction
--   local_step_count [1]: optimiser steps between two exchanges; 1 = sites in step
--   link_gigabyte_per_s [GB/s]: least bandwidth swept, of each accelerator, that keeps the speed; empty if none does
--   site_link_terabit_per_s [Tbit/s]: the same out of one site
--   time_ratio [1]: time with it / time of one site
--   best_time_ratio [1]: the least with any bandwidth swept
-- Parameters:
--   speed_share [1] = 0.9: speed to be kept, of that of one site
-- Ties: none, bandwidths differ
with links as (
    select
        *, site_link_one_way_byte_per_s as link_byte_per_s,
        site_link_one_way_byte_per_s * accelerator_count / site_count as site_byte_per_s
    from scenarios
    where is_feasible and site_count is not null
),
one_site as (
    select hardware, model, physics, variant, training_flop, accelerator_count, min(run_time_s) as one_site_s
    from links
    where site_count = 1
    group by all
),
logic as (
    select
        hardware, topology, model, physics, training_flop, accelerator_count, site_count, site_link_latency_s,
        local_step_count, link_byte_per_s, site_byte_per_s, run_time_s / one_site_s as ratio,
        ratio <= 1 / coalesce(getvariable('speed_share')::double, 0.9) as is_kept
    from links
    join one_site using (hardware, model, physics, variant, training_flop, accelerator_count)
    where site_count > 1
),
final as (
    select
        hardware, topology, model, physics, training_flop, accelerator_count, site_count,
        site_link_latency_s * 299792.458 / 1.468 as fibre_km, site_link_latency_s * 1e3 as link_latency_ms,
        local_step_count, min(link_byte_per_s) filter (is_kept) / 1e9 as link_gigabyte_per_s,
        min(site_byte_per_s) filter (is_kept) * 8 / 1e12 as site_link_terabit_per_s,
        arg_min(ratio, link_byte_per_s) filter (is_kept) as time_ratio, min(ratio) as best_time_ratio
    from logic
    group by all
)
select * from final
order by hardware, topology, model, physics, training_flop, accelerator_count, local_step_count, link_latency_ms
