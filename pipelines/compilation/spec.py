"""Compiles the pipeline for Kubeflow Pipelines and Vertex AI Pipelines: offline, always alike.

TFX's KubeflowV2DagRunner makes the spec. What it cannot express is added to the spec afterwards:
run-time parameters with defaults, caching and retries by task, resources, environment.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from tfx.dsl.components.base import base_node, executor_spec
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner
from tfx.orchestration.pipeline import Pipeline

from darkroom.components.parameters import PARAMETERS, Parameter, encode_value
from darkroom.errors import UsageError
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.pipelines.compilation.beam_arguments import make_beam_args
from darkroom.pipelines.compilation.checks import check_config, make_secrets
from darkroom.pipelines.compilation.resources import (
    Resources,
    check_components,
    find_resources,
    spell_accelerator,
)
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.pipeline import create_pipeline

ENTRYPOINT = ("python", "-m", "darkroom.components.entrypoint")
_TYPES = {str: "STRING", int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE"}
_INPUTS_SPEC = "--json_serialized_inputs_spec_args"
_BACKOFF = {"backoffDuration": "30s", "backoffFactor": 2.0}
_LONGEST_INPUTS = 120_000  # bytes
# Kubeflow counts from the start of the first attempt, and ends one that is running then: what works
# for more than this is never tried again. Vertex takes an hour at most.
_LONGEST_RETRYING = {KUBEFLOW: "2592000s", VERTEX: "3600s"}


def compile_pipeline(config: PipelineConfig, target: str) -> dict[str, Any]:
    """Compiles a configuration; reads nothing but the label map, and asks nobody.

    Args:
        config: What to compile; its values are the defaults of the run-time parameters. With a
            `source_fingerprint`, ManifestGen may be taken from earlier runs, too.
        target: `kubeflow` or `vertex`.

    Returns:
        For Kubeflow the pipeline spec (schema 2.1.0), beside which `make_platform_spec` may be
        needed; for Vertex the job spec that holds it. Dicts of values that JSON knows.

    Raises:
        UsageError: A value cannot work on the target, or holds a credential.
    """
    check_config(config, target)
    config = dataclasses.replace(
        config, beam_args=tuple(make_beam_args(config)), push_to=config.push_to or ""
    )
    pipeline = create_pipeline(config, config.manifest.labels)
    check_components(config.resources, [node.id for node in pipeline.components])
    job = _run_compiler(pipeline, config, target)
    spec = job["pipelineSpec"]
    spec["defaultPipelineRoot"] = config.root
    for node in pipeline.components:
        _patch_container(spec, node, config, target)
        _patch_task(spec, node.id, config, target)
        _check_length(spec, node.id)
    _add_parameters(spec, config)
    if target == KUBEFLOW:
        return spec  # type: ignore[no-any-return]
    job["runtimeConfig"] = {"gcsOutputDirectory": config.root}
    return job


def _run_compiler(pipeline: Pipeline, config: PipelineConfig, target: str) -> dict[str, Any]:
    runner_config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image=config.image,
        default_commands=[*ENTRYPOINT, "--target", target],
        use_pipeline_spec_2_1=True,
    )
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=runner_config)
    return runner.run(pipeline, write_out=False)  # type: ignore[no-any-return]


def _patch_container(
    spec: dict[str, Any], node: base_node.BaseNode, config: PipelineConfig, target: str
) -> None:
    """Completes a task's container: its arguments, environment and resources."""
    container = spec["deploymentSpec"]["executors"][f"{node.id}_executor"]["container"]
    # TFX hands Beam's arguments to all nodes; elsewhere they would only change the cache's key.
    if not isinstance(node.executor_spec, executor_spec.BeamExecutorSpec):
        end = len(container["args"]) - len(config.beam_args)
        container["args"] = container["args"][:end]
    if config.env:
        container["env"] = [{"name": k, "value": v} for k, v in sorted(config.env.items())]
    if resources := _make_resources(find_resources(config.resources, node.id), target):
        container["resources"] = resources


