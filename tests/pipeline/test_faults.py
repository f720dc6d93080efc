"""Death at any moment, full disks, foreign hands: nothing lost, nothing twice, and one line that says what to do."""

import json
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pipeline.command import flopscape, part_bytes

KILLS = int(os.environ.get("FLOPSCAPE_KILLS", "50"))
WITH_WORKERS = 6  # so many of the kills hit a run of several processes
LANES = 2  # folders that are worked on at once
STUDY = ["hardware=epoch_v100_sxm", "model=epoch_dense", "topology=vendor", "study=reference_model", "unit_scenarios=1"]
STUDY += ["run.training_flop_maximum=1e25", "axes.run_limit_s={linear: [2e6, 2e7, 300]}"]


LITTLE_ROOM = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""  # the limit is set by the process itself: a function called between fork and exec could hang, with JAX's threads


def start(folder: Path, *more: str, **how) -> subprocess.Popen:
    return flopscape("sweep", *STUDY, f"results={folder}", *more, **how)


def finish(folder: Path, *more: str, **how) -> tuple[int, str]:
    process = start(folder, *more, **how)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults") / "run"
    code, err = finish(folder)
    assert code == 0, err
    return folder


def kill_at_random(folder: Path, moments: random.Random, *more: str) -> None:
    """Start the run, let it do something, and kill it with all its processes."""
    log = folder / "run.log"
    before = log.stat().st_size if log.exists() else 0
    process = start(folder, "resume=true", *more)
    while (log.stat().st_size if log.exists() else 0) == before and process.poll() is None:
        time.sleep(0.01)
    time.sleep(moments.uniform(0.2, 1.8))  # kernels are ready after some 0.7 s
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def lane(number: int, folder: Path, kills: int) -> Path:
    moments = random.Random(number)
    for each in range(kills):
        kill_at_random(folder, moments, *(["workers=2"] if each < WITH_WORKERS // LANES else []))
    code, err = finish(folder, "resume=true")
    assert code == 0, err
    return folder


def test_fifty_kills_at_random_moments_lose_nothing_and_double_nothing(uninterrupted, tmp_path):
    with ThreadPoolExecutor(LANES) as pool:
        lanes = [pool.submit(lane, number, tmp_path / f"lane{number}", KILLS // LANES) for number in range(LANES)]
    for each in lanes:
        folder = each.result()
        assert part_bytes(folder) == part_bytes(uninterrupted)
        manifest = json.loads((folder / "manifest.json").read_text())
        assert manifest["is_complete"] and manifest["resumed_count"] >= 1
        assert not list(folder.rglob("*.tmp"))


def test_a_full_disk_is_one_line_and_resuming_completes_the_run(tmp_path):
    """A limit on the size of files stands in for a disk that fills up: writing fails in the middle of a part."""
    folder = tmp_path / "run"
    everything = ["keep=all", "axes.run_limit_s=1e7"]  # later ones win
    code, err = finish(folder, *everything, first=LITTLE_ROOM)
    last = err.splitlines()[-1]
    assert code == 2 and last.startswith(f"flopscape: {folder}: ") and "run again with resume=true" in last, err
    assert "Traceback" not in err
    assert (folder / "manifest.json").exists() and not list(folder.rglob("*.tmp"))
    assert finish(folder, *everything, "resume=true")[0] == 0


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/proc/sys").exists(), reason="root may write anywhere")
def test_an_unwritable_folder_is_one_line():
    code, err = finish(Path("/proc/flopscape"))
    assert code == 2 and err.count("\n") == 1 and "/proc/flopscape" in err


def test_a_second_run_into_the_folder_is_refused_while_the_first_lives_and_not_after(tmp_path):
    folder = tmp_path / "run"
    first = start(folder)
    while not (folder / "manifest.json").exists():
        time.sleep(0.05)
    os.killpg(first.pid, signal.SIGSTOP)
    code, err = finish(folder, "resume=true")
    assert code == 2 and f"another run (process {first.pid} " in err and err.count("\n") == 1
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    assert finish(folder, "resume=true")[0] == 0


def test_torn_and_foreign_parts_and_a_changed_configuration_are_refused_by_name(uninterrupted, tmp_path):
    folder = tmp_path / "run"
    assert finish(folder)[0] == 0
    part = sorted(folder.rglob("*.parquet"))[3]
    whole = part.read_bytes()
    for content, said in ((whole[:-7], "is torn"), (whole[:-7] + b"changed", "is torn or changed")):
        part.write_bytes(content)
        code, err = finish(folder, "resume=true")
        assert code == 2 and part.name in err and said in err and err.count("\n") == 1
    part.write_bytes(whole)
    stranger = part.with_name("part-of-somebody-else.parquet")
    stranger.write_bytes(b"theirs")
    code, err = finish(folder, "resume=true")
    assert code == 2 and stranger.name in err and err.count("\n") == 1
    stranger.unlink()
    code, err = finish(folder, "resume=true", "run.precision=fp16")
    assert code == 2 and "run.precision: " in err and err.count("\n") == 1
    assert part_bytes(folder) == part_bytes(uninterrupted)
