"""However a run is carried out, in one process, in several, in shards, on Ray or by Slurm: the same bytes."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import device, runner
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.execution import Execution, read_execution
from pipeline.grid import build_grid
from pipeline.runner_worker import overlapped
from pipeline.simulate import work_units
from pipeline.store import PartWriter
from pipeline.sweep_run import run_study
from tests.pipeline.command import ROOT, flopscape, part_bytes

TINY = ["hardware=epoch_h100_sxm", "model=epoch_dense", "topology=vendor", "study=reference_model"]
TINY += ["run.training_flop_maximum=3e26", "unit_scenarios=2", "keep=top:2"]


def study_in(folder: Path, *overrides: str):
    return compose_study([*TINY, f"results={folder}", *overrides])


def run(folder: Path, *overrides: str) -> int | None:
    study = study_in(folder, *overrides)
    return run_study(study, build_grid(study))


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    assert run(folder, "workers=1") == 14
    return folder


def alive(group: int) -> bool:
    """Return whether a process of a group still runs; one that has ended and waits to be collected does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = stat.read_text().rsplit(")", 1)[1].split()[:3]
        except (OSError, ValueError):  # it ended while being looked at
            continue
        if int(its_group) == group and state not in "ZX":
            return True
    return False


def is_gone(group: int) -> bool:
    """Return whether no process of a group is left, a moment after its first has ended."""
    for _ in range(40):
        if not alive(group):
            return True
        time.sleep(0.05)
    return False


def test_two_workers_write_the_same_bytes(alone, tmp_path):
    assert run(tmp_path / "two", "workers=2") == 14
    assert part_bytes(tmp_path / "two") == part_bytes(alone)


def test_shards_share_a_folder_and_the_last_completes_it(alone, tmp_path):
    folder = tmp_path / "shards"
    assert run(folder, "shard=2/3") is None
    assert not (folder / "manifest.json").read_text().count('"is_complete": true')
    assert run(folder, "shard=3/3") is None
    assert run(folder, "shard=1/3") == 14
    assert part_bytes(folder) == part_bytes(alone)


def test_a_shard_of_another_configuration_is_refused(tmp_path):
    run(tmp_path / "run", "shard=1/2")
    with pytest.raises(UserError, match=r"another configuration.*run.limit_s.*this is a shard"):
        run(tmp_path / "run", "shard=2/2", "run.limit_s=1e6")


def test_shards_split_the_units_without_rest():
    units = list(range(11))
    shares = [Execution(shard=(i, 3)).share(units) for i in (1, 2, 3)]
    assert sorted(sum(shares, [])) == units


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"shard": "0/2"}, "shard = 0/2: must be i/N"),
        ({"device": "tpu"}, "device = tpu: must be one of auto, cpu, gpu"),
        ({"workers": -1}, "workers = -1: must be a whole number"),
        ({"runner": "dask"}, "runner = dask: must be local, ray"),
    ],
)
def test_a_wrong_setting_is_one_line(setting, said):
    with pytest.raises(UserError, match=said) as caught:
        read_execution(setting)
    assert "\n" not in str(caught.value)


def test_a_small_job_stays_in_this_process_and_a_large_one_takes_every_core():
    assert runner.worker_count(0, 100, 1_000_000, "best") == 1
    assert runner.worker_count(0, 100, 10**9, "best") == min(100, len(device.available_cores()))
    assert runner.worker_count(3, 2, 10**9, "best") == 2


DYING = """
import os, signal
from pathlib import Path
from dataclasses import dataclass
from pipeline.store import PartWriter

@dataclass(frozen=True)
class DyingWriter(PartWriter):
    notes: str = ""
    deaths: int = 1

    def write_tables(self, unit, tables):
        note = Path(self.notes) / f"{unit.start}"
        if unit.start == 2 and len(list(Path(self.notes).glob("2-*"))) < self.deaths:
            (Path(self.notes) / f"2-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return PartWriter(self.url, self.identity_sha256).write_tables(unit, tables)
"""


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_that_dies_is_replaced_once_then_its_unit_is_named(tmp_path, monkeypatch, deaths):
    (tmp_path / "dying_writer.py").write_text(DYING)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    from dying_writer import DyingWriter  # pyright: ignore[reportMissingImports]

    notes = tmp_path / f"notes{deaths}"
    notes.mkdir()
    study = study_in(tmp_path / "run")
    units = work_units(build_grid(study))
    writer = DyingWriter(str(tmp_path / "run"), "x", str(notes), deaths)
    done: list[range] = []

    def carry_out() -> None:
        runner.run_local(study, units, writer, 2, lambda unit, rows: done.append(unit))

    if deaths == 1:
        carry_out()
        assert sorted(done, key=lambda unit: unit.start) == units
    else:
        with pytest.raises(UserError, match=r"work unit 000000000002-000000000004 failed twice.*signal 9.*resume=true"):
            carry_out()
    assert len(list(notes.iterdir())) == deaths


