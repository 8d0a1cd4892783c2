"""The command line."""

from darkroom.cli.commands import main

__all__ = ["main"]
