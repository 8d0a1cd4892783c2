"""The pipeline as a file for Vertex AI Pipelines: a job spec in JSON."""

from __future__ import annotations

import json

from darkroom.options.targets import VERTEX
from darkroom.pipelines.compilation.spec import compile_pipeline
from darkroom.pipelines.config import PipelineConfig


def format_for_vertex(config: PipelineConfig) -> str:
    """Returns the text of a file that `aiplatform.PipelineJob` takes; see `compile_pipeline`."""
    return json.dumps(compile_pipeline(config, VERTEX), indent=1, sort_keys=True) + "\n"
