"""A chip, a network, a model and a price habit of one's own: one file each in a folder, then a run with all of them."""

from pathlib import Path

import pytest

from pipeline.catalogue import CONF_DIRECTORY
from pipeline.catalogue_cli import main
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.simulate import run_unit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a configuration folder with one entry a group, each made from one of the repository's."""
    changes = {
        "hardware": ("h100_sxm5", [("hbm_byte: 8.0e+10", "hbm_byte: 1.6e+11")]),
        "topology": ("fat_tree_4to1", [("oversubscription_ratio: 4", "oversubscription_ratio: 8")]),
        "model": ("dense", [("ff_ratio: 4", "ff_ratio: 8")]),
        "economics": ("own_time", [("fleet_utilisation_fraction: 0.9", "fleet_utilisation_fraction: 0.45")]),
    }
    for group, (entry, replacements) in changes.items():
        text = (CONF_DIRECTORY / group / f"{entry}.yaml").read_text().replace(f"{group}.{entry}\n", f"{group}.mine\n")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / group).mkdir()
        (tmp_path / group / "mine.yaml").write_text(text)
    return tmp_path


def row_of(overrides: list[str], folder: Path | None = None) -> dict:
    """Return the first row of a study near the size of GPT-4."""
    study = compose_study([*overrides, "run.training_flop_near=[2.1e25]", "run.limit_s=1.6e+07"], folder)
    table = run_unit(build_grid(study), range(1))
    return {name: values[0] for name, values in table.items()}


def test_all_four_are_taken_from_a_folder_by_name(folder: Path) -> None:
    row = row_of(["hardware=[mine]", "topology=mine", "model=mine", "economics=mine"], folder)
    assert (row["hardware"], row["topology"], row["model"]) == ("mine",) * 3
    assert row["d_ff"] == 8 * row["d_model"]
    assert row["is_feasible"]


def test_a_chip_of_ones_own_costs_what_its_twin_costs(folder: Path) -> None:
    mine = row_of(["hardware=[mine]", "topology=vendor"], folder)
    twin = row_of(["hardware=[h100_sxm5]", "topology=vendor"])
    assert mine["step_time_s"] <= twin["step_time_s"]  # twice the memory can only help
    idle = row_of(["hardware=[h100_sxm5]", "topology=vendor", "economics=mine"], folder)
    assert idle["amortised_hardware_usd"] == pytest.approx(2.0 * twin["amortised_hardware_usd"], rel=1e-12)


def test_what_is_wrong_in_the_folder_is_named(folder: Path) -> None:
    path = folder / "hardware" / "mine.yaml"
    path.write_text(path.read_text().replace("hbm_byte: 1.6e+11", "hbm_bite: 1.6e+11"))
    with pytest.raises(
        UserError, match="hardware/mine.yaml: hbm_bite = 160000000000.0: unknown key; did you mean hbm_byte?"
    ):
        row_of(["hardware=[mine]"], folder)
    with pytest.raises(UserError, match="hbm_bite"):
        main(["check", "--config-dir", str(folder)])
