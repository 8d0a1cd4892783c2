"""Makes the job of a TFX pipeline, offline, with the resources of its tasks in a cluster.

TFX's KubeflowV2DagRunner makes the spec. This module adds what the runner cannot express: caching
and retries by task, resources, environment, and the parts that only Kubernetes knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from tfx.dsl.components.base import executor_spec
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.common.resolver import Resolver
from tfx.orchestration.kubeflow.v2 import kubeflow_v2_dag_runner
from tfx.orchestration.pipeline import Pipeline

from darkroom.components.system_artifacts import SYSTEM_ARTIFACTS
from darkroom.errors import UsageError
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.pipelines.compilation.check import check_digests, make_secrets
from darkroom.pipelines.config import ClusterConfig
from darkroom.pipelines.resources import (
    check_components,
    find_resources,
    spell_accelerator,
)

ENTRYPOINT = ("python", "-m", "darkroom.components.entrypoint")
# They open nothing but artifacts, which Kubeflow copies for them, and get no keys of a store.
_KEYLESS = {
    "darkroom.components.model_report.executor.Executor",
    "darkroom.components.validation_gate.executor.Executor",
    "tfx.components.example_validator.executor.Executor",
    "tfx.components.schema_gen.executor.Executor",
}
_BACKOFF = {"backoffDuration": "30s", "backoffFactor": 2.0}
# Linux takes 128 KiB as one argument or variable. Argo 3.5, with Kubeflow Pipelines 2.5, gives a
# container its template in a variable, in which the task's input is twice; other things need some.
_LONGEST_TEMPLATE = 131_072 - 11_000  # bytes
# From 2.14 on, the driver of the whole run gets all tasks in one argument.
_LONGEST_ROOT = 131_072 - 3_000  # bytes
# Vertex gives a container the task's input as one argument; other things need some of it.
_LONGEST_INPUT = 131_072 - 11_000  # bytes
# Kubeflow counts from the start of the first attempt, and stops an attempt that still runs then: a
# task that takes longer is never retried. Vertex accepts an hour at most.
_LONGEST_RETRYING = {KUBEFLOW: "2592000s", VERTEX: "3600s"}


def make_job(
    pipeline: Pipeline,
    config: ClusterConfig,
    target: str,
    *,
    is_cached: Callable[[BaseNode], bool],
    flags: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the job spec of a pipeline, with the resources of each task.

    Args:
        pipeline: Any pipeline of TFX.
        config: The options of the cluster, checked for the target.
        target: `kubeflow` or `vertex`.
        is_cached: Tells whether a node's results may come from the cache. It compares properties
            and artifacts, never the files behind a path. So a node that reads a path runs each
            time, unless the state of those files is among its properties.
        flags: More arguments of the entrypoint.

    Raises:
        UsageError: A value cannot work on the target, or is for a node that does not exist.
    """
    check_components(config.resources, [node.id for node in pipeline.components])
    runner_config = kubeflow_v2_dag_runner.KubeflowV2DagRunnerConfig(
        default_image=config.image,
        default_commands=[*ENTRYPOINT, "--target", target, *flags],
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
        # An Importer has none either.
        if container := spec["deploymentSpec"]["executors"][f"{node.id}_executor"].get("container"):
            # TFX gives them to all nodes; without Beam they only change the cache key.
            uses_beam = isinstance(node.executor_spec, executor_spec.BeamExecutorSpec)
            given = pipeline.beam_pipeline_args
            if given and "args" in container and not uses_beam:
                del container["args"][-len(given) :]
            _complete_container(container, node.id, config, target)
        task = spec["root"]["dag"]["tasks"][node.id]
        is_reused = config.cache and is_cached(node)
        task["cachingOptions"] = {"enableCache": True} if is_reused else {}
        if retries := find_resources(config.resources, node.id).retries:
            longest = {"backoffMaxDuration": _LONGEST_RETRYING[target]}
            task["retryPolicy"] = {"maxRetryCount": retries, **_BACKOFF, **longest}
        _check_length(spec, node.id, target)
    return job


def finish_documents(
    job: dict[str, Any], config: ClusterConfig, target: str
) -> list[dict[str, Any]]:
    """Returns the content of the compiled file of a job, one dict for each document.

    Args:
        job: As `make_job` returned it, and perhaps with parameters. It is changed.
        config: The options that it was made with.
        target: `kubeflow` or `vertex`.

    Raises:
        UsageError: The options of all tasks are too long, or an image is not named as it must be.
    """
    spec = job["pipelineSpec"]
    if config.require_digest:
        check_digests(spec)
    length = len(json.dumps(spec["root"], ensure_ascii=False).encode())
    if target == KUBEFLOW and length > _LONGEST_ROOT:
        raise _build_length_error("The options of all tasks", length, _LONGEST_ROOT)
    # Types that the services know by name are written as their own SDK does. TFX describes every
    # type, which makes a new one of the same name; Vertex may refuse that.
    for component in spec["components"].values():
        for way in ("inputDefinitions", "outputDefinitions"):
            for each in component.get(way, {}).get("artifacts", {}).values():
                title = yaml.safe_load(each["artifactType"]["instanceSchema"])["title"]
                if title in SYSTEM_ARTIFACTS:
                    each["artifactType"] = {"schemaTitle": title, "schemaVersion": "0.0.1"}
    if target == KUBEFLOW:
        platform = make_platform_spec(config, spec)
        return [spec] if platform is None else [spec, platform]
    job["runtimeConfig"] = {"gcsOutputDirectory": config.root}
    return [job]


def _complete_container(
    container: dict[str, Any], node: str, config: ClusterConfig, target: str
) -> None:
    """Completes a task's container: its environment and resources."""
    if config.env:
        container["env"] = [{"name": k, "value": v} for k, v in sorted(config.env.items())]
    given = find_resources(config.resources, node)
    resources = container.get("resources", {})  # those that a user's own node asks for
    if asked := resources.get("accelerator"):
        asked["type"] = spell_accelerator(asked["type"], target)
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
        resources["accelerator"] = {"type": kind, "count": str(given.num_accelerators or 1)}
    if resources:
        container["resources"] = resources


def _check_length(spec: dict[str, Any], node: str, target: str) -> None:
    """Checks that a task's properties fit into the place where the service passes them.

    Raises:
        UsageError: They do not fit.
    """
    inputs = spec["root"]["dag"]["tasks"][node].get("inputs", {}).get("parameters", {})
    texts = [each["runtimeValue"]["constant"] for each in inputs.values() if "runtimeValue" in each]
    if target == VERTEX:
        length, longest = len(json.dumps(texts)), _LONGEST_INPUT
    else:
        executor = spec["deploymentSpec"]["executors"][f"{node}_executor"]
        texts.append(executor.get("container", {}).get("env"))
        # The template is JSON, with the pod's patch as a text of JSON, with the input as another.
        length, longest = 2 * len(json.dumps(json.dumps(json.dumps(texts)))), _LONGEST_TEMPLATE
    if length > longest:
        raise _build_length_error(f"The options of {node}", length, longest)


def _build_length_error(what: str, length: int, longest: int) -> UsageError:
    return UsageError(
        f"{what} need {length:,} bytes where the service passes them, expected at most "
        f"{longest:,}: Linux takes no longer argument of a container.",
        "Put a long label map into a store or a volume, and give its path, as "
        "gs://BUCKET/labels.txt: the tasks then read the file.",
    )


def make_platform_spec(config: ClusterConfig, spec: Mapping[str, Any]) -> dict[str, Any] | None:
    """Returns the second document of a file for Kubeflow: the options that only Kubernetes knows.

    Args:
        config: The options of the cluster.
        spec: The pipeline spec.

    Returns:
        Environment from Secrets, mounted claims, and the needs of the pods, by executor; None when
        there is nothing.
    """
    shared: dict[str, Any] = {}
    if config.volumes:
        shared["pvcMount"] = [
            {"constant": claim, "mountPath": folder}
            for folder, claim in sorted(config.volumes.items())
        ]
    if config.image_pull_secrets:
        shared["imagePullSecret"] = [{"secretName": name} for name in config.image_pull_secrets]
    secrets = make_secrets(config.secret_env)
    found = spec["deploymentSpec"]["executors"]
    # There Kubeflow's launcher copies artifacts with the keys of the task.
    copies_with_keys = config.root.startswith("s3://") or any(
        "importer" in each for each in found.values()
    )
    executors = {}
    for node in spec["root"]["dag"]["tasks"]:
        if (container := found[f"{node}_executor"].get("container")) is None:
            continue
        given = find_resources(config.resources, node)
        options = dict(shared)
        if secrets and (copies_with_keys or _KEYLESS.isdisjoint(container.get("args", ()))):
            options["secretAsEnv"] = secrets
        if not given.runs_as_root:
            # Older versions of Kubeflow do not know the security context, and leave it out.
            options["securityContext"] = {"runAsNonRoot": True}
        if given.timeout_seconds is not None:
            options["activeDeadlineSeconds"] = str(given.timeout_seconds)  # an int64
        metadata = {"labels": given.pod_labels, "annotations": given.pod_annotations}
        if named := {name: dict(values) for name, values in metadata.items() if values}:
            options["podMetadata"] = named
        if given.node_selector:
            options["nodeSelector"] = {"labels": dict(given.node_selector)}
        if given.tolerations:
            options["tolerations"] = [dict(each) for each in given.tolerations]
        if options:
            executors[f"{node}_executor"] = options
    if not executors:
        return None
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": executors}}}}
