"""Writing of fitted constants into a physics file: numbers and their ranges change, every other character stays."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import UserError

DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """One constant: its value, the range over folds, and what it was fitted on."""

    value: float
    low: float
    high: float
    note: str


def number_text(value: float) -> str:
    """Return a number as YAML reads it back: plain where short, else with an exponent and a point."""
    text = f"{value:.{DIGITS}g}"
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent}" if mark else text


def with_constants(text: str, fitted: Mapping[str, Fitted], file: str) -> str:
    """Return the text of a physics file with constants, ranges and counts of the fit replaced."""
    for name, each in fitted.items():
        pattern = rf"^{name}: .*$"
        text, count = re.subn(pattern, f"{name}: {number_text(each.value)}", text, flags=re.MULTILINE)
        source = rf"^(  {name}: \{{.*?)low: [^,]+, high: [^,]+, note: \"[^\"]*\"(.*)$"
        ends = f"low: {number_text(each.low)}, high: {number_text(each.high)}"
        replacement = rf'\g<1>{ends}, note: "{each.note}"\g<2>'
        text, sourced = re.subn(source, replacement, text, flags=re.MULTILINE)
        if (count, sourced) != (1, 1):
            raise UserError(f"{file}: {name}: must stand once among the numbers and once in sources; restore the file")
    return text


def write_constants(template: Path, target: Path, fitted: Mapping[str, Fitted]) -> None:
    """Write the template with the fitted constants to a file, whole or not at all."""
    try:
        text = with_constants(template.read_text(encoding="utf-8"), fitted, str(template))
        aside = target.with_name(f".{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        os.replace(aside, target)
    except OSError as error:
        raise UserError(f"{target}: cannot be written: {error.strerror}; name a file that can") from error
