"""Makes the pipeline spec for Kubeflow Pipelines and Vertex AI Pipelines, offline.

TFX's KubeflowV2DagRunner makes the spec. This module adds what the runner cannot express: run-time
parameters with defaults, caching and retries by task, resources, environment.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml
from tfx.dsl.components.base import executor_spec
from tfx.dsl.components.common.resolver import Resolver
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner

from darkroom.components.parameters import PARAMETERS, encode_value
from darkroom.components.system_artifacts import SYSTEM_ARTIFACTS
from darkroom.errors import UsageError
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.options.training import APPLICATIONS_PREFIX
from darkroom.pipelines.compilation.beam_arguments import make_beam_args, make_other_beam_args
from darkroom.pipelines.compilation.checks import check_config, make_secrets, name_baseline
from darkroom.pipelines.compilation.places import do_tasks_read_labels
from darkroom.pipelines.compilation.resources import (
    Resources,
    check_components,
    find_resources,
    spell_accelerator,
)
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.pipeline import create_pipeline
from darkroom.training.models import check_model

ENTRYPOINT = ("python", "-m", "darkroom.components.entrypoint")
_TYPES = {str: "STRING", int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE"}
_INPUTS_SPEC = "--json_serialized_inputs_spec_args"
_BACKOFF = {"backoffDuration": "30s", "backoffFactor": 2.0}
# Linux takes 128 KiB as one argument or variable. Argo 3.5, with Kubeflow Pipelines 2.5, gives a
# container its template in a variable, in which the task's input is twice; other things need some.
_LONGEST_TEMPLATE = 131_072 - 11_000  # bytes
# From 2.14 on, the driver of the whole run gets all tasks in one argument.
_LONGEST_ROOT = 131_072 - 3_000  # bytes
# Kubeflow counts from the start of the first attempt, and stops an attempt that still runs then: a
# task that takes longer is never retried. Vertex accepts an hour at most.
_LONGEST_RETRYING = {KUBEFLOW: "2592000s", VERTEX: "3600s"}


def compile_pipeline(config: PipelineConfig, target: str) -> dict[str, Any]:
    """Compiles a configuration; reads nothing but the label map, and connects to no server.

    Args:
        config: What to compile; its values are the defaults of the run-time parameters. With a
            `source_fingerprint`, ManifestGen's outputs may come from the cache, too.
        target: `kubeflow` or `vertex`.

    Returns:
        For Kubeflow the pipeline spec (schema 2.1.0), which `make_platform_spec` may complete; for
        Vertex the job spec that contains it. Dicts of values that JSON knows.

    Raises:
        UsageError: A value cannot work on the target, or contains a credential.
    """
    check_config(config, target)
    return make_documents(config, target)[0]


def make_documents(config: PipelineConfig, target: str) -> list[dict[str, Any]]:
    """Returns what the compiled file of a configuration contains, one dict for each document.

    Args:
        config: A configuration that was checked for the target; see `compilation.checks`.
        target: `kubeflow` or `vertex`.

    Returns:
        For Kubeflow the pipeline spec and, when there is any, the platform spec; for Vertex the job
        spec.

    Raises:
        UsageError: A value cannot work on the target.
    """
    config = name_baseline(config, target)
    beam_args = make_beam_args(config)
    # A model of one's own may be in the image alone.
    if config.model.startswith(APPLICATIONS_PREFIX):
        check_model(config.model)
    compiled_in = not do_tasks_read_labels(config, target)
    pipeline = create_pipeline(
        config,
        config.manifest.resolve_labels().labels if compiled_in else None,
        beam_args=beam_args,
        push_dir=config.push_to or "",
    )
    check_components(config.resources, [node.id for node in pipeline.components])
    runner_config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image=config.image,
        default_commands=[*ENTRYPOINT, "--target", target],
        use_pipeline_spec_2_1=True,
    )
    runner = kubeflow_v2_dag_runner.KubeflowV2DagRunner(config=runner_config)
    job: dict[str, Any] = runner.run(pipeline, write_out=False)
    spec = job["pipelineSpec"]
    spec.pop("defaultPipelineRoot", None)
    if config.root:
        spec["defaultPipelineRoot"] = config.root
    for node in pipeline.components:
        if isinstance(node, Resolver):
            continue  # Vertex runs it itself, without a container
        container = spec["deploymentSpec"]["executors"][f"{node.id}_executor"]["container"]
        # TFX gives Beam's arguments to all nodes; without Beam they only change the cache key.
        if not isinstance(node.executor_spec, executor_spec.BeamExecutorSpec):
            del container["args"][-len(beam_args) :]
        elif node.id != "ImageToTFRecord":
            container["args"][-len(beam_args) :] = make_other_beam_args(config)
        _complete_container(container, node.id, config, target)
        _complete_task(spec, node.id, config, target)
        _check_length(spec, node.id)
    _add_parameters(spec, config)
    _check_root_length(spec)
    _name_system_types(spec)
    if target == KUBEFLOW:
        platform = make_platform_spec(config, spec)
        return [spec] if platform is None else [spec, platform]
    job["runtimeConfig"] = {"gcsOutputDirectory": config.root}
    return [job]


def _complete_container(
    container: dict[str, Any], node: str, config: PipelineConfig, target: str
) -> None:
    """Completes a task's container: its environment and resources."""
    if config.env:
        container["env"] = [{"name": k, "value": v} for k, v in sorted(config.env.items())]
    given = find_resources(config.resources, node)
    resources: dict[str, Any] = {}
    for name, value in (
        ("cpuLimit", given.cpu),
        ("memoryLimit", given.memory_gb),
        ("cpuRequest", given.cpu_request),
        ("memoryRequest", given.memory_gb_request),
    ):
        if value is not None:
            resources[name] = float(value)
    if given.accelerator is not None:
        kind = spell_accelerator(given.accelerator, target)
        # JSON writes an int64 as text.
        resources["accelerator"] = {"type": kind, "count": str(given.num_accelerators)}
    if resources:
        container["resources"] = resources


