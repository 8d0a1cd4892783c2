"""Runs a component as Kubeflow's launcher does, with folders for buckets and containers."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from darkroom.kfp.task import main
from darkroom.steps.known import STEPS

from ..pipelines.backend.driver import LOGS, Task, as_recorded, make_input
from ..pipelines.backend.release import SESSION, V2_17

ROOT = "minio://mlpipeline/v2/artifacts/images/run-1"


@dataclass
class Artifact:
    """An artifact in the store.

    Attributes:
        uri: Its URI.
        metadata: Its metadata.
    """

    uri: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Done:
    """What became of a task.

    Attributes:
        code: Its exit code.
        error: The line of JSON that it printed, as values.
        artifacts: Its outputs by name, as they were recorded.
        parameters: Its output parameters by name.
        printed: The lines that it printed on standard error.
    """

    code: int
    error: dict[str, Any] = field(default_factory=dict)
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)


def _make_task(name: str, inputs: Mapping[str, Artifact], values: Mapping[str, Any]) -> Task:
    """Returns the task of a pipeline that gives a component these inputs and values."""
    step = STEPS[name]
    artifacts = {
        each.name: {
            "artifactType": {"schemaTitle": f"system.{each.kind}", "schemaVersion": "0.0.1"}
        }
        for each in step.outputs
    }
    results = {each.name: {"parameterType": each.kind.__name__} for each in step.results}
    sources = {
        "artifacts": {
            key: {"taskOutputArtifact": {"producerTask": "earlier", "outputArtifactKey": key}}
            for key in inputs
        },
        "parameters": {key: {"runtimeValue": {"constant": each}} for key, each in values.items()},
    }
    made = {"artifacts": artifacts, "parameters": results}
    return Task(name, {"inputs": sources}, {"outputDefinitions": made}, {})


class Cluster:
    """Runs tasks, each in folders of its own that are thrown away, beside one store."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self._patch, self._capfd = folder, monkeypatch, capfd
        self.count = 0
        self.root = ROOT

    def find(self, artifact: Artifact) -> Path:
        """Returns where the content of an artifact is in the store."""
        return self.folder / "buckets" / artifact.uri.replace("://", "/")

    def make_input(
        self, name: str, inputs: Mapping[str, Artifact], values: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Path]:
        """Returns an ExecutorInput, and the folder of the container's mounts."""
        self.count += 1
        mounts = self.folder / "containers" / str(self.count)

        def find_artifact(task: str, key: str) -> dict[str, Any]:
            given = inputs[key]
            metadata = {"display_name": key, "store_session_info": SESSION, **given.metadata}
            kind = {"instanceSchema": ""}
            return {"name": "7", "type": kind, "uri": given.uri, "metadata": as_recorded(metadata)}

        task = _make_task(name, inputs, values)
        root = f"{self.root}/{self.count}"
        given = make_input(task, {}, find_artifact, root, V2_17)
        outputs = given["outputs"]
        [log] = outputs["artifacts"][LOGS]["artifacts"]
        log["uri"] = V2_17.name_log(log["uri"])
        for each in (outputs, *outputs.get("parameters", {}).values()):
            each["outputFile"] = f"{mounts}{each['outputFile']}"
        return given, mounts

    def run(self, name: str, inputs: Mapping[str, Artifact] | None = None, **values: Any) -> Done:
        """Runs a component."""
        given, mounts = self.make_input(name, inputs or {}, values)
        for each in (inputs or {}).values():
            copy(self.find(each), mounts / each.uri.replace("://", "/"))
        self._patch.setenv("DARKROOM_MOUNTS", str(mounts))
        self._capfd.readouterr()
        code = main([name, "--executor_input", json.dumps(given)])
        printed = self._capfd.readouterr().err.splitlines()
        if code:
            return Done(code, json.loads(printed[-1])["error"], printed=printed)
        done = self._collect(name, given, mounts)
        done.printed = printed
        return done

    def _collect(self, name: str, given: dict[str, Any], mounts: Path) -> Done:
        output = json.loads(Path(given["outputs"]["outputFile"]).read_text())
        assert set(output) == {"artifacts"}
        done = Done(0)
        for key, each in output["artifacts"].items():
            [found] = each["artifacts"]
            assert set(found) == {"name", "uri", "metadata"}
            assert all(value is not None for value in found["metadata"].values())
            done.artifacts[key] = Artifact(found["uri"], found["metadata"])
            copy(mounts / found["uri"].replace("://", "/"), self.find(done.artifacts[key]))
        for each in STEPS[name].results:
            text = Path(given["outputs"]["parameters"][each.name]["outputFile"]).read_text()
            done.parameters[each.name] = text if each.kind is str else json.loads(text)
        shutil.rmtree(mounts)
        self._check_places(done)
        return done

    def _check_places(self, done: Done) -> None:
        """What outlives a container names no folder of it, and no page has a link.

        Kubeflow's UI shows pages in a frame, which even a link to a part of a page leaves.
        """
        places = [str(self.folder / "containers"), str(Path(tempfile.gettempdir(), "darkroom-"))]
        said = {key: json.dumps(each) for key, each in done.parameters.items()}
        for key, each in done.artifacts.items():
            said[f"{key} (metadata)"] = json.dumps(each.metadata)
            path = self.find(each)
            for file in [path] if path.is_file() else path.rglob("*"):
                said[str(file)] = file.read_bytes().decode("latin-1") if file.is_file() else ""
        assert [key for key, text in said.items() if any(each in text for each in places)] == []
        pages = {key: text for key, text in said.items() if key.endswith("_page")}
        assert [key for key, text in pages.items() if "href=" in text] == []


def copy(source: Path, target: Path) -> None:
    """Copies a file or a folder, as the launcher does between store and container."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    elif source.exists():
        shutil.copyfile(source, target)
