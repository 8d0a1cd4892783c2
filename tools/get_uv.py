"""Installs the uv that constraints/uv.txt locks into a folder, with the means of this Python.

    python get_uv.py .venv/uv

pip installs it, or the pip that ensurepip puts into a virtual environment. The python3 of Debian
and Ubuntu has neither: there apt fetches the package of pip. pip checks the hashes of the lock file
and follows its own settings. Needs Python 3.8 or newer, and only its standard library. Prints one
sentence and exits with 1 when no way works.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "constraints" / "uv.txt"


class UvError(Exception):
    """uv cannot be installed in this way."""


def install_uv(folder: Path) -> None:
    """Installs the locked uv as `bin/uv` in the folder, which appears only when it is complete.

    Raises:
        UvError: No way works.
    """
    folder = folder.absolute()  # apt reads relative paths as its own
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="uv-", dir=folder.parent) as scratch:
        part = Path(scratch, "part")
        reasons = ["this Python has neither pip nor ensurepip"]
        for install in _list_ways(Path(scratch)):
            try:
                install(part)
                program = part / "bin" / "uv"
                program.chmod(0o755)
                _call(str(program), "--version")
                break
            except (UvError, OSError) as error:
                reasons.append(str(error))
                shutil.rmtree(part, ignore_errors=True)
        else:
            raise UvError(reasons[-1])
        part.chmod(0o755)
        try:
            part.rename(folder)
        except OSError:
            # Another set-up was faster, or left one that does not run.
            if not (folder / "bin" / "uv").exists():
                shutil.rmtree(folder, ignore_errors=True)
                part.rename(folder)


def _list_ways(scratch: Path) -> list[Callable[[Path], None]]:
    ways: list[Callable[[Path], None]] = []
    if importlib.util.find_spec("pip"):
        ways.append(lambda part: _install_with_pip(sys.executable, part))
    elif importlib.util.find_spec("ensurepip"):
        ways.append(lambda part: _install_in_venv(scratch / "venv", part))
    if shutil.which("apt-get"):
        ways.append(lambda part: _install_with_packaged_pip(scratch, part))
    return ways


def _install_in_venv(venv: Path, part: Path) -> None:
    _call(sys.executable, "-m", "venv", str(venv))
    _install_with_pip(str(venv / "bin" / "python"), part)


def _install_with_pip(python: str, part: Path, **env: str) -> None:
    _call(
        python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-input",
        "--no-deps", "--require-hashes", "--only-binary", ":all:", "--retries", "1",
        "--target", str(part), "-r", str(LOCK), **env,
    )  # fmt: skip


def _call(*command: str, folder: Path | None = None, **env: str) -> None:
    # Settings for a user's own installs contradict --target.
    env = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", **env}
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stdout.strip().splitlines() or [f"exit code {done.returncode}"]
        errors = [line for line in lines if line.startswith(("E: ", "ERROR: "))]
        said = errors[0].partition(": ")[2] if errors else lines[-1]
        raise UvError(f"{Path(command[0]).name}: {said}")


def _install_with_packaged_pip(scratch: Path, part: Path) -> None:
    """Unpacks pip from Debian's package, which apt fetches for any user and does not install."""
    lists, cache, package, pip = (scratch / name for name in ("lists", "cache", "package", "pip"))
    for folder in (lists / "partial", cache / "archives" / "partial", package):
        folder.mkdir(parents=True)
    # The system's own lists may be missing or old, and only root may update them.
    options = (f"Dir::State::Lists={lists}", f"Dir::Cache={cache}", "APT::Update::Error-Mode=any")
    apt = ("apt-get", "-qq", *(word for option in options for word in ("-o", option)))
    _call(*apt, "update")
    _call(*apt, "download", "python3-pip-whl", folder=package)
    _call("dpkg-deb", "-x", str(next(package.glob("*.deb"))), str(package))
    for wheel in package.glob("usr/share/python-wheels/*.whl"):
        with zipfile.ZipFile(wheel) as files:
            files.extractall(pip)
    _install_with_pip(sys.executable, part, PYTHONPATH=str(pip))


if __name__ == "__main__":
    try:
        install_uv(Path(sys.argv[1]))
    except (UvError, OSError) as error:
        sys.exit(str(error))
