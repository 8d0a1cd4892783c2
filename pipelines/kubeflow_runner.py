"""The pipeline as a file for Kubeflow Pipelines: YAML, schema 2.1.0."""

from __future__ import annotations

from darkroom.options.targets import KUBEFLOW
from darkroom.pipelines.compilation.checks import check_config
from darkroom.pipelines.compilation.files import format_documents
from darkroom.pipelines.compilation.spec import make_documents
from darkroom.pipelines.config import PipelineConfig


def format_for_kubeflow(config: PipelineConfig) -> str:
    """Returns the text of a file that Kubeflow Pipelines takes.

    Raises:
        UsageError: A value is wrong; see `compile_pipeline`.
    """
    check_config(config, KUBEFLOW)
    return format_documents(make_documents(config, KUBEFLOW), KUBEFLOW)
