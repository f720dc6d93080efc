"""The one exception that means: the user's input is wrong, and here is how to mend it."""


class UserError(ValueError):
    """One line that names file, key, value, rule and remedy; the command line prints it and exits with 2."""
