"""The README is executed: its commands run in order, their outputs and its table of columns are current.

`make readme` (FLOPSCAPE_UPDATE_README=1) writes the outputs and the table instead of comparing them.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.columns import glossary_markdown

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
UPDATE = os.environ.get("FLOPSCAPE_UPDATE_README") == "1"
BLOCK = re.compile(r"```console\n(.*?)```", re.S)
COLUMNS = re.compile(r"(<!-- columns: .*? -->\n)(.*?)(<!-- /columns -->)", re.S)
SECONDS = re.compile(r"\d+\.\d s")  # what a machine takes is its own
LONG_NUMBER = re.compile(r"\d+\.\d{10,}")  # the last digits are the processor's own
SHELL = 'flopscape() { "$FLOPSCAPE_PYTHON" -m pipeline.cli "$@"; }; make() { flopscape "$@"; }\n'


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield (command, output as the README shows it) of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def comparable(output: str) -> str:
    """Return an output without what differs from machine to machine."""
    return LONG_NUMBER.sub(lambda match: f"{float(match[0]):.9g}", SECONDS.sub("N s", output))


def run(command: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLOPSCAPE_PYTHON": sys.executable}
    done = subprocess.run(
        ["bash", "-c", SHELL + command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return "\n".join(line.rstrip() for line in done.stdout.splitlines()) + "\n" if done.stdout else ""


def test_every_command_runs_and_says_what_the_readme_says(tmp_path):
    text = README.read_text()
    for block in BLOCK.findall(text):
        shown = ""
        for command, expected in commands(block):
            said = run(command, tmp_path)
            shown += f"$ {command}\n{said}"
            if not UPDATE:
                assert comparable(said) == comparable(expected), f"{command}: run `make readme`"
        text = text.replace(f"```console\n{block}```", f"```console\n{shown}```")
    if UPDATE:
        README.write_text(text)


def test_table_of_columns_is_current():
    text = README.read_text()
    table = COLUMNS.search(text)
    assert table
    if UPDATE:
        README.write_text(COLUMNS.sub(lambda match: f"{match[1]}{glossary_markdown()}\n{match[3]}", text))
    else:
        assert table[2] == f"{glossary_markdown()}\n", "run `make readme`"


@pytest.mark.parametrize("name", ["Makefile", "LICENSE", "conf/config.yaml", "models/step.py", "models/evaluate.py"])
def test_files_that_the_readme_names_exist(name):
    assert (ROOT / name).is_file()
