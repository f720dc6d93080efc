"""The one exception that means: the user's input is wrong, and here is how to mend it."""

from collections.abc import Iterable


class UserError(ValueError):
    """One line that names file, key, value, rule and remedy; the command line prints it and exits with 2."""


def closest(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Return the known names that a person may have meant: those that begin with it, that hold it, that look alike."""
    import difflib

    names = sorted(set(known))
    beginning = [each for each in names if each.startswith(name)]
    holding = [each for each in names if name in each]
    alike = difflib.get_close_matches(name, names, n=limit)
    found = [*beginning, *holding, *alike] if len(name) > 2 else alike
    return list(dict.fromkeys(found))[:limit]


def short(value: object) -> str:
    """Return a value as a line of text shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
