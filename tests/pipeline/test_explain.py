"""Explain: every number with its source, time parts that add up, as text and as JSON."""

import json

import pytest

from pipeline.errors import UserError
from pipeline.explain import main

CALIBRATED = ["hardware=h100_sxm5", "model=llama31_405b", "physics=calibrated", "run.accelerator_count=16384"]
REFERENCE = ["hardware=epoch_h100_sxm", "model=epoch_dense", "--scenario", "10"]
COMMON = ["study=reference_model", "topology=vendor"]


@pytest.mark.parametrize("overrides", [CALIBRATED, REFERENCE])
def test_every_input_has_a_source(overrides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", *overrides, *COMMON]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["is_feasible"]
    for each in result["inputs"]:
        assert each["source"]["ref"], each
        assert each["source"]["kind"], each
        assert each["meaning"], each
        assert each["from"], each
    assert 0.0 <= result["assumed_input_fraction"] < 1.0


def test_parts_of_the_step_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--json", *CALIBRATED, *COMMON])
    outcome = json.loads(capsys.readouterr().out)["outcome"]
    parts = [value for name, value in outcome.items() if name.endswith("_time_s")]
    whole = outcome["step_time_s"]
    assert sum(parts) - whole - outcome["run_time_s"] == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("overrides", [CALIBRATED, REFERENCE])
def test_text_names_what_it_rests_on(overrides: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([*overrides, *COMMON])
    text = capsys.readouterr().out
    for words in (
        "hbm_byte_per_s",
        "datasheet" if overrides is CALIBRATED else "paper",
        "of the step",
        "Layout: best of",
    ):
        assert words in text


def test_an_infeasible_point_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    main(["hardware=a100_sxm4_40", "model=llama31_405b", "physics=calibrated", "run.accelerator_count=8", *COMMON])
    assert "Infeasible: no layout fits in memory" in capsys.readouterr().out


def test_a_scenario_that_is_not_there() -> None:
    with pytest.raises(UserError, match="--scenario 999"):
        main(["--scenario", "999", *REFERENCE[:2], *COMMON])
