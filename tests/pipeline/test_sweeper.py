"""Hydra's sweep syntax becomes few vectorised runs: lists of entries, axes, and only then several runs."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.catalogue import CONF_DIRECTORY
from pipeline.config import compose_study
from pipeline.errors import UserError
from pipeline.grid import build_grid
from pipeline.hydra_app import register
from pipeline.multirun import folder_of, group_options, lower
from pipeline.simulate import work_units

ROOT = Path(__file__).parent.parent.parent
OPTIONS = group_options(None)
SMALL = ["hardware=epoch_h100_sxm,epoch_v100_sxm", "model=epoch_dense", "topology=vendor", "study=reference_model"]
SMALL += ["run.training_flop_maximum=1e25"]


@pytest.mark.parametrize(
    ("given", "runs"),
    [
        (["hardware=h100_sxm5,b200"], [["hardware=[h100_sxm5,b200]"]]),
        (["topology=glob(tpu_v5*)"], [["topology=[tpu_v5e_pod,tpu_v5p_pod]"]]),
        (["run.limit_s=1e6,2e6"], [["++axes.run_limit_s=[1000000.0,2000000.0]"]]),
        (["axes.hbm_byte_ratio=range(1,4)"], [["++axes.hbm_byte_ratio=[1,2,3]"]]),
        (["keep=best,all"], [["keep=best"], ["keep=all"]]),
        (["hardware=h100_sxm5"], [["hardware=h100_sxm5"]]),
        (["hardware=[h100_sxm5],[b200]"], [["hardware=[h100_sxm5]"], ["hardware=[b200]"]]),
        (["axes.hbm_byte={log: [1e9, 1e12, 4]}"], [["++axes.hbm_byte={log: [1e9, 1e12, 4]}"]]),
    ],
)
def test_what_an_argument_is_lowered_to(given, runs):
    assert lower(given, OPTIONS) == runs


def test_a_glob_over_a_group_is_every_option_of_it():
    (run,) = lower(["topology=glob(*)"], OPTIONS)
    names = run[0].removeprefix("topology=[").removesuffix("]").split(",")
    assert names == sorted(path.stem for path in (CONF_DIRECTORY / "topology").glob("*.yaml"))


def test_runs_get_folders_by_what_differs_and_shards_share_one():
    runs = lower(["hardware=h100_sxm5", "keep=best,all", "shard=1/2,2/2"], OPTIONS)
    assert [folder_of(run, runs) for run in runs] == ["keep=best", "keep=best", "keep=all", "keep=all"]


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("hardware=glob(nothing*)", "no option of hardware"),
        ("keep=some", "keep = .some.: must be best"),
        ("a=[", "a=\\["),
    ],
)
def test_mistakes_are_one_line(argument, said):
    with pytest.raises(UserError, match=said) as caught:
        for run in lower([argument], OPTIONS):
            compose_study(run)
    assert "\n" not in str(caught.value)


def test_a_hundred_million_points_compose_in_a_second():
    axes = ["axes.accelerator_count={log2: [1, 2**24]}", "axes.hbm_byte_ratio={linear: [0.5, 2, 1000]}"]
    axes += ["axes.run_limit_s={linear: [1e6, 1e7, 20]}"]
    started = time.process_time()
    (run,) = lower(["hardware=h100_sxm5,b200", "topology=glob(dgx_*)", *axes], OPTIONS)
    grid = build_grid(compose_study(run))
    assert time.process_time() - started < 1.0
    assert grid.size > 100_000_000
    assert len(work_units(grid)) < 20_000


def flopscape(*argv: str, folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(argv, env=environment, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_multirun_of_the_command_is_one_run(tmp_path):
    said = flopscape(sys.executable, "-m", "pipeline.cli", "sweep", "-m", *SMALL, "results=out", folder=tmp_path)
    assert said.count("candidate layouts") == 1
    chips = sorted(path.name for path in (tmp_path / "out/points").iterdir())
    assert chips == ["hardware=epoch_h100_sxm", "hardware=epoch_v100_sxm"]


def test_as_a_plugin_hydra_launches_each_run(tmp_path):
    argv = ["-m", "hydra/sweeper=flopscape", "hydra.sweep.dir=jobs", *SMALL, "keep=best,pareto", "results=out"]
    said = flopscape(sys.executable, "-m", "pipeline.hydra_app", *argv, folder=tmp_path)
    assert said.count("candidate layouts") == 2
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["keep=best", "keep=pareto"]


def test_hydra_knows_the_sweeper():
    from hydra.core.plugins import Plugins
    from hydra.plugins.sweeper import Sweeper

    register()
    assert "FlopscapeSweeper" in {each.__name__ for each in Plugins.instance().discover(Sweeper)}
