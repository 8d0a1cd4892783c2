"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engines import ENGINES
from darkroom.conversion.beam.failures import report_failures
from darkroom.conversion.beam.runners import build_options
from darkroom.conversion.beam.watching import watch_job
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
    with ExitStack() as around:
        if runner in ENGINES:
            log = around.enter_context(report_failures(runner))
            # The pipeline below has its result as soon as the job is submitted.
            watch = watch_job(write, log, cancel=lambda: pipeline.result.cancel())
            around.enter_context(watch)
        around.enter_context(collect_less_garbage())
        pipeline = around.enter_context(beam.Pipeline(options=options))
        apply_transform(pipeline, "WriteDataset", write)
