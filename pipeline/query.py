"""Questions to a results folder: static `.sql` files, or SQL of one's own, run by DuckDB over the Parquet parts."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.arguments import Parser
from pipeline.errors import UserError
from pipeline.query_files import Query, description_text, find_query, list_text, packaged_sql, read_query
from pipeline.query_format import FORMATS, write_rows
from pipeline.store_files import LocalFolder, RemoteFolder, open_folder

if TYPE_CHECKING:
    import duckdb

OUTPUTS = "outputs"
SIDE = "catalogue"  # folder of the tables beside the points
ONE_ROW_EACH = "create or replace view scenarios as from points"  # keep=best: there is nothing to choose from


def latest_results() -> str:
    """Return the folder under outputs/ whose manifest is the newest."""
    manifests = sorted(Path(OUTPUTS).glob("*/manifest.json"), key=lambda path: path.stat().st_mtime)
    if not manifests:
        raise UserError(
            f"{OUTPUTS}/: holds no results yet; run `flopscape sweep` first or name a folder: --results DIR"
        )
    return str(manifests[-1].parent)


def connect(results: str) -> "duckdb.DuckDBPyConnection":
    """Return an in-memory database with the views of a results folder (see --list)."""
    import duckdb

    folder = open_folder(results)
    manifest = folder.read("manifest.json")
    if manifest is None:
        raise UserError(f"{results}: holds no manifest.json; name a results folder with --results DIR")
    if not any(name.endswith(".parquet") for name in folder.names("points")):
        raise UserError(f"{results}: holds no points yet; run its sweep to the end (resume=true) first")
    # What does not fit into memory goes to the system's place for it, not into the folder one happens to stand in
    connection = duckdb.connect(
        config={"temp_directory": str(Path(tempfile.gettempdir()) / f"flopscape-{os.getpid()}")}
    )
    has_one_each = json.loads(manifest).get("config", {}).get("keep") == "best"
    if isinstance(folder, LocalFolder):
        set_variables(connection, {"results": results.rstrip("/")})
        connection.execute(packaged_sql("_points"))
        connection.execute(packaged_sql("_views"))
        connection.execute(ONE_ROW_EACH if has_one_each else "")
        _read_side_tables(connection, folder)
        return connection
    connection.register("points", _remote_points(folder))
    with tempfile.TemporaryDirectory() as copy:
        (Path(copy) / "manifest.json").write_bytes(manifest)
        set_variables(connection, {"results": copy})
        connection.execute(packaged_sql("_views"))
        connection.execute(ONE_ROW_EACH if has_one_each else "")
        for name in folder.names(SIDE):
            (Path(copy) / name).parent.mkdir(exist_ok=True)
            (Path(copy) / name).write_bytes(folder.read(name) or b"")
        _read_side_tables(connection, folder)
    set_variables(connection, {"results": results})
    return connection


def _read_side_tables(connection: "duckdb.DuckDBPyConnection", folder: LocalFolder | RemoteFolder) -> None:
    """Create the tables `prices`, `runs`, `export_status`; results that a program wrote itself may lack them."""
    if any(name.endswith(".parquet") for name in folder.names(SIDE)):
        connection.execute(packaged_sql("_side"))


def _remote_points(folder: RemoteFolder) -> Any:
    """Return the parts as an Arrow dataset, which DuckDB scans with its filters pushed down."""
    from pyarrow import dataset

    files = [f"{folder.path}/{name}" for name in folder.names("points") if name.endswith(".parquet")]
    return dataset.dataset(
        files,
        format="parquet",
        filesystem=folder.filesystem,
        partitioning="hive",
        partition_base_dir=f"{folder.path}/points",
    )


def set_variables(connection: "duckdb.DuckDBPyConnection", values: Mapping[str, str | float]) -> None:
    """Set variables that a query reads with getvariable()."""
    for name, value in values.items():
        literal = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
        connection.execute(f'set variable "{name}" = {literal}')


def ask(
    connection: "duckdb.DuckDBPyConnection",
    query: Query,
    parameters: Mapping[str, str | float] | None = None,
    row_limit: int = sys.maxsize,
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return (column names, the first rows) of a question, with parameters for this question alone."""
    import duckdb

    parameters = dict(parameters or {})
    known = {each.name: each.default for each in query.parameters}
    for name, value in parameters.items():
        if name not in known and query.question:
            remedy = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
            raise UserError(f"command line: query {query.name}: {name}: no such parameter; {remedy}")
        if isinstance(value, str) and isinstance(_value(known.get(name, "")), float):
            raise UserError(
                f"command line: query {query.name}: {name} = {value}: must be a number; as in {name}={known[name]}"
            )
    set_variables(connection, parameters)
    try:
        cursor = connection.execute(query.sql)
        rows = cursor.fetchall() if row_limit == sys.maxsize else cursor.fetchmany(row_limit)
        return [each[0] for each in cursor.description or []], rows
    except duckdb.Error as error:
        text = " ".join(str(error).split())[:300]
        raise UserError(f"query {query.name}: {text}; see the columns with `describe points`") from error
    finally:
        for name in parameters:
            connection.execute(f'reset variable "{name}"')


def read_parameter(text: str) -> tuple[str, str | float]:
    """Return (name, value) of `name=value`; what reads as a number is one."""
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[a-z_]\w*", name):
        raise UserError(f"command line: {text}: must be name=value; parameters stand in `flopscape query NAME --list`")
    return name, _value(value)


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def main(argv: Sequence[str]) -> int:
    """Run `flopscape query`."""
    parser = Parser(prog="flopscape query", description="Ask something of a results folder.")
    parser.add_argument("query", nargs="?", help="a question (see --list), a .sql file, or an SQL statement in quotes")
    parser.add_argument("parameters", nargs="*", help="name=value for the question's parameters")
    parser.add_argument("--results", help="results folder or URL (default: the newest under outputs/)")
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table, with rounded numbers")
    parser.add_argument("--output", help="write there instead of printing")
    parser.add_argument("--list", action="store_true", help="list the questions; after a name: that one in full")
    parser.add_argument("--shell", action="store_true", help="type SQL line by line")
    options = parser.parse_args(argv)
    if options.list:
        print(description_text(read_query(options.query)) if options.query else list_text())
        return 0
    if not options.query and not options.shell:
        raise UserError("command line: query: nothing asked; name a question (`flopscape query --list`) or write SQL")
    query = find_query(options.query) if options.query else None
    parameters = dict(map(read_parameter, options.parameters))
    connection = connect(options.results or latest_results())
    if options.shell:
        from pipeline.query_shell import shell

        return shell(connection, sys.stdin, sys.stdout)
    assert query is not None
    columns, rows = ask(connection, query, parameters)
    write_rows(columns, rows, options.format, options.output)
    return 0
