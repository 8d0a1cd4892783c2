"""KFP's ExecutorInput: the JSON that each container gets, with TFX or without."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from darkroom.errors import UsageError


def parse_executor_input(text: str) -> dict[str, Any]:
    """Returns an ExecutorInput with all the parts that a task reads.

    Returns:
        `inputs`, with `parameterValues` by name, and `outputs`, with the place of the
        ExecutorOutput as `outputFile`. Both have `artifacts`: by name, a table with the list
        `artifacts`, in which each has a `uri` and may have `type` and `metadata`.

    Raises:
        UsageError: The text is not an ExecutorInput.
    """
    try:
        task: dict[str, Any] = json.loads(text)
        inputs, outputs = task.setdefault("inputs", {}), task["outputs"]
        _ = inputs.setdefault("parameterValues", {}).keys(), outputs["outputFile"]
        for part in (inputs, outputs):
            part.setdefault("artifacts", {})
            _ = [artifact["uri"] for artifact in list_artifacts(part)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"This is not an ExecutorInput of Kubeflow Pipelines: {error!r}.",
            "Let the compiled pipeline or the component pass it: its argument is {{$}}.",
        ) from error
    return task


def list_artifacts(part: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the artifacts among the inputs or the outputs of a task."""
    for found in part["artifacts"].values():
        yield from found.get("artifacts", ())
