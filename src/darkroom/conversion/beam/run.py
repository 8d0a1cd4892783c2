"""Runs the job that writes a dataset, here or on an engine, and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engines import ENGINES
from darkroom.conversion.beam.failures import NOT_SHARED, report_failures
from darkroom.conversion.beam.runners import build_options
from darkroom.conversion.beam.watching import watch_job
from darkroom.conversion.output.attempts import check_current
from darkroom.errors import OutputError, StorageError
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
            around.enter_context(_find_unshared(write))
            log = around.enter_context(report_failures(runner))
            # The pipeline below has its result as soon as the job is submitted.
            watch = watch_job(write, log, cancel=lambda: pipeline.result.cancel())
            around.enter_context(watch)
        around.enter_context(collect_less_garbage())
        pipeline = around.enter_context(beam.Pipeline(options=options))
        apply_transform(pipeline, "WriteDataset", write)


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
