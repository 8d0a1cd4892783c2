"""Compiled pipelines, run as Kubeflow Pipelines and Vertex run them: task by task."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tfx.orchestration.kubeflow.v2.kubeflow_v2_dag_runner import (
    KubeflowV2DagRunner,
    KubeflowV2DagRunnerConfig,
)

from darkroom.components import entrypoint
from darkroom.components.validation_gate.executor import GateError
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.lineage import read_latest_run
from darkroom.pipelines.local_runner import run_locally
from darkroom.pipelines.pipeline import create_pipeline

from .fork_server import ForkServer
from .launcher import LOGS, Launcher, TaskRun, run_subprocess

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


def compile_spec(config: PipelineConfig, target: str = "kubeflow") -> dict[str, Any]:
    runner = KubeflowV2DagRunner(
        KubeflowV2DagRunnerConfig(
            default_image="example.com/darkroom:1",
            default_commands=[
                *["python", "-m", "darkroom.components.entrypoint", "--target"],
                target,
            ],
            use_pipeline_spec_2_1=True,
        )
    )
    return runner.run(create_pipeline(config), write_out=False)["pipelineSpec"]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV of 60 images of two labels: dark ones and light ones."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(5)
    rows = [("split", "image_uri", "label")]
    for number in range(60):
        light = number % 2
        pixels = rng.integers(128 * light, 128 * light + 128, (12, 10, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
        split = "eval" if number % 5 == 4 else "train"
        rows.append((split, f"{number:02d}.png", ("dark", "light")[light]))
    with (folder / "images.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder / "images.csv"


@pytest.fixture
def make_config(source: Path, tmp_path: Path) -> Any:
    def make(**options: Any) -> PipelineConfig:
        return PipelineConfig(
            data=str(source),
            root=str(tmp_path / "root"),
            push_to=str(tmp_path / "pushed"),
            image_size=(16, 16),
            augment="none",
            epochs=1,
            **options,
        )

    return make


@pytest.fixture(scope="module")
def local_examples(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Examples of LocalDagRunner on the same source."""
    root = tmp_path_factory.mktemp("local")
    config = PipelineConfig(data=str(source), root=str(root), **STOP)
    with pytest.raises(GateError):
        run_locally(config)
    return Path(read_latest_run(str(root), config.name)["ImageToTFRecord"].outputs["examples"])


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


def run_in_process(command: list[str], environment: dict[str, str], log: Path) -> int:
    """Calls the entrypoint in this process; what it prints is the test's."""
    log.touch()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", sys.argv[:1])
        return entrypoint.main(command[3:])


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


def check_shown(launcher: Launcher, runs: dict[str, TaskRun]) -> None:
    """What KFP's UI shows is there in the form that it reads."""
    outputs = runs["ImageValidator"].outputs
    assert outputs["html"]["uri"].endswith("/html/report.html")
    assert find_output(launcher, "ImageValidator", "html").read_text().startswith("<!")
    assert find_output(launcher, "ImageValidator", "markdown").read_text().startswith("# Valid")
    assert outputs["report"]["metadata"]["blessed"] == 1.0
    report = runs["ModelReport"].outputs
    titles = {key: each["type"]["instanceSchema"] for key, each in report.items() if key != LOGS}
    assert titles["metrics"].startswith("title: system.Metrics\n")
    assert titles["classification_metrics"].startswith("title: system.ClassificationMetrics\n")
    metrics = report["metrics"]["metadata"]
    assert (metrics["eval_records"], metrics["example_count"]) == (12.0, 12.0)
    matrix = report["classification_metrics"]["metadata"]["confusionMatrix"]["struct"]
    assert matrix["annotationSpecs"] == [{"displayName": "dark"}, {"displayName": "light"}]
    assert [len(row["row"]) for row in matrix["rows"]] == [2, 2]
    assert sum(sum(row["row"]) for row in matrix["rows"]) == 12


@pytest.mark.slow
def test_all_tasks_end_green_and_write_the_local_runners_bytes(
    make_config, tmp_path: Path, local_examples: Path, fork_server: ForkServer
):
    def run(command: list[str], environment: dict[str, str], log: Path) -> int:
        # Two of them as a container starts them; the others spare themselves TFX's import.
        whole = {"manifest_gen", "image_to_tfrecord"} & set(" ".join(command).split("."))
        return (run_subprocess if whole else fork_server.run_command)(command, environment, log)

    launcher = Launcher(compile_spec(make_config()), ROOTS[0], tmp_path, run)
    runs = launcher.run()
    check_green(launcher, runs, local_examples)
    check_shown(launcher, runs)
    [model] = (tmp_path / "pushed").iterdir()
    assert (model / "saved_model.pb").exists()
    pushed = runs["Pusher"].outputs["pushed_model"]["metadata"]
    assert (pushed["pushed"], pushed["pushed_destination"]) == (1.0, str(model))
    assert "Starting executor" in find_output(launcher, "ManifestGen", LOGS).read_text()


@pytest.mark.slow
@pytest.mark.parametrize("root", ROOTS[1:])
def test_a_gate_that_holds_leaves_its_report_behind(
    root: str, make_config, tmp_path: Path, local_examples: Path, capfd
):
    launcher = Launcher(compile_spec(make_config(**STOP)), root, tmp_path, run_in_process)
    runs = launcher.run()
    states = {name: run.state for name, run in runs.items()}
    assert states.pop("ValidationGate") == "FAILED"
    assert set(states.values()) == {"SUCCEEDED", "NOT_TRIGGERED"}
    assert [name for name in TASKS if states.get(name) == "NOT_TRIGGERED"] == TASKS[7:]
    assert runs["ValidationGate"].codes == [1]
    examples = read_files(find_output(launcher, "ImageToTFRecord", "examples"))
    assert examples == read_files(local_examples)

    assert runs["ImageValidator"].outputs["report"]["metadata"]["blessed"] == 0.0
    report = json.loads(
        (find_output(launcher, "ImageValidator", "report") / "report.json").read_text()
    )
    assert [each["check"] for each in report["findings"] if each["policy"] == "fail"] == [
        "small_classes"
    ]
    assert find_output(launcher, "ImageValidator", "html").is_file()
    last = json.loads(capfd.readouterr().err.strip().splitlines()[-1])["error"]
    assert (last["code"], last["exit_code"]) == ("data", 1)
    assert "small_classes" in last["message"]
    assert last["executor"] == "darkroom.components.validation_gate.executor.Executor"
