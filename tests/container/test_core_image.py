"""The small image, built or named by DARKROOM_CORE_IMAGE, and run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import darkroom
from darkroom.steps.known import STEPS

from .conftest import find_image, run_image

# docs/guides/container.md has what it is made of.
MAX_MEGABYTES = 380
MEASURE = """
import os
sizes = (os.lstat(os.path.join(d, f)).st_size for d, _, fs in os.walk("/opt/darkroom") for f in fs)
print(sum(sizes) / 1e6)
"""
LOOK = """
import importlib.util, json
names = ("tensorflow", "tfx", "kfp", "boto3", "google.cloud.storage", "apache_beam")
print(json.dumps([name for name in names if importlib.util.find_spec(name)]))
import boto3
from google.cloud import storage
for each in ("s3", "sts", "sso", "sso-oidc"):
    boto3.client(each, region_name="us-east-1")
"""

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def image() -> str:
    return find_image("DARKROOM_CORE_IMAGE", "darkroom-core:test", "STAGE=core")


def run_python(image: str, *arguments: str, folder: Path | None = None) -> str:
    mounted = (f"--volume={folder}:{folder}",) if folder else ()
    done = run_image(image, *arguments, options=("--entrypoint=python3", *mounted))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_small(image: str) -> None:
    assert 100 < float(run_python(image, "-c", MEASURE)) < MAX_MEGABYTES


def test_it_has_both_stores_and_no_tensorflow(image: str) -> None:
    assert json.loads(run_python(image, "-c", LOOK)) == [
        "boto3", "google.cloud.storage", "apache_beam"
    ]  # fmt: skip


def test_it_runs_a_component_and_writes_what_is_written_here(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for name, color in (("a", (250, 10, 10)), ("b", (10, 10, 250))):
        Image.new("RGB", (9, 7), color).save(tmp_path / f"{name}.png")
    (tmp_path / "images.csv").write_text("TRAIN,a.png,red\nVALIDATION,b.png,blue\n")
    made = tmp_path / "made"
    interface = STEPS["convert_images"]
    given = {
        "inputs": {"parameterValues": {"data": str(tmp_path / "images.csv")}},
        "outputs": {
            "artifacts": {
                each.name: {"artifacts": [{"name": each.name, "uri": str(made / each.name)}]}
                for each in interface.outputs
            },
            "parameters": {
                each.name: {"outputFile": str(made / f"{each.name}.txt")}
                for each in interface.results
            },
            "outputFile": str(made / "output.json"),
        },
    }
    task = ("-m", "darkroom.kfp.task", "convert_images", "--executor_input", json.dumps(given))
    run_python(image, *task, folder=tmp_path)
    here = darkroom.convert(tmp_path / "images.csv", tmp_path / "here")
    assert (made / "fingerprint.txt").read_text() == here.fingerprint
    for path in ("dataset.json", "Split-train/data_tfrecord-00000-of-00001"):
        assert (made / "dataset" / path).read_bytes() == (tmp_path / "here" / path).read_bytes()
