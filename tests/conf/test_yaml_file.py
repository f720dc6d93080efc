"""The quick reader of YAML reads what OmegaConf reads, and refuses what it refuses."""

from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pipeline.catalogue import CONF_DIRECTORY, read_yaml
from pipeline.errors import UserError
from pipeline.yaml_file import load

FILES = sorted(CONF_DIRECTORY.rglob("*.yaml"))
VALUES = """
floats: [9.89e+14, 989e12, 1e3, 1.5e3, -2E-3, +1., .5, 1_000.5, .inf, -.inf, 1.e4, .5e+3]
whole: [1, 1_000, 0x10, -3, 2024]
words: [2024-01-01, 12e, e5, 1e, yes please, "1e3", 1.2.3, ~x, 1e5x]
flags: [true, false, yes, off, null, ~]
"""


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_file_is_read_as_omegaconf_reads_it(path: Path):
    # repr tells 1 from 1.0 and True, and keeps the order
    assert repr(load(path)) == repr(OmegaConf.to_container(OmegaConf.load(path), resolve=True))


def test_values_are_of_the_types_that_omegaconf_gives_them(tmp_path: Path):
    path = tmp_path / "values.yaml"
    path.write_text(VALUES)
    assert repr(load(path)) == repr(OmegaConf.to_container(OmegaConf.load(path)))


def test_interpolations_are_resolved(tmp_path: Path):
    path = tmp_path / "interpolated.yaml"
    path.write_text("a: 3\nb: ${a}\n")
    assert load(path) == {"a": 3, "b": 3}


@pytest.mark.parametrize("text", ["a: 1\nb: 2\na: 3\n", "a: {b: 1, b: 2}\n", "a: [1, 2\n", "{a: 1}: 2\n", "a: ${b}\n"])
def test_what_cannot_be_read_is_one_line_that_names_the_file(text: str, tmp_path: Path):
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match="wrong.yaml: cannot be read as YAML: .*; correct the file") as caught:
        read_yaml(path)
    assert "\n" not in str(caught.value)


def test_an_empty_file_is_an_empty_mapping(tmp_path: Path):
    path = tmp_path / "empty.yaml"
    path.write_text("# nothing\n")
    assert read_yaml(path) == {}
