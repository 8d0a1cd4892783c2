"""Tasks of components without TFX that write large data into the store themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import darkroom
from darkroom import storage
from darkroom.dataset.commit import read_dataset

from ..kfp.tasks import Cluster
from ..trees import read_files
from .conftest import Proxy


def _source(converted_jpegs: Path) -> str:
    return str(converted_jpegs.parent / "images" / "images.csv")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch, capfd) -> Cluster:
    return Cluster(tmp_path / "cluster", monkeypatch, capfd)


def test_a_dataset_is_written_into_the_store_by_the_task(
    s3: Proxy,
    cluster: Cluster,
    converted_jpegs,
    tmp_path: Path,
):
    cluster.root = "minio://photos/v2/artifacts/images/run-1"
    done = cluster.run("convert_images", data=_source(converted_jpegs), transfer="direct")
    dataset = done.artifacts["dataset"]
    assert dataset.uri.startswith("minio://photos/")
    place = dataset.uri.replace("minio://", "s3://")
    assert done.parameters["dataset_uri"] == place
    assert not cluster.find(dataset).exists()  # nothing for the launcher to upload
    fingerprint = read_dataset(str(converted_jpegs)).fingerprint
    assert darkroom.verify(place).fingerprint == fingerprint
    # The next task gets a copy by the launcher, or reads from the store.
    for name in storage.walk_files(place):
        target = cluster.find(dataset) / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(storage.read_bytes(f"{place}/{name}"))
    copied = cluster.run("verify_dataset", {"dataset": dataset})
    assert copied.parameters == {"passed": True, "fingerprint": fingerprint}
    direct = cluster.run("validate_dataset", dataset_uri=dataset.uri)
    assert direct.parameters == {"passed": True}
    shutil.rmtree(cluster.find(dataset))


# tests/remote/test_flows.py has the same of a conversion.
@pytest.mark.long
def test_a_task_waits_for_a_store_that_is_away_at_its_beginning(
    s3: Proxy, cluster: Cluster, converted_jpegs, go_away
):
    given = {"data": _source(converted_jpegs), "output_dir": "s3://photos/made", "update": True}
    cluster.run("convert_images", **given)
    is_back = go_away("made/dataset.json")
    done = cluster.run("convert_images", **given)
    assert is_back()
    assert done.artifacts["previous"].metadata["fingerprint"] == done.parameters["fingerprint"]


def test_on_vertex_every_output_is_written_into_the_store(
    gs: Proxy,
    cluster: Cluster,
    converted_jpegs,
    tmp_path: Path,
    monkeypatch,
):
    cluster.root = "gs://photos/root/run-1"
    monkeypatch.setattr("darkroom.steps.places.find_mount", lambda _: 1 / 0)
    monkeypatch.setattr("darkroom.steps.places.MOUNTS_VARIABLE", "NOT_SET")
    done = cluster.run("convert_images", data=_source(converted_jpegs))
    place = done.artifacts["dataset"].uri
    assert done.parameters["dataset_uri"] == place
    fingerprint = read_dataset(str(converted_jpegs)).fingerprint
    assert darkroom.verify(place).fingerprint == fingerprint
    summary = storage.read_bytes(done.artifacts["summary"].uri).decode()
    assert summary.startswith("# 40 records")
    validated = cluster.run("validate_dataset", {"dataset": done.artifacts["dataset"]})
    assert validated.parameters == {"passed": True}
    page = storage.read_bytes(validated.artifacts["validation_page"].uri)
    assert page == storage.read_bytes(f"{validated.artifacts['validation_report'].uri}/report.html")
    assert read_files(tmp_path / "cluster" / "buckets") == {}
