"""What stands in the fields, read: overrides, YAML, and the numbers of a sweep with the downloaded file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.app.answers import answer, redraw_seconds, study_of
from pipeline.app.callbacks import blame, read_address
from pipeline.app.configurations import (
    CONFIGURATION_LIMIT,
    Configuration,
    overrides,
    read_configuration,
    read_page,
    study_yaml,
)
from pipeline.app.fields import all_fields
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.simulate import run_unit, work_units

CUSTOM: dict[str, Any] = {
    "name": "My chip, my network",
    "numbers": {
        "hardware.hbm_byte_per_s": "2e12",
        "hardware.release_price_usd": "12345",
        "run.limit_s": "4e6",
        "run.training_flop_maximum": "3e24",
        "model.dataset_token_per_parameter": "40",
        "economics.price_date": "2025-07-01",
        "network.1.latency_s": "9e-6",
        "physics.matmul_quantum": "16",
    },
}


def read(**given: object) -> Configuration:
    return read_configuration({"name": "x", **given})


def test_page_equals_sweep_with_the_downloaded_file(tmp_path: Path) -> None:
    configuration = read_configuration(CUSTOM)
    assert not configuration.errors
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / f"{configuration.slug}.yaml").write_text(study_yaml(configuration))
    study = compose_study([f"study={configuration.slug}"], tmp_path)
    grid = build_grid(study)
    swept = [run_unit(grid, unit) for unit in work_units(grid)]
    page = answer(configuration).table
    assert len(page["scenario_id"]) > 5
    for name, values in page.items():
        np.testing.assert_array_equal(values, np.concatenate([table[name] for table in swept]), err_msg=name)


def test_sites_and_every_other_change_are_the_same_in_the_file(tmp_path: Path) -> None:
    configuration = read_configuration({**CUSTOM, "numbers": {**CUSTOM["numbers"], "sites.site_ranks": "4096"}})
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / f"{configuration.slug}.yaml").write_text(study_yaml(configuration))
    swept = compose_study([f"study={configuration.slug}"], tmp_path)
    page = compose_study(list(overrides(configuration)))
    for group in ("hardware", "topology", "model", "physics", "economics", "run", "axes", "price_dates", "keep"):
        assert swept.as_composed[group] == page.as_composed[group], group
    assert study_of(configuration).as_composed == page.as_composed


def test_custom_numbers_arrive() -> None:
    numbers = {**CUSTOM["numbers"], "sites.site_ranks": "4096"}
    block = build_grid(compose_study(list(overrides(read(numbers=numbers))))).blocks[0]
    assert block.level_count == 3
    assert block.fixed["hbm_byte_per_s"] == 2e12
    assert block.fixed["level_1_latency_s"] == 9e-6
    assert block.fixed["level_1_group_ranks"] == 512
    assert block.fixed["run_limit_s"] == 4e6


def test_every_preset_is_readable_and_composes() -> None:
    for hardware in ("gtx580", "h100_sxm5", "epoch_h100_sxm_superpod", "tpu_v4", "b200"):
        for physics in ("epoch2024", "calibrated"):
            configuration = read(hardware=hardware, physics=physics, numbers={"network.0.latency_s": "1e-6"})
            assert not configuration.errors
            assert build_grid(compose_study(list(overrides(configuration)))).size > 0


def test_named_model_is_tried_on_many_cluster_sizes() -> None:
    found = answer(read(model="llama3_70b", physics="calibrated"))
    assert len(set(found.feasible["accelerator_count"].tolist())) > 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NaN", "finite"),
        ("1e400", "finite"),
        ("-inf", "finite"),
        ("-1", "must be >="),
        ("fast", "not a number"),
        ("${oc.env:HOME}", "not a number"),
        ("1]; hydra.searchpath=[x", "not a number"),
        ("9" * (10 << 20), "longer than 40"),
    ],
)
def test_wrong_numbers_are_refused_at_their_field(text: str, said: str) -> None:
    configuration = read(numbers={"hardware.hbm_byte": text})
    assert said in configuration.errors["hardware.hbm_byte"]
    assert "hbm_byte" not in " ".join(overrides(configuration))


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a" * 200, "${oc.env:HOME}", "x\u202ey"])
def test_wrong_names_are_refused(name: str) -> None:
    configuration = read(name=name)
    assert configuration.name == "Configuration 1"
    assert "name" in configuration.errors


def test_unknown_presets_are_refused() -> None:
    configuration = read(hardware="../../etc/passwd", precision="fp1", topology="${oc.env:HOME}")
    assert set(configuration.errors) == {"hardware", "precision", "topology"}
    assert configuration.choices["hardware"] == "h100_sxm5"


@pytest.mark.parametrize("date", ["2025-13-99", "'; drop", "${oc.env:HOME}", "yesterday"])
def test_wrong_dates_are_refused(date: str) -> None:
    assert "economics.price_date" in read(numbers={"economics.price_date": date}).errors


@pytest.mark.parametrize("raw", [None, 3, "x", [], {"numbers": 3}, {"numbers": {"a": None}}, {"name": None, "id": {}}])
def test_nonsense_is_the_default_configuration(raw: object) -> None:
    assert build_grid(compose_study(list(overrides(read_configuration(raw))))).size > 0


def test_too_many_configurations_are_cut() -> None:
    assert len(read_page([{}] * 100)) == CONFIGURATION_LIMIT


@pytest.mark.parametrize("search", ["?c=%5B", "?c=3", "?c=[1]", "?c=" + "[" * 30000, "?c={}", "?c=[]"])
def test_unreadable_address_shows_the_first_visit_and_says_so(search: str) -> None:
    found, _, notice = read_address(search)
    assert [each["hardware"] for each in found] == ["gtx580", "h100_sxm5"]
    assert notice


def test_error_found_later_is_put_at_its_field() -> None:
    configuration = read(topology="gtx580_2012_a", numbers={"hardware.tdp_w": "5"})
    assert blame(configuration, UserError("hardware/h100_sxm5.yaml: tdp_w = 5: bad; correct"))[0] == "hardware.tdp_w"
    assert blame(configuration, UserError("topology: none is for it; choose"))[0] == ""
    small = read(numbers={"sites.site_ranks": "2"})
    with pytest.raises(UserError) as error:
        overrides(small)
    assert blame(small, error.value)[0] == "sites.site_ranks"


def test_batch_rule_is_one_of_its_words() -> None:
    assert "batch_rule" in overrides(read(numbers={"model.batch_rule": "fixed"}))[-1]
    assert "must be one of" in read(numbers={"model.batch_rule": "none"}).errors["model.batch_rule"]


def test_every_field_explains_itself() -> None:
    for field in all_fields(read().choices).values():
        assert field.unit and field.meaning, field.name


def test_redraw_is_quick() -> None:
    assert redraw_seconds() < 5  # half a second is the target (flopscape bench); this only catches a lost cache
