"""Every question: its header tells the truth, its answer is what plain Python finds on the same rows."""

import csv
import io
import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import query as q
from pipeline.bench_frontier import frontier_benchmark
from pipeline.errors import UserError
from pipeline.query_files import packaged_sql, query_names, read_query
from pipeline.query_shell import shell

UNITS_WITHOUT_SUFFIX = ("1", "0/1", "")
ROUNDING = 1e-12  # the same float64 arithmetic in another order
VIEWS = ("points", "scenarios", "catalogue", "chips", "prices", "runs", "export_status")
ASKED_ELSEWHERE = ("cost_by_year", "export_rule_effect", "sensitivity", "site_bandwidth")  # test_queries_of_studies.py


@pytest.fixture(scope="module")
def connection(results_folder):
    return q.connect(str(results_folder))


@pytest.fixture
def all_rows(make_table):
    table = make_table(range(16))
    return [{name: values[i] for name, values in table.items()} for i in range(16)]


def answer(connection, name, **parameters):
    columns, rows = q.ask(connection, read_query(name), parameters)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.mark.parametrize("name", query_names())
def test_header_states_question_grain_ties_and_the_columns_returned(connection, name):
    query = read_query(name)
    assert query.question.endswith("?") and query.grain and query.ties
    columns, rows = q.ask(connection, query)
    assert [each.name for each in query.columns] == columns
    assert rows or name in ASKED_ELSEWHERE
    for each in query.columns:
        assert each.meaning
        if each.name.endswith(("_flop", "_day", "_usd", "_s", "_gigabyte", "_fraction", "_ratio", "_count", "_share")):
            assert each.unit, f"{each.name} has no unit in the header"


def parameters_read(query):
    """Return the parameters that a query reads, by itself and through the view of scenarios held against a question."""
    judged = packaged_sql("_views").partition("create or replace view judged_scenarios")[2].partition(";")[0]
    text = query.sql + (judged if "judged_scenarios" in query.sql else "")
    return dict(re.findall(r"getvariable\('(\w+)'\)(?:::double)?(?:, ([\d.e]+))?", text))


@pytest.mark.parametrize("name", query_names())
def test_header_states_the_parameters(name):
    query = read_query(name)
    read = parameters_read(query)
    assert set(read) == {each.name for each in query.parameters}
    assert all(each.default and each.meaning for each in query.parameters)
    assert all(read[each.name] in ("", each.default) for each in query.parameters)


@pytest.mark.parametrize("name", query_names())
def test_style_one_page_lowercase_final_select(name):
    sql = packaged_sql(name)
    body = [line for line in sql.splitlines() if not line.startswith("--")]
    assert len(body) <= 60
    assert "select * from final" in body
    assert not re.search(r"\b(SELECT|FROM|WHERE|WITH|ORDER BY)\b", "\n".join(body))


@pytest.mark.parametrize("name", query_names())
def test_a_query_gives_the_same_rows_in_the_same_order_again(connection, name):
    assert q.ask(connection, read_query(name)) == q.ask(connection, read_query(name))


def test_static_files_run_one_after_another_as_in_the_duckdb_shell(results_folder):
    connection = duckdb.connect()
    connection.execute(f"set variable results = '{results_folder}'")
    for name in ("_points", "_views", "cost_ratio"):
        connection.execute(packaged_sql(name))
    assert len(connection.fetchall()) == 4


def test_points_hold_every_row_and_the_chip_from_the_folder_name(connection):
    assert connection.execute("select hardware, count(*) from points group by all order by all").fetchall() == [
        ("new_chip", 8),
        ("old_chip", 8),
    ]


def test_utilisation_curve_is_the_feasible_rows(connection, all_rows):
    feasible = [row for row in all_rows if row["is_feasible"]]
    found = {(row["hardware"], row["training_flop"]): row for row in answer(connection, "utilisation_curve")}
    assert len(found) == len(feasible) < len(all_rows)
    for row in feasible:
        got = found[row["hardware"], row["training_flop"]]
        assert got["model_flop_utilisation_fraction"] == row["model_flop_utilisation_fraction"]
        assert got["run_time_day"] == pytest.approx(row["run_time_s"] / 86400, rel=ROUNDING)


