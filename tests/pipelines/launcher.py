"""Runs a compiled pipeline as Kubeflow Pipelines does, with folders for buckets and containers.

After `driver/container.go` and `component/launcher_v2.go` of kubeflow/pipelines, backend/src/v2:
tasks in the order of their dependencies; a log as an output of each; inputs downloaded to, and
outputs uploaded from, a path made of the URI; `{{$}}` replaced by ExecutorInput; the container's
command as a process; its ExecutorOutput merged into what is recorded. `backend/` has the parts, and
golden data. Of a task that fails nothing but the log is kept.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from darkroom.components import entrypoint
from darkroom.kfp.task import main as run_native_task
from darkroom.pipelines.config import PipelineConfig

from .backend.driver import (
    LOGS,
    RUN,
    Task,
    as_recorded,
    find_local_path,
    find_parameters,
    list_tasks,
    make_cache_key,
    make_fingerprint,
    make_input,
)
from .backend.process import format_command, merge_output, read_output, read_parameters
from .backend.release import SESSION, V2_17, Release
from .backend.transfer import download, upload
from .compiled import compile_pipeline

GREEN = ("SUCCEEDED", "CACHED")
RunCommand = Callable[[list[str], dict[str, str], Path], int]
_IDS = itertools.count(1)


@dataclass
class TaskRun:
    """What became of a task.

    Attributes:
        state: SUCCEEDED, CACHED, FAILED or NOT_TRIGGERED.
        code: The exit code of its process.
        outputs: Artifacts by output, as ML Metadata has them, with the types that were asked for.
        parameters: Output parameters by name.
        log: What its process printed.
    """

    state: str
    code: int = 0
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    log: str = ""


def compile_spec(config: PipelineConfig, target: str = "kubeflow") -> dict[str, Any]:
    """Returns the pipeline spec of a configuration."""
    compiled = compile_pipeline(config, target)
    return compiled if target == "kubeflow" else compiled["pipelineSpec"]


def run_subprocess(command: list[str], environment: dict[str, str], log: Path) -> int:
    """Runs a container's command in a process of its own."""
    if command[0] == "python":
        command = [sys.executable, *command[1:]]
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with log.open("wb") as file:
        return subprocess.run(
            command, env={**inherited, **environment}, stdout=file, stderr=file, check=False
        ).returncode


def run_in_process(command: list[str], environment: dict[str, str], log: Path) -> int:
    """Calls the entrypoint in this process; what it prints is the test's."""
    run = run_native_task if command[2] == "darkroom.kfp.task" else entrypoint.main
    log.touch()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", sys.argv[:1])
        return run(command[3:])


