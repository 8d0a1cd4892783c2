"""Compiled pipelines, run as Kubeflow Pipelines and Vertex run them: task by task."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_metadata.proto import metadata_store_pb2 as mlmd
from PIL import Image

from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.local.lineage import read_latest_run
from darkroom.pipelines.local.runner import run_locally
from darkroom.validation.gate import GateError

from ...warm_python import WarmPython
from ..backend.driver import LOGS
from ..backend.recorded import read_tasks
from ..backend.release import V2_5, V2_15, V2_17, Release
from ..backend.task_run import TaskRun
from ..launcher import Launcher, compile_spec, run_in_process

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
# No data set has ten million images of a class: a gate that is sure to hold.
STOP: dict[str, Any] = {"policies": {"small_classes": "fail"}, "min_class_images": 10_000_000}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV of 60 images of two labels: dark ones and light ones."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(5)
    rows = [("split", "image_uri", "label")]
    for number in range(60):
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

    def make(root: str, *given: Any, options: Any = None, target: str = "kubeflow", **rest: Any):
        folder = {"kubeflow": "/data", "vertex": "/gcs/bucket"}[target]
        config = PipelineConfig(
            data=f"{folder}/images.csv",
            push_to=f"{folder}/pushed",
            root=root if target == "kubeflow" else ROOTS[2],
            image="example.com/darkroom:1",
            volumes={"/data": "images"} if target == "kubeflow" else {},
            image_size=(16, 16),
            augment="none",
            **(options or {}),
        )
        parameters = {"data": str(source), "push_to": str(tmp_path / "pushed"), "epochs": 1}
        spec = compile_spec(config, target)
        return Launcher(spec, root, tmp_path / "cluster", *given, parameters=parameters, **rest)

    return make


@pytest.fixture(scope="module")
def local_examples(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Examples of LocalDagRunner on the same source."""
    root = tmp_path_factory.mktemp("local")
    config = PipelineConfig(data=str(source), root=str(root), **STOP)
    with pytest.raises(GateError):
        run_locally(config)
    return Path(read_latest_run(str(root), config.name)["ImageToTFRecord"].outputs["examples"])


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def find_output(launcher: Launcher, task: str, key: str) -> Path:
    return launcher.find_bucket_path(launcher.runs[task].outputs[key]["uri"])


def check_green(launcher: Launcher, runs: dict[str, TaskRun], local_examples: Path) -> None:
    failed = {name: run.log[-3000:] for name, run in runs.items() if run.state != "SUCCEEDED"}
    assert failed == {}
    assert sorted(runs) == sorted(TASKS)
    assert [code for run in runs.values() for code in run.codes] == [0] * len(TASKS)
    uris = [each["uri"] for run in runs.values() for each in run.outputs.values()]
    assert [uri for uri in uris if not uri.startswith(f"{launcher.root}/")] == []
    # The same bytes as the local runner's, and nothing else.
    examples = read_files(find_output(launcher, "ImageToTFRecord", "examples"))
    assert examples == read_files(local_examples)
    assert "dataset.json" in examples


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
    assert (metrics["eval_records"], metrics["passed"]) == (12.0, 1.0)
    matrix = report["classification_metrics"]["metadata"]["confusionMatrix"]["struct"]
    assert matrix["annotationSpecs"] == [{"displayName": "dark"}, {"displayName": "light"}]
    assert [len(row["row"]) for row in matrix["rows"]] == [2, 2]
    assert sum(sum(row["row"]) for row in matrix["rows"]) == 12
    # The data has no test split, so the page is about the eval split.
    assert report["page"]["metadata"]["split"] == "eval"
    assert report["page"]["metadata"]["accuracy"] == metrics["eval_accuracy"]
    assert report["model_html"]["uri"].endswith("/model_html/model.html")
    page = find_output(launcher, "ModelReport", "model_html").read_text()
    assert page.startswith("<!")
    assert "right on the eval split" in page
    assert "small_cnn" in page  # from the ModelRun of the Trainer


@pytest.mark.slow
def test_all_tasks_succeed_and_write_the_same_bytes_as_the_local_runner(
    make_launcher, tmp_path: Path, local_examples: Path, warm_python: WarmPython
):
    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        assert command[:3] == ["python", "-m", "darkroom.components.entrypoint"]
        with log.open("wb") as file:
            streams = {"stdout": file.fileno(), "stderr": file.fileno()}
            environment = {**os.environ, **environment}
            return warm_python.start(*command[1:], env=environment, **streams).wait()

    launcher = make_launcher(ROOTS[0], run)
    runs = launcher.run()
    check_green(launcher, runs, local_examples)
    check_shown(launcher, runs)
    check_recorded(runs)
    [model] = (tmp_path / "pushed").iterdir()
    assert (model / "saved_model.pb").exists()
    pushed = runs["Pusher"].outputs["pushed_model"]["metadata"]
    assert (pushed["pushed"], pushed["pushed_destination"]) == (1.0, str(model))
    assert "Starting executor" in find_output(launcher, "ManifestGen", LOGS).read_text()