@pytest.mark.parametrize("share", [0.8, 0.5])
def test_end_of_linear_scaling(connection, all_rows, share):
    found = {row["hardware"]: row for row in answer(connection, "end_of_linear_scaling", linear_share=share)}
    for chip, got in found.items():
        rows = [row for row in all_rows if row["hardware"] == chip and row["is_feasible"]]
        utilisation = {row["training_flop"]: row["model_flop_utilisation_fraction"] / 0.7 for row in rows}
        assert got["end_of_linear_training_flop"] == max(size for size, u in utilisation.items() if u >= share)
        assert got["first_below_training_flop"] == min(size for size, u in utilisation.items() if u <= share)
        assert not got["is_beyond_sweep"]


def test_end_of_linear_scaling_beyond_the_sweep_and_nowhere(connection):
    beyond = {
        row["hardware"]: row["is_beyond_sweep"] for row in answer(connection, "end_of_linear_scaling", linear_share=0)
    }
    assert beyond == {"old_chip": False, "new_chip": True}  # the new chip's largest run is feasible, the old one's not
    nowhere = answer(connection, "end_of_linear_scaling", linear_share=1.1)
    assert all(row["end_of_linear_training_flop"] is None for row in nowhere)


def test_largest_feasible_run_and_what_stops_the_next(connection, all_rows):
    for got in answer(connection, "largest_feasible_run"):
        rows = [row for row in all_rows if row["hardware"] == got["hardware"]]
        best = max((row for row in rows if row["is_feasible"]), key=lambda row: row["training_flop"])
        assert got["largest_training_flop"] == best["training_flop"]
        assert got["purchase_million_usd"] == pytest.approx(best["purchase_usd"] / 1e6, rel=ROUNDING)
        assert got["stopped_by"] == ("time" if len([row for row in rows if not row["is_feasible"]]) else "")


def test_cost_ratio_between_two_chips_and_its_inverse(connection, all_rows):
    rows = {row["hardware"]: row for row in all_rows if row["training_flop"] == 1e24}
    expected = rows["old_chip"]["purchase_usd"] / rows["new_chip"]["purchase_usd"]
    pairs = {
        (row["hardware"], row["baseline_hardware"]): row for row in answer(connection, "cost_ratio", training_flop=5e23)
    }
    assert len(pairs) == 4
    assert pairs["old_chip", "new_chip"]["purchase_ratio"] == pytest.approx(expected, rel=ROUNDING)
    assert pairs["new_chip", "old_chip"]["purchase_ratio"] == pytest.approx(1 / expected, rel=ROUNDING)
    assert pairs["old_chip", "old_chip"]["purchase_ratio"] == 1
    assert pairs["old_chip", "new_chip"]["training_flop"] == 1e24
    only = answer(connection, "cost_ratio", training_flop=5e23, baseline="new_chip")
    assert {row["baseline_hardware"] for row in only} == {"new_chip"}


def test_headline_agrees_with_the_questions_that_it_sums_up(connection):
    ends = {row["series_id"]: row for row in answer(connection, "end_of_linear_scaling")}
    largest = {row["series_id"]: row for row in answer(connection, "largest_feasible_run")}
    ratios = {row["series_id"]: row for row in answer(connection, "cost_ratio", baseline="new_chip")}
    for row in answer(connection, "headline", baseline="new_chip"):
        series = row["series_id"]
        assert row["end_of_linear_training_flop"] == ends[series]["end_of_linear_training_flop"]
        assert row["largest_training_flop"] == largest[series]["largest_training_flop"]
        assert row["purchase_ratio"] == ratios[series]["purchase_ratio"]


def test_best_layout_of_one_size(connection):
    rows = answer(connection, "best_layout", hardware="new_chip", training_flop=3e24)
    assert [(row["hardware"], row["training_flop"]) for row in rows] == [("new_chip", 1e25)]
    ranks = rows[0]
    assert ranks["data_ranks"] * ranks["pipeline_ranks"] == ranks["accelerator_count"]


