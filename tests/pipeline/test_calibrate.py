"""Calibration: known constants are found again, folds leave out what they say, the file keeps all but its numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from models.evaluate_layouts import transformer_outcomes
from models.packing import field_names
from models.transformer_point import Constants
from pipeline.calibrate import PRESET, Calibration, as_text, calibrate, load_preset, scores
from pipeline.calibrate_fit import Problem, fit, folds, packed
from pipeline.calibrate_priors import MEMORY_PRIORS, TIME_PRIORS, source_group
from pipeline.calibrate_write import Fitted, number_text, with_constants, write_constants
from pipeline.errors import UserError
from pipeline.physics_calibrated import constants_bundle
from pipeline.runs import Runs, read_runs

FOUND_AGAIN = 1e-3  # priors so wide that they do not pull


def some_runs(families: tuple[str, ...], every: int = 1) -> Runs:
    runs = read_runs()
    mask = runs.about["family"].is_in(list(families)).to_numpy()
    chosen = np.flatnonzero(mask)[::every]
    columns = {name: values[chosen] for name, values in runs.columns.items()}
    return replace(runs, columns=columns, about=runs.about[chosen.tolist()])


@pytest.fixture(scope="module")
def small() -> Calibration:
    families = ("mpt_h100_sxm", "dgxc_llama3_70b", "torchtitan_dec24", "bloom_tuning_pp")
    return calibrate(some_runs(families, every=2), load_preset().constants)


def test_known_constants_are_found_again() -> None:
    runs = some_runs(("vtrain_39.1", "nemo2407_llama"))
    truth = {**load_preset().constants, "sustained_matmul_fraction": 0.8, "scale_out_achieved_fraction": 0.6}
    points = packed(runs.columns)
    names = ("sustained_matmul_fraction", "scale_out_achieved_fraction")
    problem = Problem(
        points=points,
        measured=transformer_outcomes(points, constants_bundle(truth))["step_time_s"],
        families=runs.about["family"].to_numpy().astype(np.str_),
        is_used=np.ones(points.shape[1], dtype=bool),
        constants=truth,
        priors={name: replace(TIME_PRIORS[name], log_sigma=20.0) for name in names},
    )
    found = problem.values(fit(problem, problem.is_used, iterations=12))
    for name in names:
        assert found[name] == pytest.approx(truth[name], rel=FOUND_AGAIN)


def test_slopes_are_those_of_the_model() -> None:
    runs = some_runs(("mpt_h100_sxm",), every=6)
    problem = Problem(
        points=packed(runs.columns),
        measured=np.ones(runs.about.height),
        families=runs.about["family"].to_numpy().astype(np.str_),
        is_used=np.ones(runs.about.height, dtype=bool),
        constants=load_preset().constants,
        priors={"sustained_matmul_fraction": TIME_PRIORS["sustained_matmul_fraction"]},
    )
    slope = problem.slopes(np.zeros(1))[:, 0]
    assert ((slope < -0.2) & (slope > -1.0)).all()  # a step is mostly matmul: -1 times its share


def test_weights_keep_large_families_from_drowning_small_ones() -> None:
    problem = Problem(
        points=np.zeros((1, 5)),
        measured=np.ones(5),
        families=np.array(["a", "a", "a", "a", "b"]),
        is_used=np.ones(5, dtype=bool),
        constants={},
        priors={},
    )
    assert problem.weights(np.ones(5, dtype=bool)).tolist() == [0.5, 0.5, 0.5, 0.5, 1.0]
    assert problem.weights(np.array([True, False, False, False, False])).tolist() == [1.0, 0, 0, 0, 0]


def test_folds_predict_each_group_without_it() -> None:
    groups = np.array(["a", "b", "a"])
    seen: list[list[bool]] = []

    def refit(mask: np.ndarray) -> np.ndarray:
        seen.append(mask.tolist())
        return np.array([float(len(seen))])

    predicted, fitted = folds(groups, refit, lambda offsets: np.repeat(offsets, 3))
    assert seen == [[False, True, False], [True, False, True]]
    assert predicted.tolist() == [1.0, 2.0, 1.0]
    assert len(fitted) == 2


def test_small_table_calibrates_and_says_so(small: Calibration) -> None:
    assert set(small.fitted) == {*TIME_PRIORS, *MEMORY_PRIORS}
    for name, each in small.fitted.items():
        prior = {**TIME_PRIORS, **MEMORY_PRIORS}[name]
        assert prior.low * 0.999 <= each.low <= each.value <= each.high <= prior.high * 1.001, name
    text = as_text(small)
    assert "family out" in text and "source out" in text and "peak memory" in text
    rows = {(row["test"], row["group"]): row for row in scores(small)}
    assert float(str(rows["in sample", "dense_16bit"]["median_abs_error"])) <= 0.08


def test_calibration_is_deterministic() -> None:
    runs = some_runs(("dgxc_llama3_70b", "megatron_readme"))
    first, second = (calibrate(runs, load_preset().constants) for _ in range(2))
    assert first.fitted == second.fitted


def test_one_family_is_too_few() -> None:
    with pytest.raises(UserError, match="fewer than 2 families"):
        calibrate(some_runs(("mpt_h100_sxm",), every=10), load_preset().constants)


def test_few_constants_each_with_a_prior_and_a_reason() -> None:
    priors = {**TIME_PRIORS, **MEMORY_PRIORS}
    assert len(priors) <= 15
    assert set(priors) <= set(field_names(Constants))
    for each in priors.values():
        assert each.low < each.centre < each.high or each.low <= each.centre <= each.high
        assert each.log_sigma > 0 and each.why


def test_committed_constants_lie_in_their_ranges() -> None:
    text = PRESET.read_text()
    for name, prior in {**TIME_PRIORS, **MEMORY_PRIORS}.items():
        value = load_preset().constants[name]
        assert prior.low <= value <= prior.high
        assert f"  {name}: {{ref: flopscape_calibration" in text


def test_sources_group_families_of_one_author() -> None:
    assert source_group("mpt_h100_sxm") == source_group("mpt_a100_sxm_40gb") == "mpt"
    assert source_group("korthikanti") == "korthikanti"


def test_only_numbers_of_the_file_change(tmp_path: Path) -> None:
    fitted = {
        "host_layer_s": Fitted(value=1.234567e-5, low=1e-5, high=2e-5, note="fitted on 3 step times of 2 families")
    }
    target = tmp_path / "new" / "calibrated.yaml"
    write_constants(PRESET, target, fitted)
    before, after = PRESET.read_text().splitlines(), target.read_text().splitlines()
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == 2
    assert changed[0] == "host_layer_s: 1.23457e-05"
    assert 'low: 1.0e-05, high: 2.0e-05, note: "fitted on 3 step times of 2 families"' in changed[1]
    assert load_preset(target).constants["host_layer_s"] == 1.23457e-05


def test_a_file_without_the_constant_is_refused() -> None:
    with pytest.raises(UserError, match="host_layer_s"):
        with_constants("name: x\n", {"host_layer_s": Fitted(value=1, low=1, high=1, note="")}, "x.yaml")


@pytest.mark.parametrize(
    ("value", "text"), [(0.5, "0.5"), (2563250000.0, "2.56325e+09"), (1e-5, "1.0e-05"), (12.149135, "12.1491")]
)
def test_numbers_read_back(value: float, text: str) -> None:
    assert number_text(value) == text


def test_timed_and_memory_frames(small: Calibration) -> None:
    assert small.about["measured_step_s"].null_count() == 0
    assert isinstance(small.memory, pl.DataFrame) and small.memory.height > 10
