"""Compiles a user's own pipeline: any pipeline of TFX, with our components or others."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import sys
import warnings
from collections.abc import Sequence
from typing import Any
from unittest import mock

import tensorflow as tf
from tfx.dsl.components.base.base_node import BaseNode
from tfx.dsl.components.base.executor_spec import BeamExecutorSpec
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.experimental.conditionals.conditional import get_predicates
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.pipeline import Pipeline
from tfx.types.channel_utils import get_dependent_channels

from darkroom.errors import DarkroomError, StorageError, UsageError
from darkroom.options.compiled.containers import check_replaced
from darkroom.options.compiled.credentials import check_credentials
from darkroom.options.pipeline import LOCAL_BEAM_ARGS, OWN_PIPELINE
from darkroom.options.targets import KUBEFLOW
from darkroom.pipelines.beam_arguments import complete_beam_args
from darkroom.pipelines.compilation.check import check_cluster, check_paths, list_warnings
from darkroom.pipelines.compilation.job import finish_documents, make_job
from darkroom.pipelines.compilation.nodes import (
    check_nodes,
    find_node_image,
    is_cached,
    list_node_warnings,
)
from darkroom.pipelines.compilation.text import format_documents
from darkroom.pipelines.config import ClusterConfig, check_name
from darkroom.runtime.functions import FUNCTION, describe_user_failure, load_function

# The parameter of a user's function that gets the root.
_ROOT = "root"
_LOCAL_IMAGE = LOCAL_BEAM_ARGS[1]


def compile_pipeline(pipeline: Pipeline, target: str, config: ClusterConfig) -> str:
    """Compiles any pipeline of TFX, as `darkroom compile --pipeline` does.

    It writes no file, and connects to no server, unless a node for Vertex has a `module_file`: TFX
    then copies a package of it into the root.

    Args:
        pipeline: With components of darkroom, of TFX, or your own.
        target: `kubeflow` or `vertex`.
        config: The options of the cluster: the image, resources by node, secrets, volumes.

    Returns:
        The text of the file that Kubeflow Pipelines takes, in YAML, or Vertex, in JSON.

    Raises:
        UsageError: The service cannot run a node, a value cannot work there, or a value contains a
            credential. The message names the node.
    """
    if not isinstance(pipeline, Pipeline):
        kind = type(pipeline).__name__
        message = f"pipeline is a {kind}, expected a tfx.v1.dsl.Pipeline."
        raise UsageError(message, "Call the function that returns it.")
    check_credentials(vars(config))
    check_cluster(config, target)
    for warning in list_own_warnings(pipeline, config, target):
        warnings.warn(warning, stacklevel=2)
    return format_documents(make_own_documents(pipeline, config, target), target)


def load_pipeline(name: str, root: str) -> Pipeline:
    """Returns the pipeline that a function makes.

    Args:
        name: `package.module:function`.
        root: Passed to the function if it has a parameter `root`; it gets nothing else.

    Raises:
        UsageError: The function does not exist, fails, or returns something else.
    """
    if not FUNCTION.fullmatch(name):
        raise UsageError(
            f"pipeline is {name!r}, expected package.module:function.",
            "Name the function that returns the pipeline. A compiled file is for `darkroom submit "
            "--pipeline FILE`.",
        )
    function = load_function("pipeline", name)
    try:
        takes_root = _ROOT in inspect.signature(function).parameters
        with contextlib.redirect_stdout(sys.stderr):  # standard output may be for programs
            pipeline = function(**({_ROOT: root} if takes_root else {}))
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"pipeline is {name!r}, which failed: {describe_user_failure(error)}.",
            f"darkroom passes nothing but {_ROOT}, where the function takes it.",
        ) from error
    if not isinstance(pipeline, Pipeline):
        raise UsageError(
            f"pipeline is {name!r}, which returned {type(pipeline).__name__}, expected a pipeline "
            "of TFX.",
            "Return tfx.v1.dsl.Pipeline(...). A pipeline of kfp is compiled by kfp: "
            "kfp.compiler.Compiler().compile(...).",
        )
    return pipeline


def make_own_documents(
    pipeline: Pipeline, config: ClusterConfig, target: str
) -> list[dict[str, Any]]:
    """Returns the content of the compiled file of a pipeline, one dict for each document.

    Args:
        pipeline: Any pipeline of TFX.
        config: The options of the cluster, checked for the target by `check_cluster`.
        target: `kubeflow` or `vertex`.

    Returns:
        For Kubeflow the pipeline spec and, when there is any, the platform spec; for Vertex the job
        spec.

    Raises:
        UsageError: The service cannot run the pipeline, or a value cannot work there.
        StorageError: The code of a `module_file` cannot be copied into the root.
    """
    check_name(pipeline.pipeline_info.pipeline_name)
    if not pipeline.components:
        raise UsageError("The pipeline has no components.")
    config = dataclasses.replace(config, root=find_root(pipeline, config))
    check_replaced({"root": config.root}, target)  # it may be the pipeline's
    check_paths({"root": config.root}, target, config.volumes)
    check_nodes(pipeline, target, config.volumes)
    for node in pipeline.components:
        _check_graph(node, pipeline, target)
    try:
        # TFX copies packages of `module_file` there.
        with mock.patch.object(pipeline.pipeline_info, "pipeline_root", config.root):
            job = make_job(
                pipeline,
                config,
                target,
                is_cached=lambda node: pipeline.enable_cache and is_cached(node),
                flags=[OWN_PIPELINE],
            )
    except DarkroomError:
        raise
    except tf.errors.OpError as error:
        said = " ".join(error.message.split())
        raise StorageError(
            f"TFX cannot copy the code of a module_file into the root {config.root}: {said}",
            "Log in with an account that may write there; or put the code into the image, and name "
            "its function, as in run_fn='PACKAGE.MODULE.run_fn'.",
        ) from error
    except Exception as error:  # TFX raises anything where it cannot compile a node
        raise UsageError(
            f"TFX cannot compile the pipeline for {target}: {type(error).__name__}: {error}"
        ) from error
    spec = job["pipelineSpec"]
    definitions = spec["root"].get("inputDefinitions", {}).get("parameters", {})
    for node in pipeline.components:
        for value in node.exec_properties.values():
            # TFX leaves them out.
            if isinstance(value, RuntimeParameter) and value.default is not None:
                definitions[value.name].update(defaultValue=value.default, isOptional=True)
        if isinstance(node.executor_spec, BeamExecutorSpec):
            container = spec["deploymentSpec"]["executors"][f"{node.id}_executor"]["container"]
            _set_beam_args(container, node, pipeline.beam_pipeline_args, config, target)
    return finish_documents(job, config, target)


def _check_graph(node: BaseNode, pipeline: Pipeline, target: str) -> None:
    """Checks that a pipeline has all that a node waits for: TFX compiles an edge to nowhere."""
    if node not in pipeline.dsl_context_registry.all_nodes:
        raise UsageError(
            f"{node.id} belongs to an earlier Pipeline object, and TFX compiles it for that alone.",
            "Make the components again for each pipeline, in a function that returns it.",
        )
    conditions = get_predicates(node, pipeline.dsl_context_registry)
    if conditions and target == KUBEFLOW and isinstance(node, Importer):
        raise UsageError(
            f"Kubeflow cannot run the node {node.id}: an Importer must not have a condition.",
            "Make it outside of Cond; a node that takes its artifact may have one.",
        )
    dependent = itertools.chain.from_iterable(map(get_dependent_channels, conditions))
    channels = [*node.inputs.values(), *dependent]
    needed = {name for channel in channels for name in channel.get_data_dependent_node_ids()}
    needed |= {each.id for each in node.upstream_nodes}
    if missing := sorted(needed - {each.id for each in pipeline.components}):
        raise UsageError(
            f"{node.id} needs {missing[0]}, which is not among the components of the pipeline.",
            f"Add it to the list: Pipeline(..., components=[{missing[0]}, {node.id}, ...]).",
        )


def find_root(pipeline: Pipeline, config: ClusterConfig) -> str:
    """Returns the root of a configuration; without one, that of the pipeline if it is in a store.

    A pipeline may name a folder of this machine, for runs here.
    """
    own = str(pipeline.pipeline_info.pipeline_root or "")
    return config.root or (own if "://" in own else "")


def list_own_warnings(pipeline: Pipeline, config: ClusterConfig, target: str) -> list[str]:
    """Returns warnings about parts that will not work as they seem."""
    given = dataclasses.replace(config, root=find_root(pipeline, config))
    images = {node.id: find_node_image(node, given) for node in pipeline.components}
    return [
        *list_warnings(given, target, images),
        *list_node_warnings(pipeline, given, target),
        *(
            f"The run-time parameter {value.name!r} of {node.id} has no default. So each run needs "
            "a value, by the UI or the client of the service: `darkroom submit` refuses the file."
            for node in pipeline.components
            for value in node.exec_properties.values()
            if isinstance(value, RuntimeParameter) and value.default is None
        ),
    ]


def _set_beam_args(
    container: dict[str, Any],
    node: BaseNode,
    shared: Sequence[str],
    config: ClusterConfig,
    target: str,
) -> None:
    """Replaces the arguments of Beam of a node by those that hold in the cluster.

    The configuration's take the place of the pipeline's; those that the node has itself stay.
    """
    given = node.executor_spec.beam_pipeline_args
    own = given[len(shared) :]
    if config.beam_args != LOCAL_BEAM_ARGS:
        shared = config.beam_args
    wanted = [each for each in (*shared, *own) if each != _LOCAL_IMAGE]
    if not all(isinstance(each, str) for each in wanted):
        raise UsageError(f"{node.id} has a placeholder among the arguments of Beam.")
    place = f"{node.id}.beam_pipeline_args"
    check_credentials({place: wanted})
    check_replaced({place: wanted}, target)
    args = container["args"]
    container["args"] = args[: len(args) - len(given)] + complete_beam_args(wanted, config.image)
