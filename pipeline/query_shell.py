"""SQL line by line over the views of a results folder."""

from typing import TextIO

import duckdb

from pipeline.query_format import table_text

ROW_LIMIT = 200
GREETING = (
    "Views: points, scenarios, catalogue, chips, prices, runs, export_status. "
    "End a statement with ; and leave with Ctrl-D or .quit\n"
)


def shell(connection: duckdb.DuckDBPyConnection, source: TextIO, target: TextIO) -> int:
    """Read statements, run each, print what it returns; an error is one line and the shell goes on."""
    target.write(GREETING)
    statement = ""
    while True:
        target.write("... " if statement else "sql> ")
        target.flush()
        line = source.readline()
        if not line or line.strip() in (".quit", ".exit"):
            target.write("\n")
            return 0
        statement += line
        if statement.rstrip().endswith(";"):
            target.write(_answer(connection, statement))
            statement = ""
        elif not statement.strip():
            statement = ""


def _answer(connection: duckdb.DuckDBPyConnection, statement: str) -> str:
    try:
        cursor = connection.execute(statement)
        rows = cursor.fetchmany(ROW_LIMIT + 1)
    except duckdb.Error as error:
        return " ".join(str(error).split()) + "\n"
    columns = [each[0] for each in cursor.description or []]
    if not columns:
        return ""
    text = table_text(columns, rows[:ROW_LIMIT])
    return text + (f"(the first {ROW_LIMIT} rows)\n" if len(rows) > ROW_LIMIT else "")