@dataclass
class Launcher:
    """Runs the tasks of one compiled pipeline.

    Attributes:
        spec: The pipeline spec.
        root: Pipeline root: minio://, s3:// or gs://, or a folder, into which tasks write directly,
            as they do into gs:// on Vertex.
        folder: Where buckets and containers' folders are.
        run_command: Runs a command with additions to the environment, and its log's path.
        parameters: Run-time parameters by name.
        release: Release of Kubeflow Pipelines.
        cache: Tasks that succeeded by their fingerprints; runs may share one.
        run_id: Id of the run.
    """

    spec: dict[str, Any]
    root: str
    folder: Path
    run_command: RunCommand = run_subprocess
    parameters: Mapping[str, Any] = field(default_factory=dict)
    release: Release = V2_17
    cache: dict[str, TaskRun] = field(default_factory=dict)
    run_id: str = RUN

    def __post_init__(self) -> None:
        json_format.ParseDict(self.spec, pipeline_spec_pb2.PipelineSpec())
        self.runs: dict[str, TaskRun] = {}
        self.values = find_parameters(self.spec, self.parameters)
        name = self.spec["pipelineInfo"]["name"]
        self.run_root = f"{self.root.rstrip('/')}/{name}/{self.run_id}"

    def run(self, only: set[str] | None = None) -> dict[str, TaskRun]:
        """Runs all tasks, or those named, and returns what became of them by name."""
        for task in list_tasks(self.spec):
            if only is not None and task.name not in only:
                continue
            if any(self.runs[each].state not in GREEN for each in task.needs):
                self.runs[task.name] = TaskRun("NOT_TRIGGERED")
            else:
                self.runs[task.name] = self._run_task(task)
        return self.runs

    def add_run(self, name: str, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Records a task as done that made these outputs, without looking for them in a bucket."""
        self.runs[name] = TaskRun("SUCCEEDED", outputs=self._record(outputs))

    def find_bucket_path(self, uri: str) -> Path:
        """Returns where the content of a URI is."""
        return self._place(uri, self.folder / "buckets")

    def _place(self, uri: str, base: Path) -> Path:
        return base / find_local_path(uri)[1:] if "://" in uri else Path(uri)

    def _find_artifact(self, task: str, key: str) -> dict[str, Any]:
        # Kubeflow's driver does not ask for the type: `OutputArtifact` in `client.go`.
        return {**self.runs[task].outputs[key], "type": {"instanceSchema": ""}}

    def _run_task(self, task: Task) -> TaskRun:
        given = make_input(
            task,
            self.values,
            self._find_artifact,
            self.run_root,
            self.release,
            self.run_id,
            lambda name, key: self.runs[name].parameters[key],
        )
        fingerprint = make_fingerprint(make_cache_key(task, given)) if task.is_cached else ""
        if known := self.cache.get(fingerprint):
            return replace(known, state="CACHED")
        run = self._run_pod(task, given)
        if task.is_cached and run.state == "SUCCEEDED":
            self.cache[fingerprint] = run
        return run

    def _run_pod(self, task: Task, given: dict[str, Any]) -> TaskRun:
        mounts = self.folder / "containers" / f"{self.run_id}-{task.name.lower()}"
        outputs = {key: each["artifacts"][0] for key, each in given["outputs"]["artifacts"].items()}
        outputs[LOGS]["uri"] = self.release.name_log(outputs[LOGS]["uri"])
        places = {key: self._place(each["uri"], mounts) for key, each in outputs.items()}
        self._fill(given, mounts, places.values())
        environment = {"DARKROOM_MOUNTS": str(mounts)}
        code = self.run_command(format_command(task, given), environment, places[LOGS])
        run = TaskRun("FAILED", code, log=places[LOGS].read_text(errors="replace"))
        if code == 0:
            made = read_output(Path(given["outputs"]["outputFile"]))
            run.state, run.parameters = "SUCCEEDED", read_parameters(task, given["outputs"])
            outputs = {key: merge_output(each, made.get(key)) for key, each in outputs.items()}
        else:
            outputs = {LOGS: outputs[LOGS]}
        for each in outputs.values():
            upload(self._place(each["uri"], mounts), self.find_bucket_path(each["uri"]))
        run.outputs = self._record(outputs)
        shutil.rmtree(mounts, ignore_errors=True)
        return run

    def _fill(self, given: dict[str, Any], mounts: Path, places: Any) -> None:
        """Makes the folders of a pod, downloads its inputs, and adds the pod's place to paths."""
        for each in given["inputs"].get("artifacts", {}).values():
            uri = each["artifacts"][0]["uri"]
            download(
                self.find_bucket_path(uri),
                self._place(uri, mounts),
                with_siblings=self.release.downloads_siblings,
            )
        outputs = given["outputs"]
        written = [*outputs.get("parameters", {}).values(), *([outputs] * ("://" in self.root))]
        for each in written:
            each["outputFile"] = f"{mounts}{each['outputFile']}"
        for place in (*places, *(Path(each["outputFile"]) for each in (outputs, *written))):
            place.parent.mkdir(parents=True, exist_ok=True)

    def _record(self, outputs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Returns artifacts as ML Metadata would have them; each gets an id."""
        return {
            key: {
                "name": str(next(_IDS)),
                "type": each["type"],
                "uri": each["uri"],
                "metadata": as_recorded(
                    {"display_name": key, "store_session_info": SESSION, **each.get("metadata", {})}
                ),
            }
            for key, each in outputs.items()
        }
