"""A pipeline of a user's own as a file for Kubeflow Pipelines or Vertex AI Pipelines."""

from __future__ import annotations

import warnings

from tfx.orchestration.pipeline import Pipeline

from darkroom.errors import UsageError
from darkroom.pipelines.cluster_config import ClusterConfig
from darkroom.pipelines.compilation.checks import check_cluster, check_values
from darkroom.pipelines.compilation.files import format_documents
from darkroom.pipelines.compilation.own import list_own_warnings, make_own_documents


def compile_pipeline(pipeline: Pipeline, target: str, config: ClusterConfig) -> str:
    """Compiles any pipeline of TFX, as `darkroom compile --pipeline` does.

    It writes no file, and connects to no server, unless a node for Vertex has a `module_file`: TFX
    then copies a package of it into the root.

    Args:
        pipeline: With components of darkroom, of TFX, or of your own.
        target: `kubeflow` or `vertex`.
        config: What the cluster is told: the image, resources by node, secrets, volumes.

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
    check_values(config)
    check_cluster(config, target)
    for warning in list_own_warnings(pipeline, config, target):
        warnings.warn(warning, stacklevel=2)
    return format_documents(make_own_documents(pipeline, config, target), target)
