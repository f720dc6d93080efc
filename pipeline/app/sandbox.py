"""SQL from the page: one read-only statement, on the chosen results and nothing else, with limits."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.errors import UserError
from pipeline.query import connect

TIME_LIMIT_S = 10.0
MEMORY_LIMIT = "1GB"
SQL_LIMIT = 20_000
ROW_LIMIT = 5_000
READS = ("SELECT",)


def result_names(root: Path) -> list[str]:
    """Return what lies under the root: results folders (with a manifest) and single Parquet files, by relative path."""
    if not root.is_dir():
        return []
    folders = [path.parent for path in root.glob("*/manifest.json") if any(path.parent.glob("points/*/*.parquet"))]
    files = [*root.glob("*.parquet")]
    found = [each for each in (*folders, *files) if each.resolve().is_relative_to(root.resolve())]
    return sorted(str(each.relative_to(root)) for each in found)


def locate(root: Path, name: str) -> Path:
    """Return the place of a result; refuses everything outside the root, links out of it included."""
    place = (root / name[:400].replace("\0", "")).resolve()
    if not place.is_relative_to(root.resolve()):
        raise UserError(f"results {name[:60]!r}: lies outside {root}; choose one of the list")
    if name not in result_names(root):
        raise UserError(f"results {name[:60]!r}: no such results under {root}; choose one of the list")
    if place.is_dir():
        for part in place.rglob("*.parquet"):
            if not part.resolve().is_relative_to(place):
                raise UserError(f"results {name[:60]!r}: {part.name} is a link out of the folder; remove it")
    return place


def open_database(place: Path) -> duckdb.DuckDBPyConnection:
    """Return an in-memory database that can read this place and no other, and whose settings cannot change."""
    if place.is_dir():
        connection = connect(str(place))
    else:
        connection = duckdb.connect()
        literal = "'" + str(place).replace("'", "''") + "'"
        connection.execute(f"create view points as select * from read_parquet({literal})")
        connection.execute("create view scenarios as select * from points")
    allowed = "allowed_directories" if place.is_dir() else "allowed_paths"
    text = str(place).replace("'", "''") + ("/" if place.is_dir() else "")
    connection.execute(f"set {allowed} = ['{text}']")
    for setting in (
        "temp_directory = ''",
        "enable_external_access = false",
        f"memory_limit = '{MEMORY_LIMIT}'",
        "threads = 1",
        "python_enable_replacements = false",
        "autoinstall_known_extensions = false",
        "autoload_known_extensions = false",
        "lock_configuration = true",
    ):
        connection.execute(f"set {setting}")
    return connection


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    timer = threading.Timer(TIME_LIMIT_S, connection.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def check_statement(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """Return the statement if it is a single one that only reads; raises UserError otherwise."""
    if len(sql) > SQL_LIMIT:
        raise UserError(f"SQL: longer than {SQL_LIMIT:,} characters; shorten it")
    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise UserError(f"SQL: {_short(error)}; correct it") from error
    if len(statements) != 1:
        raise UserError(f"SQL: {len(statements)} statements; write one")
    kind = statements[0].type.name
    if kind not in READS:
        raise UserError(f"SQL: a statement of kind {kind} may change something; only select is run here")
    return sql


def run_sql(place: Path, sql: str) -> pa.Table:
    """Return the first ROW_LIMIT rows of a statement; raises UserError in one line."""
    connection = open_database(place)
    try:
        check_statement(connection, sql)
        with _time_limit(connection):
            reader: Any = connection.sql(sql).to_arrow_reader(ROW_LIMIT)
            batches, rows = [], 0
            for batch in reader:
                batches.append(batch.slice(0, ROW_LIMIT - rows))
                rows += batches[-1].num_rows
                if rows >= ROW_LIMIT:
                    break
            return pa.Table.from_batches(batches, schema=reader.schema)
    except duckdb.InterruptException as error:
        raise UserError(f"SQL: took longer than {TIME_LIMIT_S:g} s; ask for less") from error
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if "nterrupt" in str(error):
            raise UserError(f"SQL: took longer than {TIME_LIMIT_S:g} s; ask for less") from error
        raise UserError(f"SQL: {_short(error)}; see the columns with: describe points") from error
    finally:
        connection.close()


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