def check_states(launcher: Launcher) -> None:
    """ML Metadata has the gate as failed, with its log alone, and nothing of what comes after."""
    client = launcher.store.client
    found = {
        each.custom_properties["task_name"].string_value: each
        for each in client.get_executions_by_type("system.ContainerExecution")
    }
    states = {
        name: mlmd.Execution.State.Name(each.last_known_state) for name, each in found.items()
    }
    assert states == {**dict.fromkeys(TASKS[:6], "COMPLETE"), "ValidationGate": "FAILED"}
    gate = found["ValidationGate"]
    assert "outputs" not in gate.custom_properties
    events = client.get_events_by_execution_ids([gate.id])
    kinds = [(mlmd.Event.Type.Name(event.type), event.path.steps[0].key) for event in events]
    assert kinds == [("INPUT", "report"), ("OUTPUT", LOGS), ("OUTPUT", LOGS)]  # two attempts
    made = client.get_artifacts_by_id([event.artifact_id for event in events[1:]])
    assert [artifact.uri[-len(LOGS) - 2 :] for artifact in made] == [f"{LOGS}-0", f"{LOGS}-1"]
    below = launcher.find_bucket_path(f"{launcher.run_root}/ValidationGate")
    assert sorted(path.name for path in below.glob("*/*")) == [f"{LOGS}-0", f"{LOGS}-1"]


@pytest.mark.slow
@pytest.mark.parametrize("root", [ROOTS[1], pytest.param(ROOTS[2], marks=pytest.mark.long)])
def test_a_stopped_run_keeps_its_report_and_a_retry_starts_clean(
    root: str, make_launcher, local_examples: Path, capfd
):
    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        code = run_in_process(command, environment, log)
        # Killed when all was written, the first time.
        is_first = "image_to_tfrecord" in " ".join(command) and log.name == f"{LOGS}-0"
        return -signal.SIGKILL if is_first else code

    def leave_behind(name: str, attempt: int, places: dict[str, Path]) -> None:
        if (name, attempt) == ("ImageToTFRecord", 1):
            assert not places["examples"].exists()  # it is another pod
            # What is left where tasks write into the store itself.
            (places["examples"] / "Split-train").mkdir(parents=True)
            (places["examples"] / "Split-train/data_tfrecord-00001-of-00009").write_text("old")
            (places["examples"] / ".part-1").write_text("old")

    launcher = make_launcher(root, run, options=STOP, retries=1, before_attempt=leave_behind)
    runs = launcher.run()
    states = {name: run.state for name, run in runs.items()}
    assert states.pop("ValidationGate") == "FAILED"
    assert [name for name in TASKS if states.get(name) == "SUCCEEDED"] == TASKS[:6]
    assert [name for name in TASKS if states.get(name) == "NOT_TRIGGERED"] == TASKS[7:]
    assert runs["ValidationGate"].codes == runs["ValidationGate"].task_codes == [1, 1]
    assert runs["ImageToTFRecord"].codes == [1, 0]
    assert runs["ImageToTFRecord"].logs[0] == "failed to execute component: signal: killed\n"
    examples = read_files(find_output(launcher, "ImageToTFRecord", "examples"))
    assert examples == read_files(local_examples)

    assert runs["ImageValidator"].outputs["report"]["metadata"]["blessed"] == 0.0
    path = find_output(launcher, "ImageValidator", "report") / "report.json"
    report = json.loads(path.read_text())
    assert [each["check"] for each in report["findings"] if each["policy"] == "fail"] == [
        "small_classes"
    ]
    assert find_output(launcher, "ImageValidator", "validation_html").is_file()
    assert sorted(runs["ValidationGate"].outputs) == [LOGS]
    check_states(launcher)
    last = json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]
    assert (last["code"], last["exit_code"]) == ("data", 1)
    assert "small_classes" in last["message"]
    assert last["executor"] == "darkroom.components.validation_gate.executor.Executor"
    # A path in a pod that is gone says nothing.
    assert last["hint"] == "The whole report: the output validation_html of ImageValidator"


@pytest.mark.long
@pytest.mark.parametrize(
    ("root", "release"),
    [*zip(ROOTS, (V2_17, V2_5, V2_15), strict=True), ("a folder for a bucket", V2_17)],
    ids=["minio 2.17", "s3 2.5", "gs 2.15", "vertex"],
)
def test_all_tasks_succeed_each_in_its_own_process(
    root: str, release: Release, make_launcher, tmp_path: Path, local_examples: Path, capsys
):
    # TensorFlow's client of gs:// cannot be pointed at an emulator, so on Vertex, where tasks open
    # gs:// themselves, a folder stands for the bucket.
    target = "kubeflow" if "://" in root else "vertex"
    at = root if "://" in root else str(tmp_path / "bucket")
    launcher = make_launcher(at, target=target, release=release)
    runs = launcher.run()
    check_green(launcher, runs, local_examples)
    check_shown(launcher, runs)
    with capsys.disabled():
        seconds = "".join(f"{name} {runs[name].seconds:.1f}\n" for name in TASKS)
        print(f"\n{target} {root}\n{seconds}")
