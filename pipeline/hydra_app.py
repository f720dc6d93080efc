"""`flopscape sweep` as a Hydra application, for Hydra's launchers: Slurm and others by submitit.

flopscape sweep -m study=NAME shard=1/4,2/4,3/4,4/4 hydra/launcher=submitit_slurm hydra.launcher.partition=cpu
"""

import sys
from dataclasses import replace
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from omegaconf import DictConfig, OmegaConf

from pipeline import device
from pipeline.catalogue import CONF_DIRECTORY
from pipeline.errors import UserError

SWEEPER = "hydra/sweeper=flopscape"
FOLDER = "hydra.sweep.dir=outputs/hydra"


def register() -> None:
    """Make the sweeper known also where the package is not installed but run from its checkout."""
    if "hydra_plugins.flopscape_sweeper" in sys.modules:
        return
    import hydra_plugins  # pyright: ignore[reportMissingImports]  a namespace that plugins share

    here = str(Path(__file__).parent / "hydra_plugins")
    if here not in list(hydra_plugins.__path__):
        hydra_plugins.__path__.append(here)  # type: ignore[attr-defined]
    from hydra_plugins.flopscape_sweeper import FlopscapeSweeper  # pyright: ignore[reportMissingImports]

    Plugins.instance().register(FlopscapeSweeper)


def run_composed(composed: DictConfig) -> int:
    """Carry out one run that Hydra has composed."""
    from pipeline.study_config import read_study
    from pipeline.sweep import sweep

    plain = OmegaConf.to_container(composed, resolve=True)
    assert isinstance(plain, dict)
    named = {str(key): value for key, value in plain.items()}
    subfolder = named.pop("results_subfolder", None)
    device.prepare(str(named.get("device") or "auto"))
    study = read_study(named, str(HydraConfig.get().runtime.choices["economics"]))
    return sweep(replace(study, results=f"{study.results}/{subfolder}") if subfolder else study, dry_run=False)


@hydra.main(config_path=str(CONF_DIRECTORY), config_name="config", version_base="1.3")
def app(composed: DictConfig) -> int:
    """Run as Hydra's task; a person's mistake is one line and exit code 2."""
    try:
        return run_composed(composed)
    except UserError as error:
        print(f"flopscape: {error}", file=sys.stderr)
        sys.exit(2)


def launch(overrides: list[str], config_directory: Path | None) -> int:
    """Run the application with these overrides through Hydra's own command line."""
    register()
    more = ["--config-dir", str(config_directory.resolve())] if config_directory else []
    before, sys.argv = sys.argv, ["flopscape", "-m", *more, SWEEPER, FOLDER, *overrides]
    try:
        app()
    finally:
        sys.argv = before
    return 0


if __name__ == "__main__":
    register()
    app()