def test_parallelism_shares_sum_to_one(connection):
    for row in answer(connection, "parallelism_shares"):
        total = sum(row[f"{kind}_share"] for kind in ("data", "tensor", "pipeline", "expert"))
        assert total == pytest.approx(1.0, abs=1e-12)


def test_assumed_inputs_counts_kinds(connection):
    rows = {row["entry_id"]: row for row in answer(connection, "assumed_inputs")}
    assert (rows["old_chip"]["assumption_count"], rows["old_chip"]["unverified_count"]) == (1, 1)
    assert rows["old_chip"]["assumed_fraction"] == 2 / 5
    assert rows["new_chip"]["assumed_fraction"] == 1 / 5


SIZES = st.integers(1, 12).map(lambda exponent: 1.5**exponent)  # within and across the cells of the query
POINTS = st.lists(st.tuples(SIZES, SIZES, SIZES, st.integers(0, 1), st.booleans()), min_size=1, max_size=40)


def contest_table(points):
    """Return a database whose points are (time, purchase, energy, which model, is feasible), numbered from 0."""
    connection = duckdb.connect()
    words = ", ".join(f"'x' as {name}" for name in ("hardware", "topology", "precision", "physics"))
    words += ", 'as_is' as variant, 'release' as price_date"
    values = ", ".join(str((i, *point)) for i, point in enumerate(points))
    connection.execute(
        f"create table points as select *, {words}, if(kind = 0, 'dense', 'sparse') as model, 1e24 as training_flop, "
        f"8 as accelerator_count, 0.5 as model_flop_utilisation_fraction, 100 - purchase_usd as total_usd "
        f"from (values {values}) as t(scenario_id, run_time_s, purchase_usd, energy_j, kind, is_feasible)"
    )
    return connection


def unbeaten(points):
    """Return the numbers of the points that no other beats, by the definition: point against point."""
    own = [(i, kind, numbers) for i, (*numbers, kind, ok) in enumerate(points) if ok]
    return {
        i
        for i, kind, numbers in own
        if not any(
            kind == other_kind
            and all(theirs <= ours for theirs, ours in zip(other, numbers, strict=True))
            and (other, j) < (numbers, i)
            for j, other_kind, other in own
            if j != i
        )
    }


@settings(max_examples=60, deadline=None)
@given(POINTS)
def test_frontier_is_the_exact_pareto_set_of_time_cost_and_energy(points):
    found = {row["scenario_id"] for row in answer(contest_table(points), "frontier")}
    assert found == unbeaten(points)


def test_frontier_by_total_cost_minds_the_total():
    points = [(1.5, 9.0, 2.0, 0, True), (1.5, 2.0, 2.0, 0, True)]  # total = 100 - purchase: the other way round
    assert [row["scenario_id"] for row in answer(contest_table(points), "frontier")] == [1]
    assert [row["scenario_id"] for row in answer(contest_table(points), "frontier", cost="total")] == [0]


def test_frontier_of_many_random_points_is_that_of_numpy():
    generator = np.random.default_rng(7)
    numbers = np.exp(generator.normal(0.0, 2.0, (3000, 3)))
    points = [(*map(float, row), 0, True) for row in numbers]
    beaten = [(np.all(numbers <= row, axis=1) & np.any(numbers < row, axis=1)).any() for row in numbers]
    found = {row["scenario_id"] for row in answer(contest_table(points), "frontier")}
    assert found == set(np.nonzero(~np.array(beaten))[0].tolist()) and 10 < len(found) < 1000


