"""What an effect is worth: every one that can be taken out exists, moves a published run, and leaves the fit."""

import json

import numpy as np
import pytest

from models.evaluate_layouts import transformer_outcomes
from models.packing import field_names, transformer_names
from models.transformer_point import Constants
from pipeline import calibrate_ablation
from pipeline.calibrate import PRESET, load_preset, main, time_problem
from pipeline.calibrate_ablation import EFFECTS, NOTHING, ablation, chosen_effects, line, without
from pipeline.calibrate_fit import packed
from pipeline.calibrate_priors import TIME_PRIORS
from pipeline.errors import UserError
from pipeline.physics_calibrated import constants_bundle
from pipeline.runs import read_runs
from tests.pipeline.test_calibrate import some_runs


@pytest.mark.parametrize("name", EFFECTS)
def test_an_effect_taken_out_moves_a_published_run(name: str) -> None:
    """Every constant and input that it names is one of the model's; each alone changes the time of some run."""
    effect, runs = EFFECTS[name], read_runs()
    constants = load_preset().constants
    assert set(effect.constants) <= set(field_names(Constants)) and set(effect.columns) <= set(transformer_names())
    as_it_is = transformer_outcomes(packed(runs.columns), constants_bundle(constants))["step_time_s"]
    bundle = constants_bundle({**constants, **effect.constants})
    taken_out = transformer_outcomes(packed(without(runs, effect).columns), bundle)["step_time_s"]
    assert np.isfinite(taken_out).all() and (taken_out > 0.0).all()
    assert (taken_out != as_it_is).sum() >= 10


def test_runs_keep_their_inputs() -> None:
    runs = some_runs(("mpt_h100_sxm",), every=6)
    before = {name: values.copy() for name, values in runs.columns.items()}
    changed = without(runs, EFFECTS["low_precision_peak"]).columns
    assert (changed["peak_linear_flop_per_s"] == runs.columns["peak_16bit_flop_per_s"]).all()
    assert all(np.array_equal(values, runs.columns[name]) for name, values in before.items())


def test_what_is_held_leaves_the_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(runs, constants, priors=TIME_PRIORS):
        seen.append((constants, set(priors)))
        return time_problem(runs, constants, priors)

    monkeypatch.setattr(calibrate_ablation, "time_problem", watched)
    monkeypatch.setattr(calibrate_ablation, "WHOLE_ITERATIONS", 2)
    monkeypatch.setattr(calibrate_ablation, "FAMILY_ITERATIONS", 1)
    runs = some_runs(("mpt_h100_sxm", "torchtitan_dec24"), every=8)
    constants = load_preset().constants
    first, second = ablation(runs, constants, ["memory_bound_kernels"])
    held = EFFECTS["memory_bound_kernels"].constants
    assert seen[0] == (dict(constants), set(TIME_PRIORS))
    assert seen[1][1] == set(TIME_PRIORS) - set(held) and all(seen[1][0][name] == held[name] for name in held)
    assert (first["without"], second["without"]) == (NOTHING, "memory_bound_kernels")
    kept = first["groups"]["all"]
    assert kept["rows"] == runs.about.height and kept["median_abs_error"] != second["groups"]["all"]["median_abs_error"]
    assert f"{kept['median_abs_error']:.1%}" in line(first) and "no traffic" in line(second)


def test_effects_are_chosen_by_name() -> None:
    assert chosen_effects(["logits,recomputation", "logits"]) == ["recomputation", "logits"]
    assert chosen_effects(["all"]) == list(EFFECTS)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--without", "gravity"], "--without gravity: no such effect; choose of recomputation, "),
        (["--without", "logits", "--out", "x.yaml"], "--out: --without writes no constants; leave one of them out"),
        (["--json"], "--json: only with --without EFFECT"),
    ],
)
def test_a_wrong_call_is_one_line(argv: list[str], words: str) -> None:
    before = PRESET.read_bytes()
    with pytest.raises(UserError, match=words) as error:
        main(argv)
    assert "\n" not in str(error.value) and PRESET.read_bytes() == before


def test_json_is_what_the_lines_say(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    before = PRESET.read_bytes()
    numbers = {"rows": 3, "median_abs_error": 0.05, "p90_abs_error": 0.1}
    row = {"without": "logits", "meaning": "free", "groups": {"all": numbers}}
    monkeypatch.setattr(calibrate_ablation, "ablation", lambda *_: iter([row]))
    assert main(["--without", "logits", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [row]
    assert main(["--without", "logits"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == line(row)
    assert PRESET.read_bytes() == before
