"""What Kubeflow's launcher hands to the process of a task, and reads after it.

After `component/launcher_v2.go` of kubeflow/pipelines, backend/src/v2.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from .driver import Task, as_protojson

pipeline_spec_pb2 = pytest.importorskip(
    "kfp.pipeline_spec.pipeline_spec_pb2", reason="needs the extra [kfp]"
)


def format_command(task: Task, given: dict[str, Any]) -> list[str]:
    """Returns the command of a task with its ExecutorInput in it."""
    inputs = dict(given["inputs"])
    known = task.component.get("inputDefinitions", {}).get("parameters", {})
    defaults = {key: each["defaultValue"] for key, each in known.items() if "defaultValue" in each}
    if defaults:  # the launcher adds them, not the driver
        values = {**defaults, **inputs.get("parameterValues", {})}
        inputs["parameterValues"] = as_protojson(values)
    text = json.dumps({**given, "inputs": inputs}, separators=(",", ":"), ensure_ascii=False)
    # It must be an ExecutorInput of this kfp, too.
    json_format.Parse(text, pipeline_spec_pb2.ExecutorInput())
    # The SDK puts a parameter into a text, a list or a table by a placeholder, replaced as text.
    for name, value in inputs.get("parameterValues", {}).items():
        shown = value if isinstance(value, str) else json.dumps(value)
        if isinstance(value, float):  # without an exponent
            shown = format(Decimal(shown), "f")
        text = text.replace(f"{{{{$.inputs.parameters['{name}']}}}}", shown)
    return [each.replace("{{$}}", text) for each in task.command]


def read_output(path: Path) -> dict[str, Any]:
    """Returns the artifacts of an ExecutorOutput by name."""
    text = path.read_text()
    json_format.Parse(text, pipeline_spec_pb2.ExecutorOutput())
    artifacts: dict[str, Any] = json.loads(text).get("artifacts", {})
    return artifacts


def read_parameters(task: Task, outputs: dict[str, Any]) -> dict[str, Any]:
    """Returns the output parameters of a task by name, from the files that its process wrote."""
    kinds = task.component.get("outputDefinitions", {}).get("parameters", {})
    texts = {
        key: Path(e["outputFile"]).read_text() for key, e in outputs.get("parameters", {}).items()
    }
    return {
        key: text if kinds[key]["parameterType"] == "STRING" else json.loads(text)
        for key, text in texts.items()
    }


def merge_output(artifact: dict[str, Any], output: dict[str, Any] | None) -> dict[str, Any]:
    """Returns an output as it is recorded: what was asked for, and what the task says of it."""
    if output is None:
        return artifact
    [found] = output["artifacts"]
    metadata = {**artifact.get("metadata", {}), **found.get("metadata", {})}
    return {**artifact, "uri": found.get("uri") or artifact["uri"], "metadata": metadata}
