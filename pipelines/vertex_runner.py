"""The pipeline as a file for Vertex AI Pipelines: a job spec in JSON."""

from __future__ import annotations

from darkroom.options.targets import VERTEX
from darkroom.pipelines.compilation.checks import check_config
from darkroom.pipelines.compilation.files import format_documents
from darkroom.pipelines.compilation.spec import make_documents
from darkroom.pipelines.config import PipelineConfig


def format_for_vertex(config: PipelineConfig) -> str:
    """Returns the text of a file that `aiplatform.PipelineJob` takes.

    Raises:
        UsageError: A value is wrong; see `compile_pipeline`.
    """
    check_config(config, VERTEX)
    return format_documents(make_documents(config, VERTEX), VERTEX)
