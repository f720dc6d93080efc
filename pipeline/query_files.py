"""Questions as files: `.sql` with a header that says what is asked, of what, and what each column of the answer is."""

import difflib
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pipeline.errors import UserError

_COLUMN = re.compile(r"--   (?P<name>\w+)(?: \[(?P<unit>[^\]]+)\])?(?: = (?P<default>[^:]+))?: (?P<meaning>.+)")


@dataclass(frozen=True, kw_only=True)
class Described:
    """A column or a parameter, as a query's header describes it."""

    name: str
    unit: str
    meaning: str
    default: str = ""


@dataclass(frozen=True, kw_only=True)
class Query:
    """A question as its file puts it."""

    name: str
    question: str
    grain: str
    columns: tuple[Described, ...]
    parameters: tuple[Described, ...]
    ties: str
    sql: str


def query_names() -> list[str]:
    """Return the names of the questions that come with flopscape."""
    files = resources.files("pipeline.queries").iterdir()
    return sorted(each.name[:-4] for each in files if each.name.endswith(".sql") and not each.name.startswith("_"))


def packaged_sql(name: str) -> str:
    """Return the text of a file of `pipeline/queries`."""
    return (resources.files("pipeline.queries") / f"{name}.sql").read_text(encoding="utf-8")


def read_query(name: str) -> Query:
    """Return one of the questions that come with flopscape, or refuse the name with the closest ones."""
    if name not in query_names():
        close = difflib.get_close_matches(name, query_names(), n=1)
        remedy = f"did you mean {close[0]}?" if close else "see `flopscape query --list`"
        raise UserError(f"command line: query {name}: no such question, file or SQL statement; {remedy}")
    return parse_query(name, packaged_sql(name))


def parse_query(name: str, sql: str) -> Query:
    """Return a query with its header taken apart."""
    words: dict[str, str] = {}
    lists: dict[str, list[Described]] = {"Columns": [], "Parameters": []}
    section = ""
    for line in sql.splitlines():
        if not line.startswith("--"):
            break
        described = _COLUMN.fullmatch(line)
        if described and section in lists:
            lists[section].append(Described(**{key: value or "" for key, value in described.groupdict().items()}))
        elif heading := re.fullmatch(r"-- ([A-Z][\w ]*):\s*(.*)", line):
            section = heading[1]
            words[section] = heading[2]
    return Query(
        name=name,
        question=words.get("Question", ""),
        grain=words.get("One row per", ""),
        columns=tuple(lists["Columns"]),
        parameters=tuple(lists["Parameters"]),
        ties=words.get("Ties", ""),
        sql=sql,
    )


def find_query(text: str) -> Query:
    """Return the question that a name, a file or an SQL statement means."""
    if text.endswith(".sql"):
        if not Path(text).is_file():
            raise UserError(f"command line: query {text}: no such file; see `flopscape query --list` for questions")
        return parse_query(text, Path(text).read_text(encoding="utf-8"))
    if re.search(r"\s", text.strip()):
        return parse_query("of your own", text)
    return read_query(text)


def list_text() -> str:
    """Return every question that comes with flopscape, one line each."""
    width = max(map(len, query_names()))
    return "\n".join(f"{query.name:<{width}}  {query.question}" for query in map(read_query, query_names()))


def description_text(query: Query) -> str:
    """Return one question with its grain, parameters and columns."""
    lines = [query.name, f"  {query.question}", f"  one row per {query.grain}"]
    lines += [f"  {each.name}=... {each.meaning} (default: {each.default})" for each in query.parameters]
    return "\n".join([*lines, *(f"  {each.name} [{each.unit or 'text'}] {each.meaning}" for each in query.columns)])
