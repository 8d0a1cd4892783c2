"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engine import Engine
from darkroom.conversion.beam.following import follow_shards
from darkroom.conversion.beam.runners import build_options, find_engine
from darkroom.errors import OutputError, StorageError
from darkroom.runtime.process import collect_less_garbage

if TYPE_CHECKING:
    import apache_beam as beam

    from darkroom.conversion.beam.transforms import WriteDataset


def run_job(
    write: WriteDataset, runner: str, beam_options: Mapping[str, Any], job_name: str
) -> None:
    """Runs the job to its end.

    Args:
        write: Its function.
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.
        job_name: Name of the job on an engine, which no other job may have. A name in the options
            is put before it.

    Raises:
        DarkroomError: It failed.
    """
    from darkroom.runtime.plain_beam import beam

    run_write(beam.Pipeline(options=build_options(runner, beam_options)), write, job_name)


def run_write(pipeline: beam.Pipeline, write: WriteDataset, job_name: str) -> None:
    """Runs the job in a pipeline that holds nothing else.

    Args:
        pipeline: An empty pipeline.
        write: As of `run_job`.
        job_name: As of `run_job`.

    Raises:
        DarkroomError: It failed.
    """
    from darkroom.runtime.plain_beam import apply_transform

    apply_transform(pipeline, "WriteDataset", write)
    followed = follow_shards(write) if _get_engine(pipeline) else nullcontext()
    with _find_unshared(write), followed, collect_less_garbage():
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


def _get_engine(pipeline: beam.Pipeline) -> Engine | None:
    from apache_beam.options.pipeline_options import StandardOptions

    return find_engine(pipeline.options.view_as(StandardOptions).runner)


@contextmanager
def _find_unshared(write: WriteDataset) -> Iterator[None]:
    """Tells an output that workers do not see from one that a later run has taken.

    To a worker both look the same, but the client sees the attempt's folder.
    """
    try:
        yield
    except OutputError as error:
        attempt = write.tasks[0].attempt
        if f"attempt {attempt.folders.token} ends" not in error.message:
            raise
        attempt.check_current()
        raise StorageError(
            "The engine's workers do not see the output folder.",
            "Give an output that all machines reach at this path: a store, or a shared file "
            f"system. {error.hint}",
        ) from error