def _make_resources(given: Resources, target: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if given.cpu is not None:
        made["cpuLimit"] = float(given.cpu)
    if given.memory_gb is not None:
        made["memoryLimit"] = float(given.memory_gb)
    if given.accelerator is not None:
        kind = spell_accelerator(given.accelerator, target)
        # The form of an int64 in JSON.
        made["accelerator"] = {"type": kind, "count": str(given.num_accelerators)}
    return made


def _patch_task(spec: dict[str, Any], node: str, config: PipelineConfig, target: str) -> None:
    """Completes a task: whether it may be taken from an earlier run, and how often it is tried.

    The cache compares properties and artifacts, never what lies behind a path. So what reads a path
    is run again each time, unless the state of what it reads is among its properties.
    """
    task = spec["root"]["dag"]["tasks"][node]
    is_pinned = {
        "ImportSchemaGen": False,
        "ManifestGen": bool(config.source_fingerprint),
        "Trainer": config.weights is None or bool(config.model_fingerprint),
    }.get(node, True)
    task["cachingOptions"] = {"enableCache": True} if config.cache and is_pinned else {}
    if retries := find_resources(config.resources, node).retries:
        longest = {"backoffMaxDuration": _LONGEST_RETRYING[target]}
        task["retryPolicy"] = {"maxRetryCount": retries, **_BACKOFF, **longest}


def _check_length(spec: dict[str, Any], node: str) -> None:
    """Checks that a task's properties fit into one argument, as which a container gets them all.

    Raises:
        UsageError: They do not: Linux takes 128 KiB, and what artifacts there are comes on top.
    """
    inputs = spec["root"]["dag"]["tasks"][node].get("inputs", {}).get("parameters", {})
    length = len(json.dumps(inputs, ensure_ascii=False).encode())
    if length > _LONGEST_INPUTS:
        raise UsageError(
            f"The options of {node} have {length} bytes, expected at most {_LONGEST_INPUTS}: "
            "a container gets them as one argument.",
            "Leave label_map out (labels are then in the order of their text), or shorten it.",
        )


def _add_parameters(spec: dict[str, Any], config: PipelineConfig) -> None:
    """Makes each parameter an input of the pipeline and of the tasks that it concerns."""
    inputs = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
    for parameter in PARAMETERS:
        inputs[parameter.name] = {
            "parameterType": _TYPES[parameter.kind],
            "defaultValue": encode_value(parameter, getattr(config, parameter.name)),
            "isOptional": True,
        }
        _add_task_parameter(spec, parameter)
    for component in {parameter.component for parameter in PARAMETERS}:
        _write_inputs_spec(spec, component)


def _add_task_parameter(spec: dict[str, Any], parameter: Parameter) -> None:
    task = spec["root"]["dag"]["tasks"][parameter.component]
    definitions = spec["components"][parameter.component]["inputDefinitions"]["parameters"]
    # What is a whole property takes its place; other values go beside the property they belong to.
    name = parameter.name if parameter.path else parameter.property
    definitions[name] = {"parameterType": _TYPES[parameter.kind]}
    task["inputs"]["parameters"][name] = {"componentInputParameter": parameter.name}


def _write_inputs_spec(spec: dict[str, Any], component: str) -> None:
    """Writes a task's inputs into the argument by which its entrypoint knows their types."""
    args = spec["deploymentSpec"]["executors"][f"{component}_executor"]["container"]["args"]
    inputs = spec["components"][component]["inputDefinitions"]
    args[args.index(_INPUTS_SPEC) + 1] = json.dumps(inputs, sort_keys=True)


def make_platform_spec(config: PipelineConfig, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the second document of a file for Kubeflow: what only Kubernetes knows.

    Args:
        config: What was compiled.
        spec: What `compile_pipeline` made of it.

    Returns:
        Secrets as environment, mounted claims, node selectors and tolerations by executor; None
        when there are none.
    """
    executors = {}
    for node in spec["root"]["dag"]["tasks"]:
        if options := _make_kubernetes_options(config, find_resources(config.resources, node)):
            executors[f"{node}_executor"] = options
    if not executors:
        return None
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}


def _make_kubernetes_options(config: PipelineConfig, resources: Resources) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if config.secret_env:
        options["secretAsEnv"] = make_secrets(config.secret_env)
    if config.volumes:
        options["pvcMount"] = [
            {"constant": claim, "mountPath": folder}
            for folder, claim in sorted(config.volumes.items())
        ]
    if resources.node_selector:
        options["nodeSelector"] = {"labels": dict(resources.node_selector)}
    if resources.tolerations:
        options["tolerations"] = [dict(each) for each in resources.tolerations]
    return options
