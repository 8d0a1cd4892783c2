"""Compiles darkroom's pipeline from a configuration that a test made in Python."""

from __future__ import annotations

from typing import Any

from darkroom.options.compiled.credentials import check_credentials
from darkroom.pipelines.compilation import check
from darkroom.pipelines.compilation.spec import make_documents
from darkroom.pipelines.compilation.text import format_documents
from darkroom.pipelines.config import PipelineConfig


def check_config(config: PipelineConfig, target: str) -> None:
    """Checks a configuration as `darkroom compile` checks its options."""
    check_credentials(vars(config))  # before the message of another check shows a value
    check.check_config(config, target)


def compile_pipeline(config: PipelineConfig, target: str) -> dict[str, Any]:
    """Returns the first document of the compiled file."""
    check_config(config, target)
    return make_documents(config, target)[0]


def format_pipeline(config: PipelineConfig, target: str) -> str:
    """Returns the text of the compiled file."""
    check_config(config, target)
    return format_documents(make_documents(config, target), target)
