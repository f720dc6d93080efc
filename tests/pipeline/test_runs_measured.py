"""Measurements that cannot be, and tables with mistakes: each is said in one line or laid aside by a counted rule."""

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline.cli import main
from pipeline.errors import UserError
from pipeline.runs import read_runs
from pipeline.runs_measured import ASIDE_RULES
from pipeline.validate import validate
from pipeline.validate_explain import explanation
from tests.pipeline.test_runs import FULL_ROW, written

RATE = 128 * 8192 / 64 / 1.9  # tokens/s of an accelerator in the full row


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"measured_tokens_per_s_per_gpu": f"{RATE}"}, ""),
        ({"measured_step_time_s": "1900", "measured_tokens_per_s_per_gpu": f"{RATE}"}, "timing"),
        ({"measured_step_time_s": "0.019"}, "peak"),
        ({"pp": "64", "dp": "1"}, "layout"),
        ({"n_experts": "8", "top_k": "2", "ep": "16"}, "layout"),
    ],
)
def test_what_cannot_be_is_set_aside_by_rule(tmp_path: Path, change: dict[str, str], rule: str) -> None:
    """Milliseconds in a column of seconds, more FLOP/s than the chip has, stages without a layer."""
    runs = read_runs(written(tmp_path, change, {"run_id": "b"}))
    assert runs.about["aside"].to_list() == [rule, ""]
    result, _ = validate(runs)
    assert result["rows"]["scored"] == (1 if rule else 2)
    assert list(result["set_aside"]) == [rule] * bool(rule) and set(result["set_aside"]) <= set(ASIDE_RULES)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"measured_step_time_s": "OOM"}, "ended out of memory"),
        ({"measured_step_time_s": "", "status": "CUDA out of memory"}, "ended out of memory"),
        ({"status": "crashed"}, "status 'crashed' is not ok"),
        ({"measured_step_time_s": "", "measured_mfu": "0.41"}, "FLOP/s or MFU alone: sources count them differently"),
        ({"measured_step_time_s": "1.9 s"}, "measured_step_time_s is not a number above zero"),
        ({"measured_step_time_s": "0"}, "measured_step_time_s is not a number above zero"),
        ({"measured_step_time_s": "", "measured_peak_mem_gb": "60"}, "peak memory alone"),
        ({"measured_step_time_s": ""}, "nothing measured is printed"),
    ],
)
def test_runs_without_a_time_are_counted_by_reason(tmp_path: Path, change: dict[str, str], reason: str) -> None:
    result, _ = validate(read_runs(written(tmp_path, change, {"status": "Success"})))
    assert result["untimed"] == {reason: 1}
    assert result["rows"]["with_step_time"] == 1


@pytest.mark.parametrize("name", ["num_gpus", "n_layers", "d_model", "seq_len", "global_batch_sequences", "tp"])
def test_numbers_that_no_run_has_are_misprints(tmp_path: Path, name: str) -> None:
    runs = read_runs(written(tmp_path, {name: "1e30"}, {"run_id": "b"}))
    told = str([*runs.left_out, *runs.about["flags"].to_list()])
    assert f"{name} is not a number" in told or f"unreadable {name}" in told
    json.dumps(validate(runs)[0], allow_nan=False)


def test_a_row_that_is_left_out_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, {"run_id": "x", "gpu": "abacus"}, {"run_id": "y"})
    assert main(["validate", "--runs", str(path), "--out", str(tmp_path / "out")]) == 0
    assert "gpu 'abacus' is not in the catalogue" in capsys.readouterr().out
    left_out = pl.read_csv(tmp_path / "out" / "left_out.csv").rows()
    assert left_out == [("x", "gpu 'abacus' is not in the catalogue")]


def test_headers_are_read_whatever_their_case_and_blank_lines_are_no_rows(tmp_path: Path) -> None:
    path = written(tmp_path, {})
    header, row = path.read_text().splitlines()
    path.write_text(f"{header.upper().replace('GPU,', ' Gpu ,')}\n\n{row}\n\n")
    assert read_runs(path).about["run_id"].to_list() == ["a"]
    path.write_text(f"{header},GPU\n{row},b200\n")
    with pytest.raises(UserError, match="column 'gpu' stands twice"):
        read_runs(path)
    path.write_text(f"{header}\n{row}\n".replace(",", ";"))
    with pytest.raises(UserError, match="separate cells with commas"):
        read_runs(path)


def test_parquet_with_numbers_and_gaps_is_read_as_csv_is(tmp_path: Path) -> None:
    numbers = {name: float(value) if value.replace(".", "").isdigit() else value for name, value in FULL_ROW.items()}
    path = tmp_path / "runs.parquet"
    pl.DataFrame([numbers, {**numbers, "measured_step_time_s": float("nan"), "vocab": None}]).write_parquet(path)
    runs = read_runs(path)
    assert runs.columns["vocabulary_size"].tolist() == [128256, 50000]
    assert runs.about["measured_step_s"].to_list() == [1.9, None]


def test_a_name_that_stands_twice_cannot_be_explained(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="run 'a': stands 2 times in column run_id; give each its own"):
        explanation(read_runs(written(tmp_path, {}, {})), "a", "runs.csv")
