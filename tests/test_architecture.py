"""The shape of the code, checked: contracts hold, and a bad import would break them."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODEL_FILES = sorted((ROOT / "models").rglob("*.py"))
COMMAND_START_MODULES = ("jax", "hydra", "plotly", "pyarrow", "scipy", "dash")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import sys; sys.path.insert(0, '.'); from importlinter.cli import lint_imports_command; lint_imports_command()"
    )
    return subprocess.run([sys.executable, "-c", code, "--no-cache"], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def copied_tree(tmp_path: Path) -> Path:
    for name in ("models", "pipeline"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_import_contracts_hold_on_this_tree(copied_tree: Path):
    result = lint_imports(copied_tree)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("bad_import", ["import pipeline.errors", "import omegaconf", "import pyarrow"])
def test_one_bad_import_in_the_physics_breaks_a_contract(copied_tree: Path, bad_import: str):
    step = copied_tree / "models" / "step.py"
    step.write_text(step.read_text() + f"\n{bad_import}\n")
    result = lint_imports(copied_tree)
    assert result.returncode != 0
    assert "BROKEN" in result.stdout


@pytest.mark.parametrize("path", MODEL_FILES, ids=lambda path: path.name)
def test_physics_is_written_for_one_cluster(path: Path):
    """Only evaluate.py batches; nothing else in models/effects or step.py has axes or added dimensions."""
    if path.parent.name == "effects" or path.name in ("step.py", "point.py", "outcome.py"):
        assert not re.search(r"\baxis=|\[:, None\]|\[None, :\]|\bvmap\(", path.read_text())


def test_no_test_folder_is_a_package():
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_commands_that_need_no_physics_start_without_it(argument: str):
    code = (
        "import sys; from pipeline.cli import main\n"
        f"try: main([{argument!r}])\n"
        "except SystemExit: pass\n"
        f"print('loaded:', *sorted(set({COMMAND_START_MODULES!r}) & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1].strip() == "loaded:"


@pytest.mark.parametrize(
    ("start", "unneeded"),
    [
        ("from pipeline.cli import main; main(['query', '--list'])", {"jax", "duckdb", "pyarrow", "polars", "hydra"}),
        ("from pipeline.config import compose_study; compose_study([])", {"duckdb", "pyarrow", "polars", "plotly"}),
        ("import pipeline.search", {"duckdb", "pyarrow", "polars", "hydra"}),
    ],
)
def test_what_comes_later_is_loaded_later(start: str, unneeded: set[str]):
    code = f"{start}\nimport sys; print('loaded:', *sorted({unneeded!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1].strip() == "loaded:"


def test_package_lists_every_folder_of_code_and_configuration():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    moved = settings.get("package-dir", {})
    packaged = {moved.get(name, name.replace(".", "/")) for name in settings["packages"]}
    code = {str(path.parent.relative_to(ROOT)) for path in [*MODEL_FILES, *(ROOT / "pipeline").rglob("*.py")]}
    assert code | {"pipeline/queries"} <= packaged
    listed = {path for patterns in settings["data-files"].values() for each in patterns for path in ROOT.glob(each)}
    assert {path for path in (ROOT / "conf").rglob("*") if path.is_file()} <= listed
    assert ROOT / "tests" / "data" / "runs" / "published_runs.csv" in listed
