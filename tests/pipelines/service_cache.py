"""The cache of Kubeflow Pipelines, by the keys of its driver (`backend/test_driver.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .backend.driver import (
    Task,
    find_parameters,
    list_tasks,
    make_cache_key,
    make_fingerprint,
    make_input,
)
from .backend.release import V2_17

_ROOT = "gs://bucket/run"  # of no effect: no URI is in a key


@dataclass
class ServiceCache:
    """What a service remembers of the tasks that it ran.

    Attributes:
        outputs: Ids of a task's output artifacts by name, by its key.
        num_artifacts: How many were ever made; their number is their id.
    """

    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    num_artifacts: int = 0

    def run(
        self, spec: Mapping[str, Any], parameters: Mapping[str, Any], run_id: str = ""
    ) -> set[str]:
        """Runs a pipeline; returns the tasks that did their work."""
        values = find_parameters(spec, parameters)
        done: dict[str, dict[str, str]] = {}
        worked = set()
        for task in list_tasks(spec):
            fingerprint = self._make_fingerprint(task, values, done, run_id)
            if task.is_cached and fingerprint in self.outputs:
                done[task.name] = self.outputs[fingerprint]
                continue
            worked.add(task.name)
            done[task.name] = self._make_artifacts(task)
            if task.is_cached:
                self.outputs[fingerprint] = done[task.name]
        return worked

    def _make_artifacts(self, task: Task) -> dict[str, str]:
        made = {}
        for name in task.component.get("outputDefinitions", {}).get("artifacts", {}):
            self.num_artifacts += 1
            made[name] = str(self.num_artifacts)
        return made

    def _make_fingerprint(
        self,
        task: Task,
        values: Mapping[str, Any],
        done: Mapping[str, Mapping[str, str]],
        run_id: str,
    ) -> str:
        def find_artifact(task: str, key: str) -> dict[str, Any]:
            return {"name": done[task][key]}

        given = make_input(task, values, find_artifact, _ROOT, V2_17, run_id)
        return make_fingerprint(make_cache_key(task, given))
