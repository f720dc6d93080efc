"""The command as a person starts it: a process of its own, and what it leaves in its folder."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def flopscape(*argv: str, first: str = "", **more) -> subprocess.Popen:
    """Start `flopscape argv` as the head of a group of processes; `first` is Python code that runs before it."""
    prologue = ["-c", first] if first else []
    return subprocess.Popen(
        [sys.executable, *prologue, "-m", "pipeline.cli", *argv],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **more,
    )


def part_bytes(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each part of a results folder, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("points/**/*.parquet")}
