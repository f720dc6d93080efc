"""SQL and paths from the page reach the chosen results and nothing else."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.app import sandbox
from pipeline.app.sandbox import locate, result_names, run_sql
from pipeline.errors import UserError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    base = tmp_path / "root"
    base.mkdir()
    pq.write_table(pa.table({"a": [1, 2, 3]}), base / "points.parquet")
    pq.write_table(pa.table({"a": [9]}), base / "other.parquet")
    (tmp_path / "secret.txt").write_text("secret")
    pq.write_table(pa.table({"a": [7]}), tmp_path / "secret.parquet")
    (base / "link.parquet").symlink_to(tmp_path / "secret.parquet")
    return base


def test_chosen_results_are_read(root: Path) -> None:
    assert run_sql(locate(root, "points.parquet"), "select sum(a) as total from points").to_pydict() == {"total": [6]}
    assert run_sql(locate(root, "points.parquet"), "describe points").num_rows == 1


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from read_text('{root}/../secret.txt')",
        "select * from '{root}/other.parquet'",
        "select * from read_parquet('{root}/points.parquet/../other.parquet')",
        "select * from glob('/*')",
        "copy points to '{root}/harm.csv'",
        "explain analyze copy points to '{root}/harm.csv'",
        "copy (select 1) to '{root}/points.parquet'",
        "attach '{root}/harm.db'",
        "install httpfs",
        "load httpfs",
        "export database '{root}/harm'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma database_list",
        "create table harm as select 1",
        "drop view points",
        "select 1; select 2",
        "select * from 'https://example.org/x.parquet'",
        "call pragma_version()",
        "",
        "select",
        "-- " + "x" * 30_000,
    ],
)
def test_harm_is_refused_and_nothing_is_written(root: Path, sql: str) -> None:
    before = {each: each.stat().st_size for each in root.iterdir()}
    with pytest.raises(UserError) as error:
        run_sql(locate(root, "points.parquet"), sql.replace("{root}", str(root)))
    assert len(str(error.value).splitlines()) == 1
    assert {each: each.stat().st_size for each in root.iterdir()} == before


def test_long_query_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "TIME_LIMIT_S", 0.3)
    endless = "select sum(x.range * y.range) from range(10000000) x, range(10000000) y"
    with pytest.raises(UserError, match="took longer"):
        run_sql(locate(root, "points.parquet"), endless)


def test_memory_is_limited_and_rows_are_cut(root: Path) -> None:
    with pytest.raises(UserError, match="emory"):
        run_sql(locate(root, "points.parquet"), "select list(range) from range(1000000000)")
    assert run_sql(locate(root, "points.parquet"), "select * from range(1000000)").num_rows == sandbox.ROW_LIMIT


@pytest.mark.parametrize(
    "name",
    ["../secret.parquet", "/etc/passwd", "points.parquet/../../secret.parquet", "link.parquet", "none", "", "a\0b"],
)
def test_paths_cannot_leave_the_root(root: Path, name: str) -> None:
    with pytest.raises(UserError):
        locate(root, name)


def test_links_out_of_the_root_are_not_listed(root: Path) -> None:
    assert result_names(root) == ["other.parquet", "points.parquet"]
    assert result_names(root / "nowhere") == []


def test_folder_with_a_part_linked_out_is_refused(root: Path) -> None:
    part = root / "study" / "points" / "hardware=x"
    part.mkdir(parents=True)
    (root / "study" / "manifest.json").write_text("{}")
    (part / "part-0.parquet").symlink_to(root.parent / "secret.parquet")
    with pytest.raises(UserError, match="link"):
        locate(root, "study")
