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
class RecordedTasks:
    """One run, all tasks green, of which no files and executions were kept.

    Attributes:
        spec: The compiled pipeline.
        tasks: By name: its command with `{{$}}` for the ExecutorInput, the parameters that the
            driver gave to the launcher, ExecutorInput and ExecutorOutput of the task's process.
        fingerprints: Of each task in the cache; None of those that are never cached.
        artifacts: What ML Metadata has of each output, by `TASK.KEY`.
        run: Properties of the run in ML Metadata.
    """

    spec: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    fingerprints: dict[str, str | None]
    artifacts: dict[str, dict[str, Any]]
    run: dict[str, str]


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
    """Returns what was recorded of a TFX pipeline on a release."""
    commands = json.loads((GOLDEN / "argv.json").read_text())
    return Recorded(_read_spec(release), commands, **_read_run(GOLDEN, release))


@cache
def read_tasks(kind: str, release: Release) -> RecordedTasks:
    """Returns what was recorded of a later run: "tfx", or "native" for a pipeline without TFX."""
    return RecordedTasks(**_read_run(GOLDEN / "runs", release, f"{kind}-"))


def _read_run(folder: Path, release: Release, kind: str = "") -> dict[str, Any]:
    text = (folder / f"{kind}{release.version}.json").read_text()
    run = json.loads(text)["run"]
    # Within JSON, so that all other texts stay as they are.
    session = json.dumps(run["store_session_info"])
    text = text.replace(f'"{_SHORT_SESSION}"', session)
    text = text.replace(f'"{_SHORT_ROOT}/', f'"{run["pipeline_root"]}/')
    read: dict[str, Any] = json.loads(text)
    return read


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
