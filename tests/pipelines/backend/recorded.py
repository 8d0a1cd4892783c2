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


@cache
def read_tasks(kind: str, release: Release) -> RecordedTasks:
    """Returns what was recorded of a run: "tfx", or "native" for a pipeline without TFX."""
    text = (GOLDEN / f"{kind}-{release.version}.json").read_text()
    run = json.loads(text)["run"]
    # Within JSON, so that all other texts stay as they are.
    session = json.dumps(run["store_session_info"])
    text = text.replace(f'"{_SHORT_SESSION}"', session)
    text = text.replace(f'"{_SHORT_ROOT}/', f'"{run["pipeline_root"]}/')
    return RecordedTasks(**json.loads(text))


def find_recorded(artifacts: Mapping[str, dict[str, Any]], task: str, key: str) -> dict[str, Any]:
    """Returns an output of a task as ML Metadata had it, in the form of ExecutorInput."""
    found = artifacts[f"{task}.{key}"]
    return {
        "name": found["id"],
        "type": {"instanceSchema": ""},
        "uri": found["uri"],
        "metadata": as_protojson(found["properties"]),
    }
