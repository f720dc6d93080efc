"""`hydra/sweeper=flopscape`: one vectorised run for each combination that cannot be an array, however many points."""

from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from pipeline.multirun import folder_of, lower


class FlopscapeSweeper(Sweeper):
    """Lowers the sweep to few runs and hands them to the launcher, whichever it is."""

    def __init__(self) -> None:
        """Know nothing yet: Hydra calls `setup`."""
        self.hydra_context: HydraContext | None = None
        self.config: DictConfig | None = None
        self.launcher: Any = None

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Take what Hydra hands over, and the launcher that the configuration names."""
        from hydra.core.plugins import Plugins

        self.hydra_context, self.config = hydra_context, config
        self.launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Launch the runs."""
        assert self.hydra_context is not None
        runs = lower(arguments, self.hydra_context.config_loader.get_group_options)
        named = [[*run, *_results(run, runs)] for run in runs]
        return self.launcher.launch(named, initial_job_idx=0)


def _results(run: list[str], runs: list[list[str]]) -> list[str]:
    """Return the override that gives one of several runs a folder of its own."""
    name = folder_of(run, runs)
    return [f"++results_subfolder='{name}'"] if name else []


ConfigStore.instance().store(
    group="hydra/sweeper",
    name="flopscape",
    node={"_target_": f"{FlopscapeSweeper.__module__}.FlopscapeSweeper"},
    provider="flopscape",
)
