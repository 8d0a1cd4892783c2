"""Images that are built and run (make test-image): needs a container engine and takes minutes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ENGINE = os.environ.get("DOCKER", "docker")
# No rights beyond those of a user, and no folder to write to but temporary ones.
CONFINED = (
    "--read-only", "--network=none", "--tmpfs=/tmp", "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
)  # fmt: skip
_ROOT = Path(__file__).resolve().parents[2]


def call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def find_image(variable: str, name: str, *stage: str) -> str:
    """Returns the image that an environment variable names, or builds one (with BUILD_FLAGS)."""
    if not shutil.which(ENGINE) or call(ENGINE, "info").returncode:
        pytest.skip("no container engine runs here")
    if given := os.environ.get(variable, ""):
        return given
    subprocess.run(["make", "image", *stage, f"IMAGE={name}"], cwd=_ROOT, check=True)
    return name


def run_image(
    image: str, *arguments: str, options: tuple[str, ...] = (), user: str = "65532:65532"
) -> subprocess.CompletedProcess[str]:
    """Runs the program of an image with few rights; `options` are those of the engine."""
    return call(ENGINE, "run", "--rm", *CONFINED, f"--user={user}", *options, image, *arguments)