def _complete_task(spec: dict[str, Any], node: str, config: PipelineConfig, target: str) -> None:
    """Completes a task: whether the cache may be used for it, and how often it is retried.

    The cache compares properties and artifacts, never the files behind a path. So a task that reads
    a path runs each time, unless the state of those files is among its properties.
    """
    task = spec["root"]["dag"]["tasks"][node]
    # Weights are a run-time parameter: whoever runs the file may name some. Where ManifestGen runs
    # each time, Trainer has new input anyway.
    reads_no_weights = config.weights is None and not config.source_fingerprint
    is_pinned = {
        "ImportSchemaGen": False,
        # What is in the folder where it pushes, the cache does not know; and whoever runs the file
        # may name such a folder.
        "Pusher": False,
        "ManifestGen": bool(config.source_fingerprint),
        "Trainer": reads_no_weights or bool(config.model_fingerprint),
    }.get(node, True)
    task["cachingOptions"] = {"enableCache": True} if config.cache and is_pinned else {}
    if retries := find_resources(config.resources, node).retries:
        longest = {"backoffMaxDuration": _LONGEST_RETRYING[target]}
        task["retryPolicy"] = {"maxRetryCount": retries, **_BACKOFF, **longest}


def _check_length(spec: dict[str, Any], node: str) -> None:
    """Checks that a task's properties fit into what each version of Kubeflow passes them by.

    Raises:
        UsageError: They do not fit.
    """
    inputs = spec["root"]["dag"]["tasks"][node].get("inputs", {}).get("parameters", {})
    texts = [each["runtimeValue"]["constant"] for each in inputs.values() if "runtimeValue" in each]
    texts.append(spec["deploymentSpec"]["executors"][f"{node}_executor"]["container"].get("env"))
    # The template is JSON, with the pod's patch as a text of JSON, with the input as another one.
    length = 2 * len(json.dumps(json.dumps(json.dumps(texts))))
    if length > _LONGEST_TEMPLATE:
        raise _make_length_error(f"The options of {node}", length, _LONGEST_TEMPLATE)


def _check_root_length(spec: Mapping[str, Any]) -> None:
    length = len(json.dumps(spec["root"], ensure_ascii=False).encode())
    if length > _LONGEST_ROOT:
        raise _make_length_error("The options of all tasks", length, _LONGEST_ROOT)


