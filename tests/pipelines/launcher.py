"""Runs a compiled pipeline as Kubeflow Pipelines does, with folders for buckets and containers.

After `driver/container.go` and `component/launcher_v2.go` of kubeflow/pipelines, backend/src/v2:
tasks in the order of their dependencies; a log as an output of each; inputs downloaded to, and
outputs uploaded from, a path made of the URI; `{{$}}` replaced by ExecutorInput; the container's
command as a process; its ExecutorOutput merged into what ML Metadata gets. `backend/` has the
parts, and golden data. Each attempt is a pod of its own, with empty folders and the same URIs. Of
a task that fails nothing but the log is kept, and before 2.16 not even that.
"""

from __future__ import annotations

import copy
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from ml_metadata.proto import metadata_store_pb2 as mlmd

from darkroom.components import entrypoint
from darkroom.kfp.task import main as run_native_task
from darkroom.pipelines.config import PipelineConfig

from .backend.driver import (
    LOGS,
    RUN,
    Task,
    find_local_path,
    find_parameters,
    list_tasks,
    make_cache_key,
    make_fingerprint,
    make_input,
)
from .backend.metadata import MetadataStore
from .backend.process import (
    describe_end,
    format_command,
    merge_output,
    read_output,
    read_parameters,
)
from .backend.release import V2_17, Release
from .backend.task_run import TaskRun
from .backend.transfer import download, upload
from .compiled import compile_pipeline

GREEN = ("SUCCEEDED", "CACHED")
RunCommand = Callable[[list[str], dict[str, str], Path], int]


