"""The command line."""

from darkroom.cli.program import main

__all__ = ["main"]