def _make_length_error(what: str, length: int, longest: int) -> UsageError:
    return UsageError(
        f"{what} need {length:,} bytes where Kubeflow Pipelines passes them, expected at most "
        f"{longest:,}.",
        "Put a long label map into a store or a volume, and give its path: the tasks then read "
        "the file.",
    )


def _add_parameters(spec: dict[str, Any], config: PipelineConfig) -> None:
    """Makes each parameter an input of the pipeline and of the tasks that use it."""
    pipeline_inputs = spec["root"].setdefault("inputDefinitions", {}).setdefault("parameters", {})
    for parameter in PARAMETERS:
        kind = {"parameterType": _TYPES[parameter.kind]}
        default = encode_value(parameter, getattr(config, parameter.name))
        pipeline_inputs[parameter.name] = {**kind, "defaultValue": default, "isOptional": True}
        # A parameter that is a whole property replaces it; any other is passed beside its property.
        name = parameter.name if parameter.path else parameter.property
        task_inputs = spec["components"][parameter.component]["inputDefinitions"]["parameters"]
        task_inputs[name] = kind
        task = spec["root"]["dag"]["tasks"][parameter.component]
        task["inputs"]["parameters"][name] = {"componentInputParameter": parameter.name}
    for component in {parameter.component for parameter in PARAMETERS}:
        # The argument from which the entrypoint knows the types of its inputs.
        args = spec["deploymentSpec"]["executors"][f"{component}_executor"]["container"]["args"]
        inputs = spec["components"][component]["inputDefinitions"]
        args[args.index(_INPUTS_SPEC) + 1] = json.dumps(inputs, sort_keys=True)


def _name_system_types(spec: dict[str, Any]) -> None:
    """Writes the types that the services know by name as their own SDK does.

    TFX describes every type, which makes a new one of the same name; Vertex may refuse that.
    """
    for component in spec["components"].values():
        for way in ("inputDefinitions", "outputDefinitions"):
            for each in component.get(way, {}).get("artifacts", {}).values():
                title = yaml.safe_load(each["artifactType"]["instanceSchema"])["title"]
                if title in SYSTEM_ARTIFACTS:
                    each["artifactType"] = {"schemaTitle": title, "schemaVersion": "0.0.1"}


def make_platform_spec(config: PipelineConfig, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the second document of a file for Kubeflow: the options that only Kubernetes knows.

    Args:
        config: The configuration that was compiled.
        spec: What `compile_pipeline` returned for it.

    Returns:
        Environment from Secrets, mounted claims, and what the pods need, by executor; None when
        there is nothing.
    """
    shared: dict[str, Any] = {}
    if config.secret_env:
        shared["secretAsEnv"] = make_secrets(config.secret_env)
    if config.volumes:
        shared["pvcMount"] = [
            {"constant": claim, "mountPath": folder}
            for folder, claim in sorted(config.volumes.items())
        ]
    if config.image_pull_secrets:
        shared["imagePullSecret"] = [{"secretName": name} for name in config.image_pull_secrets]
    executors = {}
    for node in spec["root"]["dag"]["tasks"]:
        if options := {**shared, **_make_pod(find_resources(config.resources, node))}:
            executors[f"{node}_executor"] = options
    if not executors:
        return None
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}


def _make_pod(resources: Resources) -> dict[str, Any]:
    """Returns what the pod of a task needs, in the words of Kubeflow's platform spec."""
    # Older versions of Kubeflow do not know the security context, and leave it out.
    pod: dict[str, Any] = {}
    if not resources.runs_as_root:
        pod["securityContext"] = {"runAsNonRoot": True}
    if resources.timeout_seconds is not None:
        pod["activeDeadlineSeconds"] = str(resources.timeout_seconds)  # an int64
    metadata = {"labels": resources.pod_labels, "annotations": resources.pod_annotations}
    if given := {name: dict(values) for name, values in metadata.items() if values}:
        pod["podMetadata"] = given
    if resources.node_selector:
        pod["nodeSelector"] = {"labels": dict(resources.node_selector)}
    if resources.tolerations:
        pod["tolerations"] = [dict(each) for each in resources.tolerations]
    return pod
