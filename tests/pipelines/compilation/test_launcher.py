"""Compiled pipelines, run as Kubeflow Pipelines and Vertex run them: task by task."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import darkroom
from darkroom.pipelines.config import PipelineConfig

from ...warm_python import WarmPython
from ..backend.driver import LOGS
from ..backend.recorded import read_tasks
from ..backend.release import V2_5, V2_17, Release
from ..launcher import Launcher, TaskRun, compile_spec

pytestmark = pytest.mark.tfx

ROOTS = ("minio://mlpipeline/v2/artifacts", "s3://bucket/runs", "gs://bucket/runs")
TASKS = [
    "ManifestGen",
    "ImageToTFRecord",
    "ImageStatisticsGen",
    "SchemaGen",
    "ExampleValidator",
    "ImageValidator",
    "ValidationGate",
    "Trainer",
    "Evaluator",
    "ModelReport",
    "Pusher",
]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV of 30 images of two labels: dark ones and light ones."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(5)
    rows = [("split", "image_uri", "label")]
    for number in range(30):
        light = number % 2
        pixels = rng.integers(128 * light, 128 * light + 128, (12, 10, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.jpg")
        split = "eval" if number % 5 == 4 else "train"
        rows.append((split, f"{number:02d}.jpg", ("dark", "light")[light]))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "images.csv"


@pytest.fixture
def make_launcher(source: Path, tmp_path: Path) -> Any:
    """Makes a launcher of the compiled pipeline; paths are known when it is submitted."""

    def make(root: str, *given: Any, target: str = "kubeflow", **rest: Any):
        folder = {"kubeflow": "/data", "vertex": "/gcs/bucket"}[target]
        config = PipelineConfig(
            data=f"{folder}/images.csv",
            push_to=f"{folder}/pushed",
            root=root if target == "kubeflow" else ROOTS[2],
            image="example.com/darkroom:1",
            volumes={"/data": "images"} if target == "kubeflow" else {},
            image_size=(16, 16),
            augment="none",
        )
        parameters = {"data": str(source), "push_to": str(tmp_path / "pushed"), "epochs": 1}
        spec = compile_spec(config, target)
        return Launcher(spec, root, tmp_path / "cluster", *given, parameters=parameters, **rest)

    return make


def find_output(launcher: Launcher, task: str, key: str) -> Path:
    return launcher.find_bucket_path(launcher.runs[task].outputs[key]["uri"])


def check_green(launcher: Launcher, runs: dict[str, TaskRun], source: Path, folder: Path) -> None:
    failed = {name: run.log[-3000:] for name, run in runs.items() if run.state != "SUCCEEDED"}
    assert failed == {}
    assert sorted(runs) == sorted(TASKS)
    uris = [each["uri"] for run in runs.values() for each in run.outputs.values()]
    assert [uri for uri in uris if not uri.startswith(f"{launcher.root}/")] == []
    # The same bytes as on this machine.
    darkroom.convert(source, folder / "here")
    examples = find_output(launcher, "ImageToTFRecord", "examples")
    for path in (*(folder / "here").glob("Split-*/*"), folder / "here/dataset.json"):
        assert (examples / path.relative_to(folder / "here")).read_bytes() == path.read_bytes()


# What has changed since that run was recorded.
_RENAMED = {
    "ManifestGen.rejects": "ManifestGen.list_rejects",
    "ImageValidator.html": "ImageValidator.validation_html",
    "ModelReport.html": "ModelReport.model_html",
}
_SHOWN = (
    "ImageValidator.validation_html",
    "ModelReport.model_html",
    "ModelReport.metrics",
    "ModelReport.classification_metrics",
)


def check_recorded(runs: dict[str, TaskRun]) -> None:
    """The tasks say as much of their outputs as those of a run on Kubeflow did."""

    def describe(properties: dict[str, Any]) -> dict[str, str]:
        kinds = {str: "text", dict: "struct"}
        return {key: kinds.get(type(each), "number") for key, each in properties.items()}

    found = {
        f"{name}.{key}": describe(each["metadata"])
        for name, run in runs.items()
        for key, each in run.outputs.items()
    }
    recorded = read_tasks("tfx", V2_17).artifacts
    expected = {
        _RENAMED.get(name, name): describe(each["properties"]) for name, each in recorded.items()
    }
    del expected["ImageValidator.markdown"], expected["ModelReport.markdown"]
    for name in _SHOWN:
        del expected[name]["tfx_version"]
    metrics = expected["ModelReport.metrics"]
    for name in ("example_count", "sparse_categorical_accuracy"):
        del metrics[name]
    metrics["passed"] = "number"
    expected["Evaluator.evaluation"]["split"] = "text"
    expected["ModelReport.page"]["score"] = "number"
    known = {"labels": "number", "eval_accuracy": "number"}
    for name in ("Trainer.model", "Trainer.model_run"):
        expected[name] |= {**known, "sha256": "text", "dataset_fingerprint": "text"}
    assert found == expected


def check_shown(launcher: Launcher, runs: dict[str, TaskRun]) -> None:
    """What KFP's UI shows is there in the form that it reads."""
    outputs = runs["ImageValidator"].outputs
    assert outputs["validation_html"]["uri"].endswith("/validation_html/report.html")
    assert find_output(launcher, "ImageValidator", "validation_html").read_text().startswith("<!")
    assert outputs["report"]["metadata"]["blessed"] == 1.0
    report = runs["ModelReport"].outputs
    titles = {key: each["type"].get("schemaTitle") for key, each in report.items() if key != LOGS}
    assert titles["metrics"] == "system.Metrics"
    assert titles["classification_metrics"] == "system.ClassificationMetrics"
    metrics = report["metrics"]["metadata"]
    assert (metrics["eval_records"], metrics["passed"]) == (6.0, 1.0)
    matrix = report["classification_metrics"]["metadata"]["confusionMatrix"]["struct"]
    assert matrix["annotationSpecs"] == [{"displayName": "dark"}, {"displayName": "light"}]
    assert [len(row["row"]) for row in matrix["rows"]] == [2, 2]
    assert sum(sum(row["row"]) for row in matrix["rows"]) == 6
    # The data has no test split, so the page is about the eval split.
    assert report["page"]["metadata"]["split"] == "eval"
    assert report["page"]["metadata"]["accuracy"] == metrics["eval_accuracy"]
    assert report["model_html"]["uri"].endswith("/model_html/model.html")
    page = find_output(launcher, "ModelReport", "model_html").read_text()
    assert page.startswith("<!")
    assert "right on the eval split" in page
    assert "small_cnn" in page  # from the ModelRun of the Trainer


