"""The interactive simulator: `flopscape app` serves a page on this machine alone, and needs no network."""

from pipeline.app.command import main

__all__ = ["main"]
