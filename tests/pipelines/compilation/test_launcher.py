"""Compiled pipelines, run as Kubeflow Pipelines and Vertex run them: task by task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import darkroom
from darkroom.pipelines.config import PipelineConfig

from ...image_set import LABELS, ImageSet
from ..backend.driver import LOGS
from ..backend.release import V2_5, V2_17, Release
from ..launcher import Launcher, TaskRun, compile_spec, run_in_process

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


@pytest.fixture
def source(jpeg_set: ImageSet) -> Path:
    return jpeg_set.csv


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


def check_bytes(launcher: Launcher, source: Path, folder: Path) -> None:
    """What the tasks wrote has the bytes that this machine writes."""
    darkroom.convert(source, folder / "here")
    here = folder / "here"
    examples = find_output(launcher, "ImageToTFRecord", "examples")
    for path in (*here.glob("Split-*/*"), here / "labels.txt", here / "dataset.json"):
        assert (examples / path.relative_to(here)).read_bytes() == path.read_bytes()
    index = find_output(launcher, "ImageToTFRecord", "index")
    for path in (here / "index").glob("*.parquet"):
        assert (index / path.name).read_bytes() == path.read_bytes()


def check_green(launcher: Launcher, runs: dict[str, TaskRun]) -> None:
    failed = {name: run.log[-3000:] for name, run in runs.items() if run.state != "SUCCEEDED"}
    assert failed == {}
    uris = [each["uri"] for run in runs.values() for each in run.outputs.values()]
    assert [uri for uri in uris if not uri.startswith(f"{launcher.root}/")] == []


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
    assert (metrics["eval_records"], metrics["passed"]) == (8.0, 1.0)
    matrix = report["classification_metrics"]["metadata"]["confusionMatrix"]["struct"]
    assert [each["displayName"] for each in matrix["annotationSpecs"]] == [*LABELS]
    assert [len(row["row"]) for row in matrix["rows"]] == [3, 3, 3]
    assert sum(sum(row["row"]) for row in matrix["rows"]) == 8
    # The data has no test split, so the page is about the eval split.
    assert report["page"]["metadata"]["split"] == "eval"
    assert report["page"]["metadata"]["accuracy"] == metrics["eval_accuracy"]
    assert report["model_html"]["uri"].endswith("/model_html/model.html")
    page = find_output(launcher, "ModelReport", "model_html").read_text()
    assert page.startswith("<!")
    assert "right on the eval split" in page
    assert "small_cnn" in page  # from the ModelRun of the Trainer


def test_tasks_write_the_same_bytes_as_a_conversion(make_launcher, source: Path, tmp_path: Path):
    launcher = make_launcher(ROOTS[0], run_in_process)
    runs = launcher.run({"ManifestGen", "ImageToTFRecord"})
    assert len(runs) == 2
    check_green(launcher, runs)
    check_bytes(launcher, source, tmp_path)


# tests/e2e/test_demo.py runs the same components in a pipeline on this machine.
@pytest.mark.long
@pytest.mark.parametrize(
    ("root", "release"),
    [*zip(ROOTS, (V2_17, V2_5, V2_17), strict=True), ("a folder for a bucket", V2_17)],
    ids=["minio 2.17", "s3 2.5", "gs 2.17", "vertex"],
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
    assert sorted(runs) == sorted(TASKS)
    check_green(launcher, runs)
    check_bytes(launcher, source, tmp_path)
    check_shown(launcher, runs)
    [model] = (tmp_path / "pushed").iterdir()
    assert (model / "saved_model.pb").exists()
    pushed = runs["Pusher"].outputs["pushed_model"]["metadata"]
    assert (pushed["pushed"], pushed["pushed_destination"]) == (1.0, str(model))
    assert "Starting executor" in find_output(launcher, "ManifestGen", LOGS).read_text()
