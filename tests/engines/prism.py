"""Prism, Beam's own small engine: the real protocol on one machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

_PACKAGE = "github.com/apache/beam/sdks/v2/go/cmd/prism"


def find_missing() -> str:
    """Says what is missing to build Prism; empty if nothing is."""
    return "" if shutil.which("go") else "Prism is built with Go, and there is none: install Go."


def make_prism() -> Path:
    """Builds the Prism of the installed Beam, unless an earlier run did; returns its path."""
    beam = version("apache-beam")
    cache = Path(os.environ.get("DARKROOM_ENGINES") or "~/.cache/darkroom-engines").expanduser()
    folder = cache / f"prism-{beam}"
    if not (folder / "prism").exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["go", "install", f"{_PACKAGE}@v{beam}"]
        subprocess.run(command, env={**os.environ, "GOBIN": str(folder)}, cwd=folder, check=True)
    return folder / "prism"
