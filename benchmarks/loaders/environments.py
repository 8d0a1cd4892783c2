"""Virtual environments for tools that cannot be installed beside darkroom."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def make_environment(requirements: Path, folder: Path, base: str | Path = sys.executable) -> Path:
    """Returns the interpreter of a tool's environment, made with uv, or else venv and pip.

    Args:
        requirements: The file that pins the tool's packages; its name is the environment's.
        folder: Where environments are; one that has exactly these packages is used as it is.
        base: The interpreter that it is made for.

    Raises:
        subprocess.CalledProcessError: The packages could not be installed.
    """
    environment = folder / requirements.stem
    python, stamp = environment / "bin" / "python", environment / "installed.txt"
    if stamp.exists() and stamp.read_text() == requirements.read_text():
        return python
    shutil.rmtree(environment, ignore_errors=True)
    uv = shutil.which("uv")
    if uv:
        make = [uv, "venv", "-q", "--no-project", "--python", base, environment]
        install = [uv, "pip", "install", "-q", "--python", python, "--compile-bytecode"]
    else:
        make = [base, "-m", "venv", environment]
        install = [python, "-m", "pip", "install", "-q"]
    subprocess.run(make, check=True)
    subprocess.run([*install, "-r", requirements], check=True)
    stamp.write_text(requirements.read_text())
    return python
