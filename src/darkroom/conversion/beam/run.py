"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engine import Engine
from darkroom.conversion.beam.following import follow_shards
from darkroom.conversion.beam.runners import LOCAL_RUNNER, build_options, find_engine, is_local
from darkroom.conversion.shards.writing import WriteJob
from darkroom.errors import OutputError, StorageError
from darkroom.runtime.process import collect_less_garbage

if TYPE_CHECKING:
    import apache_beam as beam


def run_job(job: WriteJob, runner: str, beam_options: Mapping[str, Any], job_name: str) -> None:
    """Runs the job to its end; here it needs Beam only where options of Beam are given.

    Args:
        job: The shards and the commit.
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.
        job_name: Name of the job on an engine, which no other job may have. A name in the options
            is put before it.

    Raises:
        DarkroomError: It failed.
    """
    if runner == LOCAL_RUNNER and not beam_options:
        job.run_here()
        return
    from darkroom.runtime.plain_beam import beam

    run_write(beam.Pipeline(options=build_options(runner, beam_options)), job, job_name)


def run_write(pipeline: beam.Pipeline, job: WriteJob, job_name: str) -> None:
    """Runs the job in a pipeline that holds nothing else, or without Beam where that is the same.

    Args:
        pipeline: An empty pipeline.
        job: As of `run_job`.
        job_name: As of `run_job`.

    Raises:
        DarkroomError: It failed.
    """
    from darkroom.conversion.beam.transforms import WriteDataset

    if _runs_in_this_process(pipeline):
        job.run_here()
        return
    followed = follow_shards(job) if _get_engine(pipeline) else nullcontext()
    with _find_unshared(job), followed:
        run_transform(pipeline, WriteDataset(job), job_name)


def run_transform(pipeline: beam.Pipeline, transform: beam.PTransform, job_name: str) -> None:
    """Runs a transform in a pipeline that holds nothing else; see `run_write`."""
    from darkroom.runtime.plain_beam import apply_transform

    apply_transform(pipeline, transform.label, transform)
    with collect_less_garbage():
        run_pipeline(pipeline, job_name)


def run_pipeline(pipeline: beam.Pipeline, job_name: str) -> None:
    """Runs a pipeline to its end, on the engine that its options name, or as Beam does.

    Args:
        pipeline: A whole pipeline.
        job_name: As of `run_job`.

    Raises:
        DarkroomError: It failed on an engine.
    """
    if engine := _get_engine(pipeline):
        engine.run(pipeline, job_name)
    else:
        pipeline.run().wait_until_finish()


def _runs_in_this_process(pipeline: beam.Pipeline) -> bool:
    from apache_beam.options.pipeline_options import DirectOptions, StandardOptions

    options = pipeline.options.view_as(DirectOptions)
    has_workers = (options.direct_running_mode, options.direct_num_workers) != ("in_memory", 1)
    return is_local(pipeline.options.view_as(StandardOptions).runner) and not has_workers


def _get_engine(pipeline: beam.Pipeline) -> Engine | None:
    from apache_beam.options.pipeline_options import StandardOptions

    return find_engine(pipeline.options.view_as(StandardOptions).runner)


@contextmanager
def _find_unshared(job: WriteJob) -> Iterator[None]:
    """Tells an output that workers do not see from one that a later run has taken.

    To a worker both look the same, but the client sees the attempt's folder.
    """
    try:
        yield
    except OutputError as error:
        attempt = job.tasks[0].attempt
        if f"attempt {attempt.folders.token} ends" not in error.message:
            raise
        attempt.check_current()
        raise StorageError(
            "The engine's workers do not see the output folder.",
            "Give an output that all machines reach at this path: a store, or a shared file "
            f"system. {error.hint}",
        ) from error
