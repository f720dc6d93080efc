-- View `points`: every row of a results folder as it stands in its Parquet files.
-- In the DuckDB shell: set variable results = 'outputs/gtx580_vs_modern'; .read _points.sql; .read _views.sql
create or replace view points as
select *
from read_parquet(
    getvariable('results') || '/points/*/*.parquet',
    hive_partitioning = true, hive_types_autocast = false, union_by_name = true
);
