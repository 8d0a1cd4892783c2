"""`darkroom run`, whose ImageToTFRecord converts on a Flink cluster."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from .cluster import Cluster
from .conftest import DARKROOM, hash_files

pytestmark = [pytest.mark.tfx, pytest.mark.flink]


def _read_records(root: Path) -> dict[str, str]:
    """The hashes of the one dataset below the root of a pipeline."""
    (commit,) = root.rglob("examples/*/dataset.json")
    return hash_files(commit.parent)


def test_a_pipeline_converts_on_the_cluster(jpegs, on_flink, cluster: Cluster, tmp_path: Path):
    source, _ = jpegs
    names, values = on_flink[0::2], on_flink[1::2]
    options = [f"--{value}" for name, value in zip(names, values, strict=True) if "opt" in name]
    common = [*DARKROOM, "run", "--data", str(source), "--epochs", "1", "--num-shards", "4"]
    common += ["--image-size", "24x24", "--root"]
    before = len(cluster.list_jobs())
    found = [each for each in options if "job_server_jar" in each or "environment" in each]
    engine = ["--engine", "flink", "--engine-url", f"http://{cluster.address}"]
    for name, more in {
        "local": [],
        "flink": [f"--beam-arg={each}" for each in ("--runner=FlinkRunner", *options)],
        "engine": [*engine, *(f"--beam-arg={each}" for each in found)],
    }.items():
        command = [*common, str(tmp_path / name), *more]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode in (0, 1), done.stdout + done.stderr
    assert {job["state"] for job in cluster.list_jobs()[before:]} == {"FINISHED"}
    records = _read_records(tmp_path / "local")
    assert "dataset.json" in records
    assert _read_records(tmp_path / "flink") == records
    # Only ImageToTFRecord has a job there, and its machines need no TFX.
    assert _read_records(tmp_path / "engine") == records
