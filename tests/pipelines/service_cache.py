"""The caches of Kubeflow Pipelines and Vertex AI Pipelines, by what goes into their keys.

Kubeflow: GenerateCacheKey, GenerateFingerPrint, getFingerPrint and provisionOutputs of its driver
(kubeflow/pipelines, backend/src/v2/cacheutils/cache.go and backend/src/v2/driver). Vertex: as its
page "Configure execution caching" says, the same and the environment.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_RUN_ID = "{{$.pipeline_job_uuid}}"


@dataclass
class ServiceCache:
    """What a service remembers of the tasks that it ran.

    Attributes:
        with_environment: Whether environment variables are in the key, as on Vertex.
        outputs: Ids of a task's output artifacts by name, by its key.
        num_artifacts: How many were ever made; their number is their id.
    """

    with_environment: bool = False
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    num_artifacts: int = 0

    def run(
        self, spec: Mapping[str, Any], parameters: Mapping[str, Any], run_id: str = ""
    ) -> set[str]:
        """Runs a pipeline; returns the tasks that did their work."""
        definitions = spec["root"].get("inputDefinitions", {}).get("parameters", {})
        values = {name: each.get("defaultValue") for name, each in definitions.items()}
        done: dict[str, dict[str, str]] = {}
        worked = set()
        waiting = dict(spec["root"]["dag"]["tasks"])
        while waiting:
            name = next(
                n for n, t in waiting.items() if set(t.get("dependentTasks", ())) <= {*done}
            )
            task = waiting.pop(name)
            given = {**values, **parameters, _RUN_ID: run_id}
            key = self._make_key(spec, task, given, done)
            is_cached = task.get("cachingOptions", {}).get("enableCache", False)
            if is_cached and key in self.outputs:
                done[name] = self.outputs[key]
                continue
            worked.add(name)
            done[name] = self._make_artifacts(spec["components"][task["componentRef"]["name"]])
            if is_cached:
                self.outputs[key] = done[name]
        return worked

    def _make_artifacts(self, component: Mapping[str, Any]) -> dict[str, str]:
        made = {}
        for name in component.get("outputDefinitions", {}).get("artifacts", {}):
            self.num_artifacts += 1
            made[name] = str(self.num_artifacts)
        return made

    def _make_key(
        self,
        spec: Mapping[str, Any],
        task: Mapping[str, Any],
        values: Mapping[str, Any],
        done: Mapping[str, Mapping[str, str]],
    ) -> str:
        component = spec["components"][task["componentRef"]["name"]]
        container = spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        inputs = task.get("inputs", {})
        artifacts = component.get("outputDefinitions", {}).get("artifacts", {})
        key = {
            "inputArtifactNames": {
                name: {"artifactNames": [_find_artifact(source, done)]}
                for name, source in inputs.get("artifacts", {}).items()
            },
            "inputParameterValues": {
                name: _find_value(source, values)
                for name, source in inputs.get("parameters", {}).items()
            },
            "outputArtifactsSpec": {
                name: {"name": name, "type": each["artifactType"], **_get(each, "metadata")}
                for name, each in artifacts.items()
            },
            "containerSpec": {
                "image": container["image"],
                "cmdArgs": [*container.get("command", ()), *container.get("args", ())],
            },
        }
        if self.with_environment:
            key["containerSpec"]["env"] = container.get("env", [])
        return make_fingerprint(key)


def _get(mapping: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {name: mapping[name]} if name in mapping else {}


def _find_artifact(source: Mapping[str, Any], done: Mapping[str, Mapping[str, str]]) -> str:
    made = source["taskOutputArtifact"]
    return done[made["producerTask"]][made["outputArtifactKey"]]


def _find_value(source: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    if parameter := source.get("componentInputParameter"):
        return values[parameter]
    # The driver puts the run's id where a constant is this text and no more (resolve.go).
    constant = source["runtimeValue"]["constant"]
    return values[_RUN_ID] if constant == _RUN_ID else constant


def make_fingerprint(key: Mapping[str, Any]) -> str:
    """Returns Kubeflow's fingerprint of a cache key in protobuf's JSON, empty fields left out."""
    full = {name: value for name, value in key.items() if value}
    text = json.dumps(full, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":  # as Go's encoding/json does
        text = text.replace(character, f"\\u{ord(character):04x}")
    return hashlib.sha256(text.encode()).hexdigest()
