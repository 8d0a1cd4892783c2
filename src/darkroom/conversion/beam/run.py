"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from darkroom import storage
from darkroom.conversion.beam.cancellation import (
    cancel_with_client,
    end_job,
    hide_threads,
    take_signals,
)
from darkroom.conversion.beam.engine_log import EngineLog, report_failures
from darkroom.conversion.beam.engines import ENGINES, describe_workers
from darkroom.conversion.beam.failures import is_unshared
from darkroom.conversion.beam.runners import build_options
from darkroom.conversion.beam.watching import watch_job
from darkroom.conversion.engines.flink import find_address, list_failures, read_status
from darkroom.conversion.engines.known import NOT_SHARED
from darkroom.errors import DarkroomError, OutputError, StorageError
from darkroom.images.access import PROBED_IMAGES
from darkroom.manifest.table import read_manifest_rows
from darkroom.runtime import progress
from darkroom.runtime.process import collect_less_garbage, find_explanation

if TYPE_CHECKING:
    import apache_beam as beam

    from darkroom.conversion.beam.transforms import WriteDataset

_NO_LIST = "disable_logging_submission_environment"


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
def guard_pipeline(
    pipeline: beam.Pipeline, job_name: str, output: str = ""
) -> Iterator[EngineLog | None]:
    """Names the job of a pipeline; cancels it with its client, and explains its failure.

    That is for engines; what Beam runs in this process needs neither.

    Args:
        pipeline: A pipeline that does not yet run.
        job_name: As of `run_job`.
        output: As of `cancel_with_client`.

    Yields:
        What the engine says; None where there is no engine.
    """
    from apache_beam.options.pipeline_options import (
        DebugOptions,
        GoogleCloudOptions,
        StandardOptions,
    )

    given = str(pipeline.options.view_as(StandardOptions).runner).lower()
    runner = next((each for each in ENGINES if each.lower() == given), None)
    if runner is None:
        yield None
        return
    named = pipeline.options.view_as(GoogleCloudOptions)  # Beam has the option there, for all
    named.job_name = f"{named.job_name}-{job_name}" if named.job_name else job_name
    # Beam calls pip to log what is installed. Without pip, Python complains to the user.
    if not find_spec("pip"):
        pipeline.options.view_as(DebugOptions).add_experiment(_NO_LIST)
    progress.note(f"The job {job_name} begins on {_find_address(pipeline) or runner}.")
    try:
        with (
            take_signals(),
            hide_threads(),
            report_failures(runner, describe_workers(_list_options(pipeline))) as log,
            cancel_with_client(pipeline, job_name, output),
        ):
            yield log
    except DarkroomError as error:
        error.hint = f"{error.hint} {find_explanation(error)}".strip()
        raise


@contextmanager
def guard_job(pipeline: beam.Pipeline, write: WriteDataset, job_name: str) -> Iterator[None]:
    """Does the same for a job that writes a dataset, and follows it.

    Args:
        pipeline: A pipeline that does not yet run, to which the block applies `write`.
        write: What the job does.
        job_name: As of `run_job`.
    """
    output = write.tasks[0].output or write.tasks[0].folders.examples
    with _find_unshared(write), guard_pipeline(pipeline, job_name, output) as log:
        if log is None:
            yield
            return
        address, write.seen = _find_address(pipeline), _list_seen(write)
        with watch_job(
            write,
            log,
            cancel=lambda: end_job(pipeline, job_name),
            list_failures=lambda: list_failures(address, job_name) if address else (),
            read_status=lambda: read_status(address, job_name) if address else None,
        ):
            yield


def _find_address(pipeline: beam.Pipeline) -> str:
    return find_address(_list_options(pipeline))


def _list_options(pipeline: beam.Pipeline) -> dict[str, Any]:
    return dict(pipeline.options.get_all_options(retain_unknown_options=True))


def _list_seen(write: WriteDataset) -> list[str]:
    """Returns some images that are on this machine's disk."""
    if not write.tasks[0].has_images:
        return []
    rows = read_manifest_rows(write.tasks[0].folders.manifest, 0, PROBED_IMAGES)
    local = [row.uri for row in rows if row.uri and not storage.is_remote(row.uri)]
    return [path for path in map(storage.local_path, local) if os.path.exists(path)]


@contextmanager
def _find_unshared(write: WriteDataset) -> Iterator[None]:
    """Tells an output that workers do not see from one that a later run has taken."""
    try:
        yield
    except OutputError as error:
        if not is_unshared(write, error.message):
            raise
        raise StorageError(f"{NOT_SHARED.what}.", f"{NOT_SHARED.hint} {error.hint}") from error
