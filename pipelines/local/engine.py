"""Beam's arguments for a run on this machine whose jobs an engine runs."""

from __future__ import annotations

import dataclasses
import json

from darkroom.conversion.beam.discovery import RUNNERS, find_options
from darkroom.conversion.beam.engines import ENGINES, check_engine
from darkroom.conversion.beam.runners import build_options
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.pipelines.compilation.beam_arguments import parse_beam_args
from darkroom.pipelines.config import PipelineConfig


def resolve_engine(config: PipelineConfig) -> PipelineConfig:
    """Returns the configuration with the arguments of Beam that its engine needs.

    Raises:
        UsageError: An option is missing, or does not fit the engine.
        StorageError: The engine does not answer, or cannot run a job.
    """
    if config.engine is None:
        return config
    given, options = parse_beam_args(config)
    runner = RUNNERS[config.engine]
    found = find_options(config.engine_options, options)
    if runner in ENGINES:
        check_engine(runner, build_options(runner, found))
    _, image = LOCAL_BEAM_ARGS
    found = {name: value for name, value in found.items() if name not in options}
    texts = {name: json.dumps(v) if isinstance(v, dict) else v for name, v in found.items()}
    arguments = [f"--{name}={text}" for name, text in texts.items()]
    if "sdk_container_image" not in {**found, **options}:
        arguments.append(image)
    return dataclasses.replace(
        config,
        engine=None,
        engine_url=None,
        engine_workers=None,
        beam_args=(f"--runner={runner}", *arguments, *given),
    )
