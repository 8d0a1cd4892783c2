"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.cancellation import cancel_with_client, end_job, hide_threads
from darkroom.conversion.beam.engines import ENGINES
from darkroom.conversion.beam.failures import NOT_SHARED, report_failures
from darkroom.conversion.beam.runners import build_options
from darkroom.conversion.beam.watching import watch_job
from darkroom.conversion.output.attempts import check_current
from darkroom.errors import DarkroomError, OutputError, StorageError
from darkroom.runtime.process import collect_less_garbage, find_explanation

if TYPE_CHECKING:
    import apache_beam as beam

    from darkroom.conversion.beam.transforms import WriteDataset


def run_job(
    write: WriteDataset, runner: str, beam_options: Mapping[str, Any], job_name: str
) -> None:
    """Runs the job to its end.

    Args:
        write: What it does.
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.
        job_name: Name of the job on an engine, which no other job may have. A name in the options
            is put before it.

    Raises:
        DarkroomError: It failed.
    """
    from darkroom.runtime.plain_beam import apply_transform, beam

    pipeline = beam.Pipeline(options=build_options(runner, beam_options))
    with guard_job(pipeline, write, job_name), collect_less_garbage(), pipeline:
        apply_transform(pipeline, "WriteDataset", write)


@contextmanager
def guard_job(pipeline: beam.Pipeline, write: WriteDataset, job_name: str) -> Iterator[None]:
    """Names the job of a pipeline; follows it, cancels it and explains its failure in the block.

    That is for engines; what Beam runs in this process needs neither.

    Args:
        pipeline: A pipeline that does not yet run, to which the block applies `write`.
        write: What the job does.
        job_name: As of `run_job`.
    """
    from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions

    given = str(pipeline.options.view_as(StandardOptions).runner).lower()
    runner = next((each for each in ENGINES if each.lower() == given), None)
    if runner is None:
        yield
        return
    named = pipeline.options.view_as(GoogleCloudOptions)  # Beam has the option there, for all
    named.job_name = f"{named.job_name}-{job_name}" if named.job_name else job_name
    try:
        with (
            _find_unshared(write),
            report_failures(runner) as log,
            cancel_with_client(pipeline, job_name),
            watch_job(write, log, cancel=lambda: end_job(pipeline, job_name)),
        ):
            yield
    except DarkroomError as error:
        error.hint = f"{error.hint} {find_explanation(error)}".strip()
        raise
    except (KeyboardInterrupt, SystemExit):
        hide_threads()
        raise


@contextmanager
def _find_unshared(write: WriteDataset) -> Iterator[None]:
    """Tells an output that workers do not see from one that a later run has taken.

    To a worker both look the same, but the client sees the attempt's folder.
    """
    try:
        yield
    except OutputError as error:
        task = write.tasks[0]
        if f"attempt {task.folders.token} ends" not in error.message:
            raise
        with suppress(OutputError):
            check_current(task.folders, task.output or task.folders.examples)
            hint = f"{NOT_SHARED.hint} {error.hint}"
            raise StorageError(f"{NOT_SHARED.what}.", hint) from error
        raise
