"""`flopscape validate`: the calibrated model against measured training runs, each at its published layout."""

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.arguments import Parser
from pipeline.calibrate import load_preset
from pipeline.errors import UserError
from pipeline.runs import Runs, read_runs
from pipeline.runs_table import PUBLISHED_RUNS
from pipeline.validate_explain import explanation, explanation_text
from pipeline.validate_figure import write_figure
from pipeline.validate_scores import predicted_frame, validation
from pipeline.validate_text import as_text

OUT = Path("outputs/validate")


def validate(runs: Runs) -> tuple[dict[str, Any], pl.DataFrame]:
    """Return (all figures, every run beside its prediction) with the constants of conf/physics/calibrated.yaml."""
    frame = predicted_frame(runs, load_preset().constants_bundle)
    return validation(runs, frame), frame


def write_results(result: dict[str, Any], frame: pl.DataFrame, runs: Runs, out: Path) -> None:
    """Write the figures as JSON, every run as a row of a CSV, those left out with the reason, and the picture."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "validation.json").write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
        frame.with_columns(pl.col("flags").list.join(" ")).write_csv(out / "runs.csv")
        left_out = pl.DataFrame(runs.left_out_runs, schema=["run_id", "reason"], orient="row")
        left_out.write_csv(out / "left_out.csv")
        write_figure(frame, out / "predicted_measured.html")
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}; name another folder with --out") from error


def main(argv: list[str]) -> int:
    """Run `flopscape validate [--runs FILE] [--json] [--out DIR] [--explain RUN_ID]`."""
    parser = Parser(prog="flopscape validate", description="Predict measured training runs at their published layouts.")
    parser.add_argument("--runs", type=Path, default=PUBLISHED_RUNS, help="a table of runs, CSV or Parquet")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--out", type=Path, default=OUT, help=f"folder for the figure and tables; {OUT} if left out")
    parser.add_argument("--explain", metavar="RUN_ID", help="take one run apart instead")
    options = parser.parse_args(argv)
    runs = read_runs(options.runs)
    if options.explain:
        told = explanation(runs, options.explain, str(options.runs))
        text = json.dumps(told, indent=1, allow_nan=False) + "\n" if options.json else explanation_text(told)
        sys.stdout.write(text)
        return 0
    result, frame = validate(runs)
    write_results(result, frame, runs, options.out)
    sys.stdout.write(json.dumps(result, indent=1, allow_nan=False) + "\n" if options.json else as_text(result))
    if not options.json:
        print(f"Written: {options.out}/predicted_measured.html, runs.csv, left_out.csv, validation.json")
    return 0
