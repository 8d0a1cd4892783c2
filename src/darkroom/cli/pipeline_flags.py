"""Flags that the commands which run a pipeline share."""

from __future__ import annotations

import argparse

from darkroom.cli.flags import FlagGroups
from darkroom.options.conversion import ConversionFields
from darkroom.options.pipeline import PipelineFields
from darkroom.options.source import SourceFields
from darkroom.options.targets import TARGETS, EngineFields
from darkroom.options.training import TrainingFields
from darkroom.options.validation import ValidationFields


def add_pipeline_flags(parser: argparse.ArgumentParser) -> FlagGroups:
    """Adds what a pipeline is told, wherever it runs: options of `PipelineConfig`."""
    flags = FlagGroups(parser)
    flags.add(
        "run",
        "--config",
        metavar="FILE",
        help="TOML file with options of the pipeline (docs/reference/options.md); flags win",
    )
    flags.add_options(
        PipelineFields,
        SourceFields,
        ConversionFields,
        EngineFields,
        ValidationFields,
        TrainingFields,
    )
    return flags


def add_target_flag(flags: FlagGroups) -> None:
    """Adds `--target` of a command that needs a service."""
    flags.add(
        "run", "--target", choices=TARGETS, required=True, help="Service that runs the pipeline"
    )
