"""A task whose Beam workers are elsewhere: it reads and writes the store itself."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from darkroom import storage
from darkroom.pipelines.config import PipelineConfig

from ..pipelines.launcher import (
    Launcher,
    compile_spec,
    run_in_process,
)
from ..trees import read_files
from .conftest import Proxy
from .test_flows import make_image

pytestmark = [pytest.mark.heavy, pytest.mark.tfx]

# Beam's portable runner with its service in this process: everything uses the same protocol as with
# Flink and Spark.
BEAM_ARGS = (
    "--runner=PortableRunner",
    "--job_endpoint=localhost:8099",
    "--environment_type=LOOPBACK",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [("split", "image_uri", "label")]
    for number in range(4):
        (tmp_path / f"{number}.jpg").write_bytes(make_image(number))
        rows.append((("train", "eval")[number % 2], f"{number}.jpg", "ab"[number % 3 == 0]))
    with (tmp_path / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return tmp_path / "images.csv"


def _make_launcher(source: Path, root: str, folder: Path, *beam_args: str) -> Launcher:
    config = PipelineConfig(
        data="/data/images.csv",
        root=root,
        image="example.com/darkroom:1",
        volumes={"/data": "images"},
        beam_args=beam_args,
    )
    # Job server and worker pool are in this process.
    text = json.dumps(compile_spec(config)).replace("localhost:8099", "embed")
    text = text.replace('"--environment_config=localhost:50000", ', "")
    text = text.replace(', "--environment_config=localhost:50000"', "")
    parameters = {"data": str(source)}
    return Launcher(json.loads(text), root, folder, run_in_process, parameters=parameters)


def _upload(launcher: Launcher, task: str) -> None:
    """Puts a task's outputs into the store, at the place of its bucket."""
    for output in launcher.runs[task].outputs.values():
        local = str(launcher.find_bucket_path(output["uri"]))
        remote = output["uri"].replace("minio://", "s3://")
        for name in storage.walk_files(local) if storage.is_folder(local) else ():
            storage.copy_file(f"{local}/{name}", f"{remote}/{name}")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["minio", pytest.param("s3", marks=pytest.mark.long)])
def test_uris_stay_remote_and_the_endpoint_comes_from_the_environment(
    s3: Proxy, source: Path, tmp_path: Path, scheme: str
):
    task = "photos/root/darkroom/run-1/ImageToTFRecord/5a17"
    remote = _make_launcher(source, f"{scheme}://photos/root", tmp_path / "remote", *BEAM_ARGS)
    remote.run({"ManifestGen"})
    _upload(remote, "ManifestGen")
    # A file that a failed attempt left in the store.
    for path in ("examples/Split-train/old", "index/old.parquet"):
        storage.write_bytes(f"s3://{task}/{path}", b"old")
    run = remote.run({"ImageToTFRecord"})["ImageToTFRecord"]
    assert run.code == 0
    assert run.outputs["examples"]["uri"] == f"{scheme}://{task}/examples"
    assert run.outputs["rejects"]["metadata"]["rejected"] == 0.0

    local = _make_launcher(source, "gs://photos/root", tmp_path / "local")
    local.run({"ManifestGen", "ImageToTFRecord"})
    for key in ("examples", "index", "rejects"):
        uri = f"s3://{task}/{key}"
        written = {name: storage.read_bytes(f"{uri}/{name}") for name in storage.walk_files(uri)}
        place = local.find_bucket_path(local.runs["ImageToTFRecord"].outputs[key]["uri"])
        assert written == read_files(place)
        assert not remote.find_bucket_path(run.outputs[key]["uri"]).exists()


@pytest.mark.parametrize("scheme", ["minio", pytest.param("s3", marks=pytest.mark.long)])
def test_an_input_that_remote_workers_would_not_find_is_named(
    s3: Proxy, source: Path, tmp_path: Path, capfd, scheme: str
):
    remote = _make_launcher(source, f"{scheme}://photos/root", tmp_path / "remote", *BEAM_ARGS)
    remote.run({"ManifestGen"})
    run = remote.run({"ImageToTFRecord"})["ImageToTFRecord"]  # nothing was uploaded
    assert run.code == 3
    error = json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]
    for key in ("manifest", "list_rejects"):
        assert f"{scheme}://photos/root/darkroom/run-1/ManifestGen/5a17/{key}" in error["message"]
    assert "--set cache=false" in error["hint"]


def test_on_vertex_an_input_is_looked_up_in_the_bucket(gs: Proxy, tmp_path: Path, capfd):
    config = PipelineConfig(
        data="gs://photos/images.csv", root="gs://photos/root", image="example.com/darkroom:1"
    )
    launcher = Launcher(compile_spec(config, "vertex"), config.root, tmp_path, run_in_process)
    uri = "gs://photos/root/old/report"
    kind = {"schemaTitle": "darkroom.ValidationReport"}
    report = {"uri": uri, "type": kind, "metadata": {"blessed": 1.0}}
    launcher.add_run("ImageValidator", {"report": report})
    assert launcher.run({"ValidationGate"})["ValidationGate"].code == 3
    error = json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]
    assert error["message"] == f"The store no longer has any file of the input {uri}."
    storage.write_bytes(f"{uri}/report.json", b'{"blessed": true}')
    launcher.run({"ValidationGate"})
    assert "no longer has" not in capfd.readouterr().err
