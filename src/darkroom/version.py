"""Which darkroom this is: its version, and the folder that it was imported from."""

from pathlib import Path

__version__ = "0.1.0"

PACKAGE_FOLDER = str(Path(__file__).resolve().parent)
