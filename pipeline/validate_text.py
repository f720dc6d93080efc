"""A validation as tables on the terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.validate_scores import PARTS

HEADS = ("rows", "median", "p90", "bias", "rank")
SHOWN_PARTS = 4
CLASS_TITLES = {
    "chip": "By chip",
    "precision": "By precision",
    "scale": "By number of accelerators",
    "source": "By source",
}


def share(value: float | None, sign: str = "") -> str:
    """Return a fraction as a percentage."""
    return "-" if value is None else f"{value:{sign}.1%}"


def cells(score: Mapping[str, Any]) -> list[str]:
    """Return a score as the cells of a row."""
    rank = score["rank_correlation"]
    errors = [share(score["median_abs_error"]), share(score["p90_abs_error"]), share(score["bias"], "+")]
    return [str(score["rows"]), *errors, "-" if rank is None else f"{rank:.3f}"]


def table(title: str, rows: Sequence[tuple[str, Sequence[str]]], heads: Sequence[str] = HEADS) -> list[str]:
    """Return a titled table as lines; the first column is text, the others are set to the right."""
    first = max([len(name) for name, _ in rows] + [20])
    widths = [max([len(head), *(len(each[index]) for _, each in rows)]) for index, head in enumerate(heads)]
    lines = ["", title, " " * first + "".join(f"  {head:>{width}}" for head, width in zip(heads, widths, strict=True))]
    for name, each in rows:
        lines.append(f"{name:{first}}" + "".join(f"  {cell:>{w}}" for cell, w in zip(each, widths, strict=True)))
    return lines


def score_table(title: str, scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return scores by name as a table, those without rows left out."""
    return table(title, [(name, cells(each)) for name, each in scores.items() if each["rows"]])


def worst_table(worst: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the worst runs with their layout and the largest parts of the predicted step."""
    rows = []
    for each in worst:
        degrees = ("tensor_ranks", "pipeline_ranks", "data_ranks", "microbatch_sequence", "sequence_token")
        layout = "/".join(f"{each[name]:g}" for name in degrees)
        largest = sorted(PARTS, key=lambda name: -each[name])[:SHOWN_PARTS]
        parts = " ".join(f"{name.removesuffix('_time_s')} {each[name] / each['step_time_s']:.0%}" for name in largest)
        times = [f"{each['measured_step_s']:.3g}", f"{each['step_time_s']:.3g}", share(each["error"], "+")]
        name = f"{each['run_id']} {each['model']} {each['chip']} {each['precision']}"
        rows.append((name, [layout, *times, parts]))
    heads = ("tp/pp/dp/micro/seq", "measured s", "predicted s", "error", "largest parts of the predicted step")
    return table("Worst runs", rows, heads) if rows else []


def as_text(result: Mapping[str, Any]) -> str:
    """Return the whole validation as text."""
    rows, oom = result["rows"], result["oom"]
    lines = [
        f"{rows['read']} rows read, {rows['predicted']} predicted, {rows['with_step_time']} with a step time, "
        f"{rows['scored']} scored, {rows['with_peak_memory']} with a peak memory. Errors are predicted / measured - 1.",
    ]
    lines += score_table("Step time", result["groups"])
    lines += score_table("Step time, rows set aside by rule included", result["groups_with_set_aside"])
    lines += score_table("Peak memory", {"all": result["peak_memory"], **result["peak_memory_by_family"]})
    missed = f" (missed: {', '.join(oom['missed_runs'])})" if oom["missed_runs"] else ""
    alarmed = f" ({', '.join(oom['alarmed_runs'])})" if oom["alarmed_runs"] else ""
    lines += ["", f"Out of memory: {oom['hits']} of {oom['rows_oom']} predicted{missed}; "]
    lines[-1] += f"{oom['false_alarms']} of {oom['rows_ran']} runs that ran predicted not to fit{alarmed}"
    for name, title in CLASS_TITLES.items():
        lines += score_table(title, result["by"][name])
    lines += score_table("By what was not published and follows a written rule", result["guessed_inputs"])
    lines += score_table("Set aside by rule", {each["rule"]: each for each in result["set_aside"].values()})
    lines += table(
        "Predicted, but no step time to compare with",
        [(name, [str(count)]) for name, count in result["untimed"].items()],
        ("rows",),
    )
    lines += table("Left out", [(name, [str(count)]) for name, count in result["left_out"].items()], ("rows",))
    return "\n".join([*lines, *worst_table(result["worst"]), ""])
