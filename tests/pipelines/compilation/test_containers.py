"""A compiled pipeline in containers: one of the image for each task, as on a cluster.

Needs a container engine and the image that DARKROOM_IMAGE names (make image):
docs/guides/container.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.pipelines.config import PipelineConfig

from ..launcher import Launcher, compile_spec
from .test_launcher import ROOTS, TASKS, find_output

ENGINE = os.environ.get("DOCKER", "docker")
# Who started the tests can read and delete what the containers write, and is not root in them.
USER = os.getuid() or 65532
RunCommand = Callable[[list[str], dict[str, str], Path], int]

pytestmark = [pytest.mark.tfx, pytest.mark.long]


@pytest.fixture(scope="module")
def image() -> str:
    name = os.environ.get("DARKROOM_IMAGE", "")
    found = shutil.which(ENGINE) and subprocess.run(
        [ENGINE, "image", "inspect", name], capture_output=True, check=False
    )
    if not name or not found or found.returncode:
        pytest.skip("DARKROOM_IMAGE names no image that an engine here has")
    return name


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with a folder of 30 images for each of two labels."""
    rng = np.random.default_rng(5)
    for number in range(60):
        light = number % 2
        path = tmp_path / "source" / ("dark", "light")[light] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(128 * light, 128 * light + 128, (12, 10, 3), np.uint8)
        Image.fromarray(pixels).save(path)
    return tmp_path / "source"


@pytest.fixture
def pushed(tmp_path: Path) -> Path:
    (tmp_path / "pushed").mkdir()
    (tmp_path / "pushed").chmod(0o777)
    return tmp_path / "pushed"


@pytest.fixture
def run_in_container(image: str, source: Path, pushed: Path) -> RunCommand:
    """Runs a task's command in a container, with KFP's folders where KFP's launcher has them."""

    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        mounts = Path(environment["DARKROOM_MOUNTS"])
        for path in (mounts, *mounts.rglob("*")):
            os.chown(path, USER, -1)
        folders = [each.name for each in mounts.iterdir()]
        start = [
            *(ENGINE, "run", "--rm", "--read-only", "--network=none", "--cap-drop=ALL"),
            *("--security-opt=no-new-privileges", "--tmpfs=/tmp", f"--user={USER}"),
            *(f"--volume={mounts / folder}:/{folder}" for folder in folders),
            *(f"--volume={source}:{source}:ro", f"--volume={pushed}:{pushed}"),
            *(f"--entrypoint={command[0]}", image),
        ]
        inside = [part.replace(f"{mounts}/", "/") for part in command[1:]]
        with log.open("wb") as file:
            done = subprocess.run([*start, *inside], stdout=file, stderr=file, check=False)
        return done.returncode

    return run


def test_each_task_runs_in_its_own_container(
    tmp_path: Path, source: Path, pushed: Path, run_in_container: RunCommand
):
    root = ROOTS[0]
    config = PipelineConfig(
        data="/data/images",
        root=root,
        push_to="/data/pushed",
        image="example.com/darkroom:1",
        volumes={"/data": "images"},
        image_size=(16, 16),
        augment="none",
        epochs=1,
    )
    parameters = {"data": str(source), "push_to": str(pushed)}
    launcher = Launcher(compile_spec(config), root, tmp_path / "kfp", run_in_container, parameters)
    runs = launcher.run()
    failed = {name: run.log[-3000:] for name, run in runs.items() if run.state != "SUCCEEDED"}
    assert failed == {}
    assert sorted(runs) == sorted(TASKS)
    examples = find_output(launcher, "ImageToTFRecord", "examples")
    assert (examples / "dataset.json").exists()
    assert find_output(launcher, "ImageValidator", "validation_html").read_text().startswith("<!")
    assert [*pushed.glob("*/saved_model.pb")]
