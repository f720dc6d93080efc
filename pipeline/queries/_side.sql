-- Tables beside the points, as the sweep wrote them into the results folder:
-- `prices` (one row for each dated observation), `runs` (one row for each published training run),
-- `export_status` (one row for each chip and day: what the export rules in force make of it).
create or replace table prices as select * from read_parquet(getvariable('results') || '/catalogue/prices.parquet');
create or replace table runs as select * from read_parquet(getvariable('results') || '/catalogue/runs.parquet');
create or replace table export_status as
select * from read_parquet(getvariable('results') || '/catalogue/export_status.parquet');
