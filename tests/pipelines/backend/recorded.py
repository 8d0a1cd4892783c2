"""Reads what was recorded of Kubeflow's own driver and launcher: `golden/README.md`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .driver import as_protojson
from .release import Release

GOLDEN = Path(__file__).parent / "golden"
PIPELINE_ROOT = "minio://mlpipeline/darkroom"
# What is long and in many places has a short text in the files.
_SHORT_SESSION, _SHORT_ROOT = "SESSION", "ROOT"


@dataclass(frozen=True)
class RecordedInputs:
    """Two components without TFX, on 2.17.0.

    Attributes:
        parameters: Parameters of the run.
        spec: The compiled pipeline.
        tasks: By name: the ExecutorInput that the driver made, and the command.
        artifacts: As those of `Recorded`.
    """

    parameters: dict[str, Any]
    spec: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    artifacts: dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Recorded:
    """One run of the compiled pipeline, all tasks green.

    Attributes:
        spec: The compiled pipeline.
        commands: The command of each task by name, with `{{$}}` for its ExecutorInput.
        run: Properties of the run in ML Metadata.
        tasks: By name: ExecutorInput, ExecutorOutput, and the files that were downloaded for it.
        executions: What ML Metadata has of each task, and of the root of the run.
        artifacts: What it has of each output, by `TASK.KEY`.
    """

    spec: dict[str, Any]
    commands: dict[str, list[str]]
    run: dict[str, str]
    tasks: dict[str, dict[str, Any]]
    executions: dict[str, dict[str, Any]]
    artifacts: dict[str, dict[str, Any]]


@cache
def read_recorded(release: Release) -> Recorded:
    """Returns what was recorded of a release."""
    text = (GOLDEN / f"{release.version}.json").read_text()
    run = json.loads(text)["run"]
    # Within JSON, so that all other texts stay as they are.
    session = json.dumps(run["store_session_info"])
    text = text.replace(f'"{_SHORT_SESSION}"', session)
    text = text.replace(f'"{_SHORT_ROOT}/', f'"{run["pipeline_root"]}/')
    commands = json.loads((GOLDEN / "argv.json").read_text())
    return Recorded(_read_spec(release), commands, **json.loads(text))


@cache
def read_native() -> RecordedInputs:
    """Returns what was recorded of components without TFX."""
    return RecordedInputs(**json.loads((GOLDEN / "native.json").read_text()))


def find_recorded(artifacts: Mapping[str, dict[str, Any]], task: str, key: str) -> dict[str, Any]:
    """Returns an output of a task as ML Metadata had it, in the form of ExecutorInput."""
    found = artifacts[f"{task}.{key}"]
    return {
        "name": found["id"],
        "type": {"instanceSchema": ""},
        "uri": found["uri"],
        "metadata": as_protojson(found["properties"]),
    }


def _read_spec(release: Release) -> dict[str, Any]:
    text = (GOLDEN / "pipeline.json").read_text()
    spec: dict[str, Any] = json.loads(text.replace("seaweedfs.kubeflow:9000", release.endpoint))
    if release.version != "2.17.0":
        # Their file was compiled without a fingerprint of the source: ManifestGen is not cached.
        spec["root"]["dag"]["tasks"]["ManifestGen"]["cachingOptions"] = {}
        parameters = spec["root"]["inputDefinitions"]["parameters"]
        parameters["source_fingerprint"]["defaultValue"] = ""
    return spec