def test_frontier_benchmark_runs_the_question_on_rows_that_compete():
    assert 0.0 < frontier_benchmark(rows=2000, repeats=1) < 60.0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["utilisation_curv"], "did you mean utilisation_curve?"),
        (["nothing_such"], "no such question"),
        (["missing.sql"], "no such file"),
        (["select nothing from points"], 'Referenced column "nothing" not found'),
        (["frontier", "colour=red"], "colour: no such parameter; it takes cost, training_flop"),
        (["frontier", "training_flop"], "must be name=value"),
        (["headline", "training_flop=much"], "training_flop = much: must be a number; as in training_flop=2.1e25"),
        (["--colour"], "unrecognized arguments"),
        ([], "nothing asked"),
    ],
)
def test_mistakes_are_one_line(results_folder, argv, said):
    with pytest.raises(UserError, match=re.escape(said)) as caught:
        q.main([*argv, "--results", str(results_folder)])
    assert "\n" not in str(caught.value)


def test_a_folder_without_results_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="holds no manifest.json"):
        q.connect(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="run `flopscape sweep` first"):
        q.main(["frontier"])


def test_the_newest_results_under_outputs_are_the_default(results_folder, tmp_path, monkeypatch, capsys):
    (tmp_path / "outputs").mkdir()
    (tmp_path / "outputs" / "made_up").symlink_to(results_folder)
    monkeypatch.chdir(tmp_path)
    assert q.main(["select count(*) as n from points", "--format", "csv"]) == 0
    assert capsys.readouterr().out == "n\n16\n"


def test_formats_hold_the_same_rows(results_folder, tmp_path, capsys):
    asked = ["end_of_linear_scaling", "--results", str(results_folder), "--format"]

    def printed(form: str) -> str:
        q.main([*asked, form])
        return capsys.readouterr().out

    rows = json.loads(printed("json"))
    assert len(rows) == 2
    read = list(csv.DictReader(io.StringIO(printed("csv"))))
    assert [float(each["end_of_linear_training_flop"]) for each in read] == [
        each["end_of_linear_training_flop"] for each in rows
    ]
    assert len(printed("table").splitlines()) == 2 + len(rows)
    assert printed("markdown").startswith("| hardware | topology |")
    q.main([*asked, "parquet", "--output", str(tmp_path / "x.parquet")])
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == rows


def test_a_file_of_ones_own(results_folder, tmp_path, capsys):
    (tmp_path / "mine.sql").write_text("select getvariable('least') as least, count(*) as n from scenarios")
    q.main([str(tmp_path / "mine.sql"), "least=3", "--results", str(results_folder), "--format", "csv"])
    assert capsys.readouterr().out == "least,n\n3.0,16\n"


def test_list_has_a_line_for_every_question_and_one_in_full(capsys):
    q.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == query_names()
    assert all(line.endswith("?") for line in lines)
    q.main(["cost_ratio", "--list"])
    said = capsys.readouterr().out
    assert "baseline=..." in said and "total_ratio [1]" in said and "one row per pair" in said


def test_shell_answers_goes_on_after_a_mistake_and_ends(connection):
    typed = io.StringIO("select count(*) as n\nfrom points;\nselect nonsense;\n.quit\n")
    said = io.StringIO()
    assert shell(connection, typed, said) == 0
    assert "16" in said.getvalue() and "Binder Error" in said.getvalue()


def test_views_named_in_the_greeting_exist(connection):
    for view in VIEWS:
        assert connection.execute(f"select count(*) from {view}").fetchall()[0][0] > 0


def test_layouts_of_one_scenario_are_reduced_to_the_best(results_folder):
    connection = q.connect(str(results_folder))
    connection.execute("create table copy as select * from points")
    connection.execute("create or replace view points as select * from copy")
    connection.execute("insert into copy select * replace (step_time_s * 2 as step_time_s) from copy")
    assert connection.execute("select count(*) from scenarios").fetchall() == [(16,)]
    slowest = connection.execute("select max(step_time_s) from scenarios").fetchall()[0][0]
    once = connection.execute(f"select max(step_time_s) from '{results_folder}/points/*/*.parquet'").fetchall()[0][0]
    assert np.isclose(slowest, once, rtol=ROUNDING)


def test_what_does_not_fit_into_memory_is_not_put_where_one_stands(results_folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    place = Path(q.connect(str(results_folder)).execute("select current_setting('temp_directory')").fetchall()[0][0])
    assert place.is_absolute() and tmp_path not in place.parents
