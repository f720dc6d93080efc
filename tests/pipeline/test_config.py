"""Composition and checks of a study: right ones come out as data, wrong ones are one line that says what to do."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.axes import read_axis
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.simulate import count

BASE = ["study=reference_model", "hardware=epoch_h100_sxm"]


def test_several_options_of_a_group_in_one_study() -> None:
    study = compose_study(["study=reference_model", "hardware=[gtx580,v100_sxm2_32,a100_sxm4_40,h100_sxm5]"])
    assert list(study.entries["hardware"]) == ["gtx580", "v100_sxm2_32", "a100_sxm4_40", "h100_sxm5"]
    assert len(build_grid(study).blocks) == 4


def test_settings_and_overrides() -> None:
    study = compose_study([*BASE, "run.limit_s=1e6", "run.accelerator_count=64", "results=/somewhere", "keep=top:3"])
    assert study.run.limit_s == 1e6
    assert study.run.accelerator_count == 64
    assert study.results == "/somewhere"
    assert study.keep == "top:3"


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("run.limt_s=3", ("run.limt_s", "unknown key", "did you mean run.limit_s")),
        ("nonsense=3", ("nonsense", "unknown key")),
        ("run.limit_s=-1", ("run.limit_s", "-1", "must be > 0")),
        ("run.limit_s=abc", ("run.limit_s", "abc", "must be a number")),
        ("run.accelerator_count=2.5", ("run.accelerator_count", "whole number")),
        ("keep=top:0", ("keep", "top:0", "top:K")),
        ("hardware=h100_smx5", ("hardware", "h100_smx5", "h100_sxm5")),
        ("study=nothing", ("study", "nothing")),
        ("hardware=[]", ("hardware", "empty")),
        ("axes.hbm_byte=[]", ("axes.hbm_byte", "empty")),
        ("axes.hbm_byte=[1e9,1e9]", ("axes.hbm_byte", "twice")),
        ("axes.hbm_byte={log: [10, 1, 3]}", ("axes.hbm_byte", "below the upper")),
        ("axes.hbm_byte={cubic: [1, 2, 3]}", ("axes.hbm_byte", "linear")),
        ("run.training_flop_minimum=1e60", ("training_flop_minimum", "empty")),
        ("axes.hbm_bite=[1e9]", ("axes.hbm_bite", "no such number", "did you mean hbm_byte")),
        ("study=gtx580", ("study=gtx580", "did you mean gtx580_vs_modern?")),
        ("hardware=h100", ("hardware=h100", "did you mean h100_pcie or h100_sxm5 or")),
        ("hardware.epoch_h100_sxm.hbm_byte=80", ("epoch_h100_sxm.yaml", "hbm_byte = 80", "GB = 1e9, in B")),
        ("hardware.epoch_h100_sxm.hbm_byte=-1", ("hardware/epoch_h100_sxm.yaml", "hbm_byte", "must be")),
        ("hardware.epoch_h100_sxm.hbm_byte=80GB", ("hardware/epoch_h100_sxm.yaml", "hbm_byte", "80GB", "number")),
        ("run.precision=fp5", ("precision", "fp5", "must be one of")),
        ("topology=[vendor", ("topology",)),
    ],
)
def test_mistakes_are_one_line(override: str, says: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        build_grid(compose_study([*BASE, override]))
    message = str(caught.value)
    assert "\n" not in message
    for words in says:
        assert words in message


def test_a_folder_of_ones_own_must_exist(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        compose_study(BASE, tmp_path / "nowhere")


def test_forms_of_an_axis() -> None:
    assert read_axis("x", 3)[1].tolist() == [3.0]
    assert read_axis("x", [1, "2**10"])[1].tolist() == [1.0, 1024.0]
    assert read_axis("x", {"log2": [1, "2**4"]})[1].tolist() == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert read_axis("x", {"linear": [1, 2, 3]})[1].tolist() == [1.0, 1.5, 2.0]
    np.testing.assert_allclose(read_axis("x", {"log": [1, 100, 3]})[1], [1.0, 10.0, 100.0], rtol=1e-12)


@given(low=st.floats(1e-3, 1e6), ratio=st.floats(1.01, 1e6), count=st.integers(2, 50))
def test_a_log_axis_has_its_ends_and_equal_ratios(low: float, ratio: float, count: int) -> None:
    values = read_axis("x", {"log": [low, low * ratio, count]})[1]
    assert values[0] == low
    assert values[-1] == low * ratio
    steps = values[1:] / values[:-1]
    np.testing.assert_allclose(steps, steps[0], rtol=1e-9)


@pytest.mark.parametrize("bad", ["x", True, -1, 0, float("nan"), float("inf"), [1, None]])
def test_an_axis_of_something_else_is_refused(bad: object) -> None:
    with pytest.raises(UserError, match="axes.x"):
        read_axis("x", bad)


@pytest.mark.parametrize("override", ["axes.peak_flop_per_s=[989]", "run.limit_s=1e-3"])
def test_a_run_that_no_countable_cluster_ends_is_refused_in_one_line(override: str) -> None:
    grid = build_grid(compose_study([*BASE, override]))
    with pytest.raises(UserError, match="in base units") as caught:
        count(grid)
    assert "\n" not in str(caught.value)


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "hardware").mkdir()
    (tmp_path / "hardware" / "mine.yaml").write_text("# @package hardware.mine\nname: [\n")
    with pytest.raises(UserError, match=r"mine.yaml: line 3, column 1: cannot be read as YAML: .*; correct the file"):
        compose_study(["hardware=[mine]"], tmp_path)
    with pytest.raises(UserError, match="did you mean mine?"):
        compose_study(["hardware=[mne]"], tmp_path)
