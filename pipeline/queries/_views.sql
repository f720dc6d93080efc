-- View `scenarios`: the best row of each scenario. Ties: step time, then traffic time, then the order of the layouts.
-- The least time first, by three columns; of the rows that have it, few, all the rest is read.
create or replace view scenarios as
with least as (
    select
        scenario_id,
        bool_or(is_feasible) as has_feasible,
        coalesce(min(step_time_s) filter (is_feasible), min(step_time_s)) as least_step_time_s
    from points
    group by scenario_id
)
select points.*
from points
join least on
    points.scenario_id = least.scenario_id
    and points.is_feasible = least.has_feasible
    and points.step_time_s is not distinct from least.least_step_time_s
qualify row_number() over (
    partition by points.scenario_id order by tensor_time_s + layer_transfer_time_s + data_time_s, point_id
) = 1;

-- View `judged_scenarios`: the same, each held against what a question asks for: is it as large as the run asked for,
-- and does it stay linear? Both parameters are the question's own, listed in its header.
create or replace view judged_scenarios as
select
    *,
    training_flop >= coalesce(getvariable('training_flop')::double, 2.1e25) as is_large,
    is_feasible and model_flop_utilisation_fraction
        >= coalesce(getvariable('linear_share')::double, 0.8) * sustained_fraction as is_linear
from scenarios;

-- Table `catalogue`: one row for each input of the study, with where it comes from.
create or replace table catalogue as
with manifest as (
    select unnest(catalogue) as entry
    from read_json(
        getvariable('results') || '/manifest.json',
        columns = {
            catalogue: 'struct("group" varchar, id varchar, key varchar, value double, text varchar, kind varchar,
                ref varchar, "where" varchar, as_printed varchar, low double, high double, note varchar)[]'
        },
        maximum_object_size = 1000000000
    )
)
select
    entry."group" as catalogue_group, entry.id as entry_id, entry.key as input, entry.value, entry.text,
    entry.kind, entry.ref, entry."where" as source_place, entry.as_printed, entry.low, entry.high, entry.note
from manifest;

-- View `chips`: one row for each accelerator of the study.
create or replace view chips as
select
    entry_id as hardware,
    max(text) filter (input = 'name') as name,
    max(text) filter (input = 'vendor') as vendor,
    max(text) filter (input = 'released') as released
from catalogue
where catalogue_group = 'hardware'
group by entry_id;
