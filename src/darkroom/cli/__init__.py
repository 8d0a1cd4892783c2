"""The command line (part: top)."""

from darkroom.cli.program import main as main
