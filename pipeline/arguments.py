"""Arguments of a command: what is wrong with them is one line, as every other mistake is."""

import argparse
from typing import NoReturn

from pipeline.errors import UserError


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UserError, where argparse prints its usage and ends the process."""

    def error(self, message: str) -> NoReturn:
        """Refuse the arguments."""
        raise UserError(f"command line: {self.prog.removeprefix('flopscape ')}: {message}; see `{self.prog} --help`")
