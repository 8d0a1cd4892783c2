"""Beam's arguments in a run on this machine whose dataset an engine writes."""

from __future__ import annotations

import json

from darkroom.conversion.beam.runners import (
    build_options,
    find_engine,
    find_options,
    name_runner,
)
from darkroom.options.pipeline import LOCAL_BEAM_ARGS
from darkroom.pipelines.compilation.beam_arguments import check_dataflow, parse_beam_args
from darkroom.pipelines.config import PipelineConfig


def find_engine_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of Beam that the engine of a configuration needs; none without one.

    Raises:
        UsageError: An option is missing, or does not fit the engine.
        StorageError: The engine does not answer, or cannot run a job.
    """
    if config.engine is None:
        return []
    given, options = parse_beam_args(config)
    runner = name_runner(config.engine)
    found = find_options(config.engine_options, options)
    if engine := find_engine(runner):
        engine.check(build_options(runner, found))
    else:
        check_dataflow(found, "sdk_container_image")
    new = {name: value for name, value in found.items() if name not in options}
    texts = {name: json.dumps(v) if isinstance(v, dict) else v for name, v in new.items()}
    # The pipeline names an image for all its components; the last argument of a name counts.
    return [f"--runner={runner}", *(f"--{name}={text}" for name, text in texts.items()), *given]


def list_other_args(config: PipelineConfig) -> list[str]:
    """Returns the arguments of Beam for the other components."""
    return list(config.beam_args if config.engine is None else LOCAL_BEAM_ARGS)
