"""The pipeline as a file for Kubeflow Pipelines: YAML, schema 2.1.0."""

from __future__ import annotations

import yaml

from darkroom.options.targets import KUBEFLOW
from darkroom.pipelines.compilation.spec import compile_pipeline, make_platform_spec
from darkroom.pipelines.config import PipelineConfig


def format_for_kubeflow(config: PipelineConfig) -> str:
    """Returns the text of a file that Kubeflow Pipelines takes; see `compile_pipeline`."""
    spec = compile_pipeline(config, KUBEFLOW)
    platform = make_platform_spec(config, spec)
    documents = [spec] if platform is None else [spec, platform]
    head = f"# PIPELINE DEFINITION\n# Name: {config.name}\n# Compiled with {spec['sdkVersion']}.\n"
    return head + str(yaml.safe_dump_all(documents, sort_keys=True, allow_unicode=True))
