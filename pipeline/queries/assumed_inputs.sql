-- Question: What share of a result's inputs is assumed, or stated but not verified?
-- One row per: entry of the catalogue that the study uses
-- Columns:
--   catalogue_group: hardware, topology, model, physics, economics or policy
--   entry_id: the entry
--   input_count [1]: numbers of the entry that carry a source record
--   assumption_count [1]: of these, numbers that are assumptions
--   unverified_count [1]: of these, numbers stated somewhere that nobody has checked
--   assumed_fraction [1]: (assumptions + unverified) / inputs, empty if there are none
-- Ties: none, an entry has one row
with source as (
    select * from catalogue where value is not null and kind is not null
),
logic as (
    select
        catalogue_group, entry_id,
        count(*) as input_count,
        count(*) filter (kind = 'assumption') as assumption_count,
        count(*) filter (kind = 'unverified') as unverified_count
    from source
    group by all
),
final as (
    select *, (assumption_count + unverified_count) / input_count as assumed_fraction from logic
)
select * from final
order by catalogue_group, entry_id
