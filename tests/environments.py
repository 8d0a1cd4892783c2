"""Environments of tools that are tested beside darkroom's own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]


def make_environment(name: str, packages: Sequence[str], alone: Sequence[str] = ()) -> Path:
    """Returns the folder of the programs of an environment. Delete it to get newer packages.

    Args:
        name: Its name.
        packages: What it has, with what that needs.
        alone: What it has besides, without what that asks for.
    """
    folder = _ROOT / ".venv" / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    python, stamp = folder / "bin/python", folder / "complete"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [str(python), "-m", "pip", "install", "-q"]
        if uv := shutil.which("uv"):
            install = [uv, "pip", "install", "-q", "--python", str(python)]
        subprocess.run([*install, *packages], check=True, timeout=1_800)
        if alone:
            subprocess.run([*install, "--no-deps", *alone], check=True, timeout=600)
        stamp.touch()
    return folder / "bin"
