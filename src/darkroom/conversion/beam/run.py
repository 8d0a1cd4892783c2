"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engines import ENGINES, report_failures
from darkroom.conversion.beam.runners import build_options
from darkroom.runtime.process import collect_less_garbage

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset


def run_job(write: WriteDataset, runner: str, beam_options: Mapping[str, Any]) -> None:
    """Runs the job to its end.

    Args:
        write: What it does.
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.

    Raises:
        DarkroomError: It failed.
    """
    from darkroom.runtime.plain_beam import apply_transform, beam

    options = build_options(runner, beam_options)
    engine = report_failures(runner) if runner in ENGINES else nullcontext()
    with engine, collect_less_garbage(), beam.Pipeline(options=options) as pipeline:
        apply_transform(pipeline, "WriteDataset", write)
