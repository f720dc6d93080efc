"""The command `flopscape`: finds the command, loads what it needs and no more, says mistakes in one line."""

import importlib
import os
import sys
import threading
from collections.abc import Sequence

from pipeline import device
from pipeline.errors import UserError

COMMANDS = {
    "plan": ("pipeline.plan", "will it fit, the best layout, how long, how much"),
    "sweep": ("pipeline.sweep", "run a study: search every scenario, write results, tables and a report"),
    "query": ("pipeline.query", "ask something of results: a named question, a .sql file or SQL"),
    "explain": ("pipeline.explain", "one point, every input with its source, the whole breakdown"),
    "evaluate": ("pipeline.evaluate_table", "a CSV or Parquet of fully specified points in, outcomes out"),
    "validate": ("pipeline.validate", "the model against measured training runs"),
    "calibrate": ("pipeline.calibrate", "fit the model's global constants on measured runs"),
    "catalogue": ("pipeline.catalogue_cli", "list, show and check chips, networks and models"),
    "app": ("pipeline.app", "the interactive simulator, in a browser"),
    "bench": ("pipeline.bench", "how fast it is on this machine"),
}
WRONG_INPUT = 2
INTERRUPTED = 130


def help_text() -> str:
    """Return what `flopscape --help` says."""
    lines = ["usage: flopscape COMMAND [arguments]   (each command has --help)", ""]
    lines += ["What it takes to train a large model: time, chips, money, on any hardware and network.", ""]
    lines += [f"  {name:<10} {what}" for name, (_, what) in COMMANDS.items()]
    return "\n".join(lines)


def version_text() -> str:
    """Return what `flopscape --version` says."""
    from importlib import metadata

    try:
        return f"flopscape {metadata.version('flopscape')}"
    except metadata.PackageNotFoundError:
        return "flopscape (not installed)"


def run_command(name: str, argv: Sequence[str]) -> int:
    """Run one command by name and return its exit code."""
    if name not in COMMANDS:
        import difflib

        close = difflib.get_close_matches(name, COMMANDS, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(COMMANDS)}"
        raise UserError(f"command line: {name}: no such command; {remedy}")
    device.prepare(next((each[len("device=") :] for each in argv if each.startswith("device=")), "auto"))
    module_name = COMMANDS[name][0]
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name:
            raise UserError(f"command line: {name}: is not part of this version; see flopscape --help") from error
        package = str(error.name).partition(".")[0]
        raise UserError(
            f"command line: {name}: needs the package {package}; install it, or flopscape with its extras"
        ) from error
    return module.main(list(argv))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (2 = wrong input, said in one line on stderr)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0 if arguments else WRONG_INPUT
    if arguments[0] == "--version":
        print(version_text())
        return 0
    try:
        return run_command(arguments[0], arguments[1:])
    except UserError as error:
        print(f"flopscape: {error}", file=sys.stderr)
        return WRONG_INPUT
    except KeyboardInterrupt:
        print(f"flopscape: interrupted; `{_resume_hint(arguments)}` goes on where it stopped", file=sys.stderr)
        if argv is None and threading.active_count() > 1:  # a thread inside a kernel cannot be ended: leave it
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader (head, less) has what it wants
        return 0


def _resume_hint(arguments: Sequence[str]) -> str:
    again = ["flopscape", *arguments]
    return " ".join([*again, "resume=true"] if arguments[0] == "sweep" and "resume=true" not in arguments else again)


if __name__ == "__main__":
    sys.exit(main())
