"""The command line: help, version, one-line mistakes, interruption, and no needless loading."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline import cli
from pipeline.errors import UserError

ROOT = Path(__file__).parent.parent.parent


def test_help_names_every_command(capsys):
    assert cli.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(f"  {name} " in said for name in cli.COMMANDS)


def test_version(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("flopscape ")


def test_nothing_asked_is_help_and_exit_code_2():
    assert cli.main([]) == 2


def test_unknown_command_is_one_line_with_the_closest(capsys):
    assert cli.main(["swep"]) == 2
    said = capsys.readouterr().err
    assert "did you mean sweep?" in said and said.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "--nonsense"], "command line: plan: unrecognized arguments: --nonsense; see `flopscape plan --help`"),
        (["sweep", "--nonsense"], "command line: --nonsense: unknown option; see `flopscape sweep --help`"),
        (["explain", "--scenario", "first"], "--scenario: invalid int value: 'first'; see `flopscape explain --help`"),
        (["evaluate"], "required: table; see `flopscape evaluate --help`"),
        (["validate", "--nonsense"], "unrecognized arguments: --nonsense; see `flopscape validate --help`"),
        (["calibrate", "more"], "unrecognized arguments: more; see `flopscape calibrate --help`"),
        (["catalogue", "shw"], "invalid choice: 'shw' (choose from"),
        (["app", "--port", "any"], "--port: invalid int value: 'any'; see `flopscape app --help`"),
    ],
)
def test_wrong_options_are_one_line_too(capsys, arguments, said):
    assert cli.main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (UserError("hardware/x.yaml: hbm_byte = -1: must be > 0; correct the value"), 2, "hardware/x.yaml: hbm_byte"),
        (KeyboardInterrupt(), 130, "`flopscape sweep study=a resume=true` goes on where it stopped"),
    ],
)
def test_mistakes_and_interruptions_are_one_line_on_stderr(monkeypatch, capsys, raised, code, said):
    def fail(argv):
        raise raised

    monkeypatch.setattr(cli.importlib, "import_module", lambda name: SimpleNamespace(main=fail))
    assert cli.main(["sweep", "study=a"]) == code
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_a_command_without_its_package_says_which(monkeypatch, capsys):
    def missing(name):
        raise ModuleNotFoundError("No module named 'dash'", name="dash")

    monkeypatch.setattr(cli.importlib, "import_module", missing)
    assert cli.main(["app"]) == 2
    assert "needs the package dash" in capsys.readouterr().err


def test_query_through_the_command_line(results_folder, capsys):
    argv = ["query", "select count(*) as n from points", "--results", str(results_folder), "--format", "csv"]
    assert cli.main(argv) == 0
    assert capsys.readouterr().out == "n\n16\n"


@pytest.mark.parametrize("argv", [["query", "--list"], ["query", "frontier", "--results", "RESULTS"]])
def test_query_needs_no_physics(results_folder, argv):
    argv = [str(results_folder) if each == "RESULTS" else each for each in argv]
    code = f"import sys; from pipeline.cli import main; main({argv!r}); assert 'jax' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m pipeline.cli query --list | head -1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "Error" not in done.stderr