@pytest.mark.slow
def test_all_tasks_succeed_and_write_the_same_bytes_as_a_conversion(
    make_launcher, source: Path, tmp_path: Path, warm_python: WarmPython
):
    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        assert command[:3] == ["python", "-m", "darkroom.components.entrypoint"]
        with log.open("wb") as file:
            streams = {"stdout": file.fileno(), "stderr": file.fileno()}
            environment = {**os.environ, **environment}
            return warm_python.start(*command[1:], env=environment, **streams).wait()

    launcher = make_launcher(ROOTS[0], run)
    runs = launcher.run()
    check_green(launcher, runs, source, tmp_path)
    check_shown(launcher, runs)
    check_recorded(runs)
    [model] = (tmp_path / "pushed").iterdir()
    assert (model / "saved_model.pb").exists()
    pushed = runs["Pusher"].outputs["pushed_model"]["metadata"]
    assert (pushed["pushed"], pushed["pushed_destination"]) == (1.0, str(model))
    assert "Starting executor" in find_output(launcher, "ManifestGen", LOGS).read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    ("root", "release"),
    [*zip(ROOTS[1:], (V2_5, V2_17), strict=True), ("a folder for a bucket", V2_17)],
    ids=["s3 2.5", "gs 2.17", "vertex"],
)
def test_all_tasks_succeed_each_in_its_own_process(
    root: str, release: Release, make_launcher, source: Path, tmp_path: Path
):
    # TensorFlow's client of gs:// cannot be pointed at an emulator, so on Vertex, where tasks open
    # gs:// themselves, a folder stands for the bucket.
    target = "kubeflow" if "://" in root else "vertex"
    at = root if "://" in root else str(tmp_path / "bucket")
    launcher = make_launcher(at, target=target, release=release)
    runs = launcher.run()
    check_green(launcher, runs, source, tmp_path)
    check_shown(launcher, runs)