class PodKilledError(Exception):
    """A signal ended a pod: the launcher, which handles none, and the task's own process."""


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
        run_command: Runs a command with additions to the environment, and its log's path. It raises
            PodKilledError when a signal ends the launcher, too.
        parameters: Run-time parameters by name.
        retries: Further attempts of a task that fails.
        before_attempt: Called with the task's name, the attempt and the paths of its outputs.
        environment: Environment variables of all containers.
        release: Release of Kubeflow Pipelines.
        store: ML Metadata; runs may share one.
        cache: Ids of executions by their fingerprints; runs may share one.
        run_id: Id of the run.
    """

    spec: dict[str, Any]
    root: str
    folder: Path
    run_command: RunCommand = run_subprocess
    parameters: Mapping[str, Any] = field(default_factory=dict)
    retries: int = 0
    before_attempt: Callable[[str, int, dict[str, Path]], None] = lambda *_: None
    environment: dict[str, str] = field(default_factory=dict)
    release: Release = V2_17
    store: MetadataStore = field(default_factory=MetadataStore)
    cache: dict[str, int] = field(default_factory=dict)
    run_id: str = RUN

    def __post_init__(self) -> None:
        json_format.ParseDict(self.spec, pipeline_spec_pb2.PipelineSpec())
        self.runs: dict[str, TaskRun] = {}
        self.values = find_parameters(self.spec, self.parameters)
        name = self.spec["pipelineInfo"]["name"]
        self.run_root = f"{self.root.rstrip('/')}/{name}/{self.run_id}"
        self.session = self.release.describe_session(self.root)
        self.dag = self.store.start_run(name, self.run_id, self.run_root, self.session, self.values)

    def run(self, only: set[str] | None = None) -> dict[str, TaskRun]:
        """Runs all tasks, or those named, and returns what became of them by name."""
        for task in list_tasks(self.spec):
            if only is not None and task.name not in only:
                continue
            if any(self.runs[each].state not in GREEN for each in task.needs):
                self.runs[task.name] = TaskRun("NOT_TRIGGERED")
            else:
                started = time.monotonic()
                self.runs[task.name] = self._run_task(task)
                self.runs[task.name].seconds = time.monotonic() - started
        return self.runs

    def list_tasks(self) -> list[str]:
        """Returns the names of the tasks, each after those that it depends on."""
        return [task.name for task in list_tasks(self.spec)]

    def add_run(self, name: str, outputs: Mapping[str, Mapping[str, Any]]) -> None:
        """Records a task as done that made these outputs, without looking for them in a bucket."""
        run = TaskRun("SUCCEEDED", execution=self.store.start_task(self.dag, name, {}, {}))
        self._publish(run, mlmd.Execution.COMPLETE, outputs)
        self.runs[name] = run

    def find_bucket_path(self, uri: str) -> Path:
        """Returns where the content of a URI is."""
        return self._place(uri, self.folder / "buckets")

    def _place(self, uri: str, base: Path) -> Path:
        return base / find_local_path(uri)[1:] if "://" in uri else Path(uri)

    def _find_artifact(self, task: str, key: str) -> dict[str, Any]:
        made = self.store.find_outputs(self.runs[task].execution)
        return self.store.read_artifact(made[key])

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
        cached: dict[str, str] = {}
        if task.is_cached:
            fingerprint = make_fingerprint(make_cache_key(task, given))
            cached["cache_fingerprint"] = fingerprint
            if fingerprint in self.cache:
                cached["cached_execution_id"] = str(self.cache[fingerprint])
        execution = self.store.start_task(self.dag, task.name, given["inputs"], cached)
        run = TaskRun("FAILED", execution=execution)
        if "cached_execution_id" in cached:
            self._reuse(run, given, int(cached["cached_execution_id"]))
            return run
        for attempt in range(self.retries + 1):
            try:
                self._run_pod(task, attempt, copy.deepcopy(given), run)
            except PodKilledError:
                run.codes.append(128 + signal.SIGTERM)
                break
            if run.state == "SUCCEEDED":
                if task.is_cached:
                    self.cache[fingerprint] = execution
                break
        return run

    def _reuse(self, run: TaskRun, given: dict[str, Any], execution: int) -> None:
        made = self.store.find_outputs(execution)
        ids = {key: made[key] for key in given["outputs"]["artifacts"]}
        run.parameters = self.store.read_parameters(execution)
        self.store.publish(run.execution, mlmd.Execution.CACHED, ids, run.parameters)
        run.state = "CACHED"
        run.outputs = {key: self.store.read_artifact(each) for key, each in ids.items()}

    def _run_pod(self, task: Task, attempt: int, given: dict[str, Any], run: TaskRun) -> None:
        pod = f"{self.run_id}-{task.name.lower()}-{attempt}"
        self.store.start_attempt(run.execution, pod)
        mounts = self.folder / "containers" / pod
        outputs = {key: each["artifacts"][0] for key, each in given["outputs"]["artifacts"].items()}
        outputs[LOGS]["uri"] = self.release.name_log(outputs[LOGS]["uri"], attempt)
        places = {key: self._place(each["uri"], mounts) for key, each in outputs.items()}
        self._fill(given, mounts, places.values())
        self.before_attempt(task.name, attempt, places)
        command = format_command(task, given)
        environment = {"DARKROOM_MOUNTS": str(mounts), **self.environment}
        try:
            code = self.run_command(command, environment, places[LOGS])
        finally:
            run.logs.append(places[LOGS].read_text(errors="replace"))
        self._end_pod(task, run, code, given, outputs, mounts)
        shutil.rmtree(mounts, ignore_errors=True)

    def _end_pod(
        self,
        task: Task,
        run: TaskRun,
        code: int,
        given: dict[str, Any],
        outputs: dict[str, dict[str, Any]],
        mounts: Path,
    ) -> None:
        """Uploads and records what a pod leaves, after the task's own process has ended."""
        state = mlmd.Execution.FAILED
        if code == 0:
            made = read_output(Path(given["outputs"]["outputFile"]))
            run.parameters = read_parameters(task, given["outputs"])
            outputs = {key: merge_output(each, made.get(key)) for key, each in outputs.items()}
        else:
            run.logs[-1] += f"failed to execute component: {describe_end(code)}\n"
            outputs = {LOGS: outputs[LOGS]} if self.release.keeps_failed_log else {}
        try:
            for each in outputs.values():
                upload(self._place(each["uri"], mounts), self.find_bucket_path(each["uri"]))
            if code == 0:
                run.state, state = "SUCCEEDED", mlmd.Execution.COMPLETE
        except OSError as error:  # the store takes nothing
            outputs = {}
            if code == 0:
                reason = f"failed to upload output artifact: {error}"
                run.logs[-1] += f"failed to execute component: {reason}\n"
        run.codes.append(0 if run.state == "SUCCEEDED" else 1)
        self._publish(run, state, outputs)

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

    def _publish(
        self,
        run: TaskRun,
        state: mlmd.Execution.State,
        outputs: Mapping[str, Mapping[str, Any]],
    ) -> None:
        ids = {
            key: self.store.record_artifact(key, each, self.session)
            for key, each in outputs.items()
        }
        parameters = run.parameters if state == mlmd.Execution.COMPLETE else None
        self.store.publish(run.execution, state, ids, parameters)
        run.outputs = {
            key: {**self.store.read_artifact(ids[key]), "type": each["type"]}
            for key, each in outputs.items()
        }
