"""What a study shows at its end: a sentence with its number, short tables and figures, each from a question in SQL.

A study's file (conf/study) says which questions it asks, with which parameters, and which columns it shows; the
sentence is a text with places for values of answers. Nothing is computed here.
"""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.errors import UserError
from pipeline.query import ask
from pipeline.query_files import query_names, read_query
from pipeline.query_format import table_text

if TYPE_CHECKING:
    import duckdb

Row = Mapping[str, Any]
ASK_KEYS = ("query", "parameters", "where", "largest", "smallest")
TABLE_KEYS = (*ASK_KEYS, "title", "columns", "limit")
FIGURE_KEYS = (
    *ASK_KEYS,
    "title",
    "kind",
    "x",
    "y",
    "series",
    "x_title",
    "y_title",
    "x_log",
    "y_log",
)
FIGURE_KINDS = ("line", "bar", "scatter")
LINE_LIMIT = 24


@dataclass(frozen=True, kw_only=True)
class StudyTable:
    """A short table: headings, and rows in the same order."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, kw_only=True)
class StudyFigure:
    """A figure as its study describes it, and the rows it draws."""

    spec: Mapping[str, Any]
    rows: Sequence[Row]


@dataclass(frozen=True, kw_only=True)
class StudyAnswers:
    """Everything that a study shows."""

    sentence: str = ""
    tables: Sequence[StudyTable] = ()
    figures: Sequence[StudyFigure] = ()


def check_study(study: Mapping[str, Any], file: str) -> None:
    """Refuse, in one line and before anything runs, what a study's file cannot mean."""
    sentence = study.get("sentence") or {}
    _refuse_unknown(sentence, ("text", "values"), file, "study.sentence")
    for name, each in (sentence.get("values") or {}).items():
        _check_question(each, ASK_KEYS, file, f"study.sentence.values.{name}")
    for kind, keys in (("tables", TABLE_KEYS), ("figures", FIGURE_KEYS)):
        for position, each in enumerate(study.get(kind) or ()):
            _check_question(each, keys, file, f"study.{kind}[{position}]")
    for position, each in enumerate(study.get("figures") or ()):
        if each.get("kind", "line") not in FIGURE_KINDS:
            where = f"{file}: study.figures[{position}].kind = {each['kind']!r}"
            raise UserError(f"{where}: must be one of {', '.join(FIGURE_KINDS)}; choose one")


def _check_question(spec: object, keys: Sequence[str], file: str, where: str) -> None:
    _refuse_unknown(spec, keys, file, where)
    assert isinstance(spec, Mapping)
    if spec.get("query") not in query_names():
        raise UserError(f"{file}: {where}.query = {spec.get('query')!r}: no such question; see flopscape query --list")


def _refuse_unknown(spec: object, keys: Sequence[str], file: str, where: str) -> None:
    if not isinstance(spec, Mapping):
        raise UserError(f"{file}: {where} = {spec!r}: must be a mapping; see conf/study/gtx580_vs_modern.yaml")
    for key in spec:
        if key not in keys:
            raise UserError(f"{file}: {where}.{key}: unknown key; known: {', '.join(keys)}")


def asked_rows(connection: "duckdb.DuckDBPyConnection", spec: Mapping[str, Any]) -> list[Row]:
    """Return the rows of a question as a study asks it.

    `where` keeps rows with given values; `largest` or `smallest` puts the row that is so in a column first.
    """
    columns, found = ask(connection, read_query(spec["query"]), spec.get("parameters"))
    rows: list[Row] = [dict(zip(columns, each, strict=True)) for each in found]
    for name, wanted in (spec.get("where") or {}).items():
        _known_column(name, columns, spec)
        values = wanted if isinstance(wanted, list | tuple) else [wanted]
        rows = [row for row in rows if _is_among(row[name], values)]
    for key, sign in (("largest", -1.0), ("smallest", 1.0)):
        if spec.get(key):
            name = spec[key]
            _known_column(name, columns, spec)
            rows = [row for row in rows if row[name] is not None]
            rows.sort(key=lambda row: sign * row[name])  # noqa: B023
    return rows


def _known_column(name: str, columns: Sequence[str], spec: Mapping[str, Any]) -> None:
    if name not in columns:
        raise UserError(f"study: {spec['query']} has no column {name}; choose one of {', '.join(columns)}")


def _is_among(value: Any, wanted: Sequence[Any]) -> bool:
    return any(value == each or str(value) == str(each) for each in wanted)


def study_answers(connection: "duckdb.DuckDBPyConnection", study: Mapping[str, Any]) -> StudyAnswers:
    """Return what a study shows, from its results."""
    return StudyAnswers(
        sentence=sentence_text(connection, study.get("sentence") or {}),
        tables=[study_table(connection, each) for each in study.get("tables") or ()],
        figures=[StudyFigure(spec=each, rows=asked_rows(connection, each)) for each in study.get("figures") or ()],
    )


def study_table(connection: "duckdb.DuckDBPyConnection", spec: Mapping[str, Any]) -> StudyTable:
    """Return one table with the columns that the study shows, under its headings."""
    rows = asked_rows(connection, spec)
    shown = spec.get("columns") or {name: name for name in (rows[0] if rows else ())}
    for name in shown:
        if rows:
            _known_column(name, list(rows[0]), spec)
    limited = rows[: spec.get("limit") or LINE_LIMIT]
    return StudyTable(
        title=str(spec.get("title", spec["query"])),
        columns=[str(heading) for heading in shown.values()],
        rows=[[row[name] for name in shown] for row in limited],
    )


class _Values(string.Formatter):
    """Formats `{alias.column:.3g}`; a value that is missing reads as `none`."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        alias, _, column = field_name.partition(".")
        row = kwargs[alias]
        if row and column not in row:
            raise UserError(f"study: sentence: {field_name}: no such column; choose one of {', '.join(row)}")
        return row.get(column), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        return "none" if value is None else super().format_field(value, format_spec)


def sentence_text(connection: "duckdb.DuckDBPyConnection", spec: Mapping[str, Any]) -> str:
    """Return the study's answer in one sentence, with the values that its questions found."""
    if not spec.get("text"):
        return ""
    rows = {name: asked_rows(connection, each) for name, each in (spec.get("values") or {}).items()}
    return _Values().vformat(spec["text"], (), {name: found[0] if found else {} for name, found in rows.items()})


def answers_text(answers: StudyAnswers) -> str:
    """Return tables and sentence for the terminal."""
    parts = [f"{each.title}\n\n{table_text(each.columns, each.rows)}" for each in answers.tables if each.rows]
    return "\n".join([*parts, answers.sentence + "\n"] if answers.sentence else parts)
