"""The rules for a pipeline spec of Kubeflow's API server, its compiler and its driver.

The facts come from reading their Go code (`v2_template.go`, `argocompiler`, `driver`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any

import yaml

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# TFX imports an artifact's class by this title.
_TITLE = re.compile(r"[a-z][a-z0-9-_]{2,20}[.][A-Z][a-zA-Z0-9-_]{2,49}")
_TYPES = {"STRING": str, "NUMBER_INTEGER": (int, float), "NUMBER_DOUBLE": (int, float)}
_INPUT_KINDS = {"runtimeValue", "componentInputParameter"}
_ROOTS = ("gs://", "s3://", "minio://")


def find_violations(spec: dict[str, Any]) -> list[str]:
    """Returns what is wrong with a bare pipeline spec, in words; nothing when all is well."""
    found = []
    if spec.get("schemaVersion") != "2.1.0":
        found.append(f"schemaVersion is {spec.get('schemaVersion')!r}")
    if not _NAME.fullmatch(spec.get("pipelineInfo", {}).get("name", "")):
        found.append("pipelineInfo.name is not a DNS name")
    if not spec.get("defaultPipelineRoot", "gs://").startswith(_ROOTS):
        found.append("defaultPipelineRoot is in no store")
    found += _check_parameters(spec)
    found += _check_components(spec)
    found += _check_order(spec)
    for name, task in spec["root"]["dag"]["tasks"].items():
        found += [f"{name}: {problem}" for problem in _check_task(spec, task)]
    return found


def _check_parameters(spec: dict[str, Any]) -> Iterator[str]:
    for name, parameter in spec["root"].get("inputDefinitions", {}).get("parameters", {}).items():
        kind = _TYPES.get(parameter.get("parameterType"))
        if kind is None:
            yield f"the parameter {name} has the type {parameter.get('parameterType')}"
        elif not isinstance(parameter.get("defaultValue"), kind):
            yield f"the default of {name} is no {parameter['parameterType']}"


def _check_components(spec: dict[str, Any]) -> Iterator[str]:
    executors = spec["deploymentSpec"]["executors"]
    labels = {component.get("executorLabel") for component in spec["components"].values()}
    if labels != set(executors):
        yield f"components and executors differ: {labels ^ set(executors)}"
    for label, executor in executors.items():
        if set(executor) != {"container"}:
            yield f"{label} is {sorted(executor)}, not a container"
        container = executor.get("container", {})
        if not container.get("image") or not container.get("command"):
            yield f"{label} lacks an image or a command"
        if "lifecycle" in container:
            yield f"{label} has a lifecycle, which Kubeflow never reads"
    for name, component in spec["components"].items():
        for way in ("inputDefinitions", "outputDefinitions"):
            for key, each in component.get(way, {}).get("artifacts", {}).items():
                kind = each["artifactType"]
                if kind.get("schemaTitle", "").startswith("system."):
                    title = kind["schemaTitle"] if kind.get("schemaVersion") == "0.0.1" else ""
                else:
                    title = yaml.safe_load(kind["instanceSchema"])["title"]
                if not _TITLE.fullmatch(title) or title.startswith("system.") != (
                    "schemaTitle" in kind
                ):
                    yield f"{name}.{key} has the type {kind}"


def _check_order(spec: dict[str, Any]) -> Iterator[str]:
    tasks = spec["root"]["dag"]["tasks"]
    before = {name: task.get("dependentTasks", []) for name, task in tasks.items()}
    if unknown := {each for names in before.values() for each in names} - set(tasks):
        yield f"no such task: {unknown}"
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        yield f"a circle of tasks: {error.args[1]}"


def _check_task(spec: dict[str, Any], task: dict[str, Any]) -> Iterator[str]:
    component = spec["components"].get(task["componentRef"]["name"])
    if component is None:
        yield f"no component {task['componentRef']['name']}"
        return
    if "triggerPolicy" in task:
        yield "a condition"
    inputs = task.get("inputs", {})
    defined = component.get("inputDefinitions", {})
    for kind in ("parameters", "artifacts"):
        if set(inputs.get(kind, {})) != set(defined.get(kind, {})):
            yield f"{kind} given and defined differ"
    for name, given in inputs.get("parameters", {}).items():
        yield from _check_input(spec, name, given)
    for name, given in inputs.get("artifacts", {}).items():
        source = given["taskOutputArtifact"]
        outputs = spec["components"].get(source["producerTask"], {}).get("outputDefinitions", {})
        if source["outputArtifactKey"] not in outputs.get("artifacts", {}):
            yield f"{name} comes from an output that does not exist"
        if source["producerTask"] not in task.get("dependentTasks", []):
            yield f"{name} comes from a task that it does not wait for"


def _check_input(spec: dict[str, Any], name: str, given: dict[str, Any]) -> Iterator[str]:
    if set(given) - _INPUT_KINDS or len(given) != 1:
        yield f"{name} is given by {sorted(given)}"
    if "runtimeValue" in given and set(given["runtimeValue"]) != {"constant"}:
        yield f"{name} is not a constant"
    parameters = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    if "componentInputParameter" in given and given["componentInputParameter"] not in parameters:
        yield f"{name} comes from a parameter that does not exist"
