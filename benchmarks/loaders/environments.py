"""Virtual environments for loaders that cannot be installed beside darkroom."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

_FOLDER = Path(__file__).parent


def make_environment(name: str, folder: Path, base: str | Path = sys.executable) -> Path:
    """Returns the interpreter of a loader's environment, made with uv, or else venv and pip.

    Args:
        name: Name, without `.txt`, of the file in this folder that pins the loader's packages.
        folder: Where environments are; one that has exactly these packages is used as it is.
        base: The interpreter that it is made for.

    Raises:
        subprocess.CalledProcessError: The packages could not be installed.
    """
    requirements = _FOLDER / f"{name}.txt"
    environment = folder / name
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