def test_what_a_worker_refuses_is_said_in_one_line(tmp_path):
    study = study_in(tmp_path)
    writer = PartWriter(str(tmp_path / "a" / "b"), "x")
    (tmp_path / "a").write_text("a file")
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        runner.run_local(study, work_units(build_grid(study)), writer, 1, lambda unit, rows: None)


@pytest.mark.parametrize("workers", [1, 2])
def test_interruption_ends_soon_says_how_to_go_on_and_leaves_nobody(tmp_path, workers):
    folder = tmp_path / "run"
    arguments = [*TINY, "axes.run_limit_s={linear: [1e6, 1e7, 400]}", f"results={folder}", f"workers={workers}"]
    process = flopscape("sweep", *arguments)
    deadline = time.monotonic() + 60
    while not list(folder.rglob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.05)
    asked = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - asked < 2.0
    assert process.returncode == 130
    assert "resume=true` goes on where it stopped" in err and err.count("\n") == 1
    assert is_gone(process.pid)


def test_a_dry_run_writes_nothing(tmp_path):
    process = flopscape("sweep", *TINY, "--dry-run", cwd=tmp_path)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "7 scenarios" in out and "work units" in out and "training_flop" in out
    assert not list(tmp_path.iterdir())


def test_computing_ahead_keeps_order_and_passes_errors_on():
    assert list(overlapped(iter(range(20)))) == list(range(20))

    def fails():
        yield 1
        raise UserError("said")

    with pytest.raises(UserError, match="said"):
        list(overlapped(fails()))


@pytest.mark.skipif(device.has_gpu(), reason="a GPU is there")
def test_a_gpu_that_is_not_there_is_one_line():
    with pytest.raises(UserError, match="device = gpu: JAX finds no GPU here"):
        device.settled("gpu")
    assert device.settled("auto") == "cpu"


@pytest.mark.skipif(not device.has_gpu(), reason="no GPU here")
def test_a_gpu_gives_the_same_answers(alone, tmp_path):
    import polars as pl

    process = flopscape("sweep", *TINY, f"results={tmp_path / 'gpu'}", "device=gpu")
    assert process.wait() == 0
    one, other = (pl.read_parquet(folder / "points/**/*.parquet") for folder in (alone, tmp_path / "gpu"))
    for name in one.columns:
        if one[name].dtype == pl.Float64:
            assert ((one[name] - other[name]).abs() <= 1e-9 * one[name].abs()).all()


def test_two_ray_workers_write_the_same_bytes(alone, tmp_path):
    pytest.importorskip("ray", reason="Ray is an extra: pip install flopscape[ray]")
    process = flopscape("sweep", *TINY, f"results={tmp_path / 'ray'}", "runner=ray", "workers=2")
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    assert part_bytes(tmp_path / "ray") == part_bytes(alone)


def test_a_ray_cluster_that_is_not_there_is_one_line(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is an extra: pip install flopscape[ray]")

    def unreachable(**_: object) -> None:
        raise ConnectionError("connection\ntimeout")

    monkeypatch.setattr(ray, "init", unreachable)
    with pytest.raises(
        UserError, match="runner = ray://nowhere:1: no cluster at ray://nowhere:1: connection timeout; start"
    ):
        run(tmp_path / "ray", "runner=ray://nowhere:1")


def test_submitit_runs_shards_as_jobs(alone, tmp_path):
    pytest.importorskip("hydra_plugins.hydra_submitit_launcher", reason="an extra: pip install flopscape[slurm]")
    folder = tmp_path / "shards"
    arguments = [*TINY[:-1], "keep=top\\:2", f"results={folder}", "shard=1/2,2/2", "hydra/launcher=submitit_local"]
    process = flopscape("sweep", "-m", *arguments, cwd=tmp_path)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, out + err
    assert part_bytes(folder) == part_bytes(alone)


def test_an_object_store_gets_the_same_bytes(alone, monkeypatch):
    server = pytest.importorskip("moto.server", reason="moto is for tests of object stores")
    boto3 = pytest.importorskip("boto3")
    for name, value in (("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret"), ("AWS_REGION", "us-east-1")):
        monkeypatch.setenv(name, value)
    local = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    local.start()
    try:
        host, port = local.get_host_and_port()
        client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        client.create_bucket(Bucket="flopscape")
        url = f"s3://flopscape/run?scheme=http&endpoint_override={host}:{port}"
        study = replace(study_in(Path("unused")), results=url)
        assert run_study(study, build_grid(study)) == 14
        for name, content in part_bytes(alone).items():
            assert client.get_object(Bucket="flopscape", Key=f"run/{name}")["Body"].read() == content
    finally:
        local.stop()
