"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.cancellation import cancel_with_client, make_job_name
from darkroom.conversion.beam.engines import ENGINES, report_failures
from darkroom.conversion.beam.runners import build_options
from darkroom.runtime.process import collect_less_garbage

if TYPE_CHECKING:
    import apache_beam as beam

    from darkroom.conversion.beam.transforms import WriteDataset


def run_job(
    write: WriteDataset, runner: str, beam_options: Mapping[str, Any], job_name: str = ""
) -> None:
    """Runs the job to its end. On an engine, it is cancelled when this process is interrupted.

    Args:
        write: What it does.
        runner: Beam's name of the runner.
        beam_options: Beam's options by name.
        job_name: Name of a job on an engine, which no other job may have; made when empty. A name
            in `beam_options` is put before it.

    Raises:
        DarkroomError: It failed.
    """
    from darkroom.runtime.plain_beam import apply_transform, beam

    is_engine = runner in ENGINES
    if is_engine:
        job_name = job_name or make_job_name()
        given = beam_options.get("job_name")
        beam_options = {**beam_options, "job_name": f"{given}-{job_name}" if given else job_name}
    pipeline = beam.Pipeline(options=build_options(runner, beam_options))
    engine = _watch_job(pipeline, runner, job_name) if is_engine else nullcontext()
    with engine, collect_less_garbage(), pipeline:
        apply_transform(pipeline, "WriteDataset", write)


@contextmanager
def _watch_job(pipeline: beam.Pipeline, runner: str, job_name: str) -> Iterator[None]:
    with cancel_with_client(pipeline, job_name), report_failures(runner):
        yield
