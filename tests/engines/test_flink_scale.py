"""A hundred thousand images on a cluster: the same bytes, within the memory of the manifest."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..kubernetes.conftest import make_pods, read_objects
from .cluster import Cluster
from .conftest import DARKROOM, check_equal
from .pictures import write_jpegs
from .watching import Watch

pytestmark = pytest.mark.flink

IMAGES = 100_000
UNITS = {"Mi": 2**20, "Gi": 2**30}


def _read_limits() -> dict[str, int]:
    """The limits of memory in kubernetes/components/flink in bytes, by container."""
    containers = [
        container
        for pod in make_pods(read_objects("components/flink/flink.yaml"))
        for container in pod.spec["containers"]
    ]
    texts = {each["name"]: each["resources"]["limits"]["memory"] for each in containers}
    return {name: int(text[:-2]) * UNITS[text[-2:]] for name, text in texts.items()}


def test_a_hundred_thousand_images(on_flink, cluster: Cluster, tmp_path: Path):
    source = write_jpegs(tmp_path / "images", IMAGES)
    command = [*DARKROOM, "convert", str(source), "--output-dir"]
    done = subprocess.run([*command, str(tmp_path / "local")], capture_output=True)
    assert done.returncode == 0, done.stderr
    command += [str(tmp_path / "out"), *on_flink]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as client,
        Watch(lambda: {"client": client.pid, **cluster.list_processes()}) as watch,
    ):
        _, said = client.communicate()
    done = subprocess.CompletedProcess(command, client.returncode, "", said)
    check_equal(tmp_path / "out", tmp_path / "local", done)
    limits, peaks = _read_limits(), watch.peaks
    assert peaks["job manager: java"] < limits["jobmanager"]
    assert peaks["client: java"] < limits["job-server"]
    for number in (1, 2):
        assert peaks[f"task manager {number}: java"] < limits["taskmanager"]
        assert peaks[f"task manager {number}: python"] < limits["beam-workers"]
