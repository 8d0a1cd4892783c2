"""Runs a compiled pipeline as Kubeflow Pipelines does, with folders for buckets and containers.

After `backend/src/v2/driver/driver.go` and `component/launcher_v2.go` of kubeflow/pipelines: tasks
in the order of their dependencies; an output `executor-logs` of type system.Artifact for each;
inputs downloaded to, and outputs uploaded from, a path made of the URI; `{{$}}` replaced by
ExecutorInput; the container's command as a process; its ExecutorOutput merged into what is
recorded. Of a task that fails only the log is kept. A further attempt gets the same URIs and finds
what the last one left.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2

from darkroom.components import entrypoint
from darkroom.pipelines.compilation.spec import compile_pipeline
from darkroom.pipelines.config import PipelineConfig

SCHEMES = {"minio://": "minio", "s3://": "s3", "gs://": "gcs"}
LOGS = "executor-logs"
RunCommand = Callable[[list[str], dict[str, str], Path], int]


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
    log.touch()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", sys.argv[:1])
        return entrypoint.main(command[3:])


@dataclass
class TaskRun:
    """What became of a task.

    Attributes:
        state: SUCCEEDED, FAILED or NOT_TRIGGERED.
        codes: Exit codes of its attempts.
        outputs: Artifacts by output, as they were recorded.
        log: What the last attempt printed.
        seconds: Wall time of all attempts.
    """

    state: str
    codes: list[int] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: str = ""
    seconds: float = 0.0


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
        retries: Further attempts of a task that fails.
        before_attempt: Called with the task's name, the attempt and the paths of its outputs.
    """

    spec: dict[str, Any]
    root: str
    folder: Path
    run_command: RunCommand = run_subprocess
    parameters: Mapping[str, Any] = field(default_factory=dict)
    retries: int = 0
    before_attempt: Callable[[str, int, dict[str, Path]], None] = lambda *_: None
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        json_format.ParseDict(self.spec, pipeline_spec_pb2.PipelineSpec())
        self.runs: dict[str, TaskRun] = {}
        self._num_artifacts = 0

    def run(self, only: set[str] | None = None) -> dict[str, TaskRun]:
        """Runs all tasks, or those named, and returns what became of them by name."""
        for name in self.list_tasks():
            if only is not None and name not in only:
                continue
            needed = self._task(name).get("dependentTasks", [])
            if any(self.runs[each].state != "SUCCEEDED" for each in needed):
                self.runs[name] = TaskRun("NOT_TRIGGERED")
            else:
                started = time.monotonic()
                self.runs[name] = self._run_task(name)
                self.runs[name].seconds = time.monotonic() - started
        return self.runs

    def list_tasks(self) -> Iterator[str]:
        """Yields the names of the tasks, each after those that it depends on."""
        tasks = self.spec["root"]["dag"]["tasks"]
        done: set[str] = set()
        while ready := [
            name for name in tasks if name not in done and done >= {*_needs(tasks[name])}
        ]:
            yield ready[0]
            done.add(ready[0])
        assert done == set(tasks), "tasks wait for each other"

    def find_bucket_path(self, uri: str) -> Path:
        """Returns where the content of a URI is."""
        return self._place(uri, self.folder / "buckets")

    def _task(self, name: str) -> dict[str, Any]:
        return self.spec["root"]["dag"]["tasks"][name]

    def _place(self, uri: str, base: Path) -> Path:
        for scheme, folder in SCHEMES.items():
            if uri.startswith(scheme):
                return base / folder / uri.removeprefix(scheme)
        assert uri.startswith("/"), f"failed to generate local path for URI {uri}"
        return Path(uri)

    def _run_task(self, name: str) -> TaskRun:
        component = self.spec["components"][self._task(name)["componentRef"]["name"]]
        executors = self.spec["deploymentSpec"]["executors"]
        container = executors[component["executorLabel"]]["container"]
        mounts = self.folder / "containers" / name
        given = self._make_input(name, component, mounts)
        run = TaskRun("FAILED")
        for attempt in range(self.retries + 1):
            code, output = self._attempt(name, attempt, container, given, mounts)
            run.codes.append(code)
            artifacts = {key: each["artifacts"][0] for key, each in output_artifacts(given)}
            logs = {**artifacts.pop(LOGS)}
            logs["uri"] += f"-{attempt}"
            run.log = self._place(logs["uri"], mounts).read_text(errors="replace")
            kept = {LOGS: logs}
            if code == 0:
                run.state = "SUCCEEDED"
                kept |= {key: _merge(each, output.get(key)) for key, each in artifacts.items()}
            run.outputs = {key: self._record(key, each, mounts) for key, each in kept.items()}
            if code == 0:
                break
        if mounts.exists():
            shutil.rmtree(mounts)
        return run

    def _make_input(self, name: str, component: dict[str, Any], mounts: Path) -> dict[str, Any]:
        inputs = self._task(name).get("inputs", {})
        definitions = component.get("inputDefinitions", {}).get("parameters", {})
        values = {
            key: each["defaultValue"] for key, each in definitions.items() if "defaultValue" in each
        }
        values |= {
            key: self._find_value(each) for key, each in inputs.get("parameters", {}).items()
        }
        task_root = f"{self.root.rstrip('/')}/{self.spec['pipelineInfo']['name']}/run-1/{name}/5a17"
        types = {
            key: (each["artifactType"], each.get("metadata", {}))
            for key, each in component.get("outputDefinitions", {}).get("artifacts", {}).items()
        }
        types[LOGS] = ({"schemaTitle": "system.Artifact"}, {})
        return {
            "inputs": {
                # A Struct knows no whole numbers.
                "parameterValues": {
                    key: float(value) if isinstance(value, int) else value
                    for key, value in values.items()
                },
                "artifacts": {
                    key: {"artifacts": [self._find_artifact(each)]}
                    for key, each in inputs.get("artifacts", {}).items()
                },
            },
            "outputs": {
                "artifacts": {
                    key: {
                        "artifacts": [
                            {"name": key, "uri": f"{task_root}/{key}", "type": kind, "metadata": m}
                        ]
                    }
                    for key, (kind, m) in types.items()
                },
                "outputFile": str(self._place(f"{task_root}/output_metadata.json", mounts)),
            },
        }

    def _find_value(self, source: dict[str, Any]) -> Any:
        if "runtimeValue" in source:
            return source["runtimeValue"]["constant"]
        name = source["componentInputParameter"]
        definition = self.spec["root"]["inputDefinitions"]["parameters"][name]
        return self.parameters.get(name, definition.get("defaultValue"))

    def _find_artifact(self, source: dict[str, Any]) -> dict[str, Any]:
        found = source["taskOutputArtifact"]
        artifact = self.runs[found["producerTask"]].outputs[found["outputArtifactKey"]]
        # The driver does not ask the metadata store for the type: `OutputArtifact` in `client.go`.
        return {**artifact, "type": {"instanceSchema": ""}}

    def _attempt(
        self,
        name: str,
        attempt: int,
        container: dict[str, Any],
        given: dict[str, Any],
        mounts: Path,
    ) -> tuple[int, dict[str, Any]]:
        # As protojson would: it must be an ExecutorInput of this kfp, too.
        message = json_format.ParseDict(given, pipeline_spec_pb2.ExecutorInput())
        text = json_format.MessageToJson(message)
        inputs = given["inputs"]["artifacts"].values()
        for artifact in [each["artifacts"][0] for each in inputs]:
            _copy(self.find_bucket_path(artifact["uri"]), self._place(artifact["uri"], mounts))
        places = {
            key: self._place(each["artifacts"][0]["uri"], mounts)
            for key, each in output_artifacts(given)
        }
        for place in places.values():
            place.parent.mkdir(parents=True, exist_ok=True)
        self.before_attempt(name, attempt, places)
        log = places[LOGS].with_name(f"{LOGS}-{attempt}")
        command = [*container["command"], *container["args"]]
        code = self.run_command(
            [each.replace("{{$}}", text) for each in command],
            {"DARKROOM_MOUNTS": str(mounts), **self.environment},
            log,
        )
        if code:
            return code, {}
        output = Path(given["outputs"]["outputFile"]).read_text()
        json_format.Parse(output, pipeline_spec_pb2.ExecutorOutput())
        return code, json.loads(output).get("artifacts", {})

    def _record(self, key: str, artifact: dict[str, Any], mounts: Path) -> dict[str, Any]:
        """Uploads an artifact and returns it as the metadata store gives it back."""
        # Components may produce no file, so there may be nothing to upload.
        _copy(self._place(artifact["uri"], mounts), self.find_bucket_path(artifact["uri"]))
        self._num_artifacts += 1
        metadata = {name: _store_value(value) for name, value in artifact["metadata"].items()}
        return {
            "name": str(self._num_artifacts),
            "uri": artifact["uri"],
            "type": artifact["type"],
            "metadata": {"display_name": key, "store_session_info": "", **metadata},
        }


