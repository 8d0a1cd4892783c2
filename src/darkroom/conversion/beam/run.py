"""Runs the job that writes a dataset by a runner of Beam, and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.job_server import check_job_server
from darkroom.conversion.beam.options import build_options
from darkroom.conversion.beam.reasons import find_failure_reason, find_remedy
from darkroom.conversion.shards.writing import WriteJob
from darkroom.errors import DarkroomError, StorageError
from darkroom.options.runners import is_local
from darkroom.runtime import progress
from darkroom.runtime.process import collect_less_garbage, explain_end

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions


def check_runner(runner: str, beam_options: Mapping[str, Any]) -> None:
    """Checks that a job finds its runner; see `check_job_server`.

    Args:
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.

    Raises:
        UsageError: An option is wrong, or does not fit the runner.
        StorageError: Nothing answers at an address.
    """
    check_job_server(build_options(runner, beam_options))


def run_job(job: WriteJob, runner: str, beam_options: Mapping[str, Any], job_name: str) -> None:
    """Runs the job to its end, with Beam.

    Args:
        job: The shards and the commit.
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.
        job_name: Name of the job elsewhere, which no other job may have. A name in the options is
            put before it.

    Raises:
        DarkroomError: It failed.
    """
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
    from darkroom.runtime.plain_beam import apply_transform

    if _runs_in_this_process(pipeline):
        job.run_here()
        return
    transform = WriteDataset(job)
    apply_transform(pipeline, transform.label, transform)
    with collect_less_garbage():
        run_beam_pipeline(pipeline, job_name)


def run_beam_pipeline(pipeline: beam.Pipeline, job_name: str) -> None:
    """Runs a pipeline to its end.

    Where its client is interrupted, a job elsewhere keeps running.

    Args:
        pipeline: A whole pipeline.
        job_name: As of `run_job`.

    Raises:
        StorageError: It failed elsewhere, or cannot begin.
    """
    from apache_beam.options.pipeline_options import StandardOptions

    from darkroom.runtime.plain_beam import quiet_client

    runner = pipeline.options.view_as(StandardOptions).runner
    if is_local(runner):
        pipeline.run().wait_until_finish()
        return
    check_job_server(pipeline.options)
    with name_job(pipeline.options, job_name) as name, quiet_client():
        progress.note(f"Starting the job {name} with {runner}.")
        try:
            pipeline.run().wait_until_finish()
        except (KeyboardInterrupt, SystemExit) as interrupt:
            explain_end(
                interrupt,
                f"The job {name} of {runner} may keep running: cancel it there by this name.",
            )
            raise


@contextmanager
def name_job(options: PipelineOptions, job_name: str) -> Iterator[str]:
    """Gives a job elsewhere its name, by which an error of the block names it, with the reason.

    Args:
        options: Those of the job.
        job_name: As of `run_job`.

    Yields:
        The whole name.

    Raises:
        StorageError: The job failed, or was not taken.
    """
    from apache_beam.options.pipeline_options import GoogleCloudOptions, StandardOptions

    named = options.view_as(GoogleCloudOptions)  # Beam has the option there, for all
    named.job_name = name = f"{named.job_name}-{job_name}" if named.job_name else job_name
    # Beam takes it out of the options when the job begins.
    runner = options.view_as(StandardOptions).runner
    try:
        yield name
    except DarkroomError:
        raise
    except Exception as error:
        why = find_failure_reason(error)
        raise StorageError(
            f"The job {name} of {runner} failed: {why}",
            f"{find_remedy(why, options)} Finished shards are kept.",
        ) from error


def _runs_in_this_process(pipeline: beam.Pipeline) -> bool:
    from apache_beam.options.pipeline_options import DirectOptions, StandardOptions

    options = pipeline.options.view_as(DirectOptions)
    has_workers = (options.direct_running_mode, options.direct_num_workers) != ("in_memory", 1)
    return is_local(pipeline.options.view_as(StandardOptions).runner) and not has_workers
