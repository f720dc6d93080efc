"""Every option of every group composes, alone and all together, and lands where its file says."""

from pathlib import Path

import pytest

from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.config import compose_study
from pipeline.grid import build_grid

GROUPS = ("hardware", "topology", "model", "physics")
RESERVED = ("_global_", "_group_", "_name_", "_here_")  # words that Hydra replaces inside a package


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF_DIRECTORY / group).glob("*.yaml"))


@pytest.mark.parametrize("group", GROUPS)
def test_all_options_of_a_group_in_one_study(group: str) -> None:
    study = compose_study(["study=reference_model", f"{group}=[{','.join(options(group))}]"])
    assert sorted(study.entries[group]) == options(group)


@pytest.mark.parametrize("group", GROUPS)
def test_names_are_no_words_of_hydra(group: str) -> None:
    for name in options(group):
        assert not any(word in f".{name}." for word in RESERVED), name


@pytest.mark.parametrize("path", sorted((CONF_DIRECTORY / "hardware").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_chip_makes_a_grid(path: Path) -> None:
    grid = build_grid(compose_study(["study=reference_model", f"hardware={path.stem}"]))
    assert grid.blocks[0].hardware == path.stem
    assert grid.size > 0


def test_every_network_makes_a_grid() -> None:
    names = ",".join(options("topology"))
    grid = build_grid(compose_study(["study=reference_model", "hardware=[h100_sxm5,gtx580]", f"topology=[{names}]"]))
    assert {block.topology for block in grid.blocks} == set(options("topology"))


def test_every_model_with_a_shape_makes_a_grid() -> None:
    shapes = [
        name for name in options("model") if read_yaml(CONF_DIRECTORY / "model" / f"{name}.yaml")["kind"] == "shape"
    ]
    study = ["study=reference_model", "physics=calibrated", "topology=vendor", "hardware=h100_sxm5"]
    grid = build_grid(compose_study([*study, f"model=[{','.join(shapes)}]"]))
    assert len(grid.blocks) == len(shapes)
