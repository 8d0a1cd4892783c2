"""Overlays against the models that operators publish, in an environment of their own.

The models get an environment of their own, because kserve needs packages that do not fit the TFX
lines. kserve installs on Python 3.10 to 3.13, the models of Trainer on 3.9 and later.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CHOSEN, render_with_choices

PACKAGES = ("kserve==0.21.0", "kubeflow-trainer-api==2.3.0")
CHECK = Path(__file__).with_name("models.py")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl"),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the models; needs a package registry."""
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("chosen")
    return {
        overlay: render_with_choices(overlay, chosen, folder / overlay)
        for overlay, chosen in CHOSEN.items()
    }


def _check(python: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(python), str(CHECK)], input=text, capture_output=True, text=True, check=False
    )


def test_published_models_accept_every_overlay(python, rendered):
    kinds = {}
    for overlay, text in rendered.items():
        done = _check(python, text)
        assert done.returncode == 0, done.stderr
        kinds[overlay] = sorted(done.stdout.split())
    serving = ["InferenceService", "ServingRuntime"]
    training = ["TrainJob", "TrainJob", "TrainingRuntime"]
    assert kinds == {"gke": serving, "kfp-store": serving + training, "s3": serving}
