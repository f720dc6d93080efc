"""From YAML files and command-line overrides to a study. Hydra ends here: what it composed is checked elsewhere."""

import re
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from pipeline.catalogue import CONF_DIRECTORY
from pipeline.errors import UserError, closest
from pipeline.study_config import GROUPS, PLAIN, SECTIONS, StudyConfig, read_study

SET_WHOLE = re.compile(r"^\+{0,2}(axes\.\w+|variants|price_dates)=")


def _one_line(error: Exception) -> str:
    text = re.sub(r"\s+", " ", str(error)).strip()
    return text[:400]


def _composition_error(error: Exception, overrides: list[str], folders: list[Path]) -> UserError:
    """Return Hydra's complaint as one line with the closest option or key."""
    text = str(error)
    option = re.search(r"Could not (?:find|load) '?([\w]+)/([\w./-]+)'?", text)
    if option:
        group, name = option.groups()
        known = sorted({each.stem for folder in folders for each in (folder / group).glob("*.yaml")})
        close = closest(name, known)
        remedy = f"did you mean {' or '.join(close)}?" if close else f"choose one of {', '.join(known)}"
        places = " or ".join(["conf/" + group + "/", *(f"{folder / group}/" for folder in folders[1:])])
        return UserError(f"command line: {group}={name}: no such option in {places}; {remedy}")
    key = re.search(r"Key '([^']+)' is not in struct|Could not override '([^']+)'", text)
    if key:
        name = next(each for each in key.groups() if each)
        known = [
            *GROUPS,
            "economics",
            *PLAIN,
            *(f"{section}.{each}" for section, names in SECTIONS.items() for each in names),
        ]
        close = closest(name, known, limit=1)
        remedy = f"did you mean {close[0]}?" if close else f"known keys: {', '.join(known)} and axes.<name>"
        return UserError(f"command line: {name}: unknown key; {remedy}")
    return UserError(f"command line: {' '.join(overrides)}: {_one_line(error)}; see `flopscape sweep --help`")


def _yaml_error(error: yaml.MarkedYAMLError) -> UserError:
    """Return what the YAML reader stumbled over as one line with file and place."""
    mark = error.problem_mark
    place = f"{mark.name}: line {mark.line + 1}, column {mark.column + 1}" if mark else "a file of the configuration"
    return UserError(f"{place}: cannot be read as YAML: {_one_line(Exception(error.problem))}; correct the file")


def compose_study(overrides: list[str], config_directory: Path | None = None) -> StudyConfig:
    """Return the checked study that the overrides describe.

    `config_directory` is a further folder with the same groups as conf/. Raises UserError in one line.
    """
    GlobalHydra.instance().clear()
    allowed = [each for each in overrides if not SET_WHOLE.match(each)]
    if config_directory is not None:
        if not config_directory.is_dir():
            raise UserError(f"command line: --config-dir {config_directory}: no such folder; name an existing folder")
        allowed = [f"hydra.searchpath=[file://{config_directory.resolve()}]", *allowed]
    folders = [CONF_DIRECTORY, *([config_directory] if config_directory else [])]
    try:
        with initialize_config_dir(config_dir=str(CONF_DIRECTORY), version_base="1.3"):
            composed = compose(config_name="config", overrides=allowed, return_hydra_config=True)
            economics = composed.hydra.runtime.choices.economics
            with open_dict(composed):
                del composed["hydra"]
            plain = OmegaConf.to_container(composed, resolve=True)
            whole = {each.partition("=")[0]: _override_value(each) for each in overrides if SET_WHOLE.match(each)}
    except (HydraException, OmegaConfBaseException) as error:
        raise _composition_error(error, overrides, folders) from error
    except yaml.MarkedYAMLError as error:
        raise _yaml_error(error) from error
    assert isinstance(plain, dict)
    for name, value in whole.items():
        section, _, axis = name.lstrip("+").partition(".")
        plain[section] = {**(plain.get(section) or {}), axis: value} if axis else value
    return read_study({str(key): value for key, value in plain.items()}, str(economics))


def _override_value(override: str) -> Any:
    """Return what an override sets; axes, variants and dates are set whole, where Hydra would merge them."""
    return OverridesParser.create().parse_override(override).value()