def output_artifacts(given: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(given["outputs"]["artifacts"].items())


def _needs(task: dict[str, Any]) -> set[str]:
    inputs = task.get("inputs", {}).get("artifacts", {}).values()
    producers = {each["taskOutputArtifact"]["producerTask"] for each in inputs}
    assert producers <= set(task.get("dependentTasks", [])), "an input that no edge stands for"
    return set(task.get("dependentTasks", []))


def _merge(artifact: dict[str, Any], output: dict[str, Any] | None) -> dict[str, Any]:
    if output is None:
        return artifact
    [found] = output["artifacts"]
    metadata = {**artifact["metadata"], **found.get("metadata", {})}
    return {**artifact, "uri": found.get("uri") or artifact["uri"], "metadata": metadata}


def _store_value(value: Any) -> Any:
    assert value is not None, "unknown/unsupported value type NullValue"
    if isinstance(value, dict):
        return {"struct": value}
    if isinstance(value, list):
        return {"list": value}
    return float(value) if isinstance(value, int) else value


def _copy(source: Path, destination: Path) -> None:
    if source == destination or not source.exists():
        return
    destination.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copyfile(source, destination)
        return
    # A store has no empty folders, and keeps what an upload does not replace.
    for path in source.rglob("*"):
        if path.is_file():
            target = destination / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
