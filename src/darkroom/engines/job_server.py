"""Runs a job on an engine by Beam's job server, and ends it when its client ends before it."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from darkroom.conversion.beam.engine import EngineJob
from darkroom.engines import flink
from darkroom.engines.checks import (
    FLINK_RUNNER,
    PORTABLE_RUNNER,
    PRISM_RUNNER,
    SPARK_RUNNER,
    check_engine,
)
from darkroom.engines.discovery import find_flink, find_prism, find_spark
from darkroom.engines.failures import find_cause
from darkroom.engines.log import collect_lines
from darkroom.errors import StorageError
from darkroom.options.targets import FLINK, PRISM, SPARK, EngineOptions
from darkroom.runtime import progress
from darkroom.runtime.process import call_in_time, explain_end

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

# The job server takes a job at once; on the cluster it appears some time later.
_APPEAR_SECONDS = 5
_POLL_SECONDS = 0.5
_CANCEL_SECONDS = 10
_NO_LIST = "disable_logging_submission_environment"
# Beam puts it before the engine's own words.
_FAILED = re.compile(r"^Pipeline \S+ failed in state \w+: ")


@dataclass(frozen=True)
class JobServerEngine:
    """An engine that takes a job from a job server; see `conversion.beam.engine.Engine`.

    Attributes:
        name: As in the option `engine`; empty if it is known by its runner only.
        runner: Beam's name of its runner.
        find: Returns Beam's options that are found out for it.
    """

    name: str
    runner: str
    find: Callable[[EngineOptions, Mapping[str, Any]], Mapping[str, Any]]

    def find_options(self, engine: EngineOptions, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns Beam's options: those that are found out, and those given."""
        return {**self.find(engine, given), **given}

    def check(self, options: PipelineOptions) -> None:
        """Checks that the engine answers, and that its job server can be started here."""
        check_engine(self.runner, options)

    def find_address(self, options: Mapping[str, Any]) -> str:
        """Returns the URL of Flink, which any of the runners may stand for."""
        return flink.find_address(options)

    def find_job(self, address: str, name: str) -> EngineJob | None:
        """Asks Flink for a job."""
        return flink.find_job(address, name)

    def run(self, pipeline: beam.Pipeline, job_name: str) -> None:
        """Runs a pipeline to its end. If this is interrupted or fails, the job is cancelled."""
        _name_job(pipeline, job_name)
        options = pipeline.options.get_all_options(retain_unknown_options=True)
        place = self.find_address(options) or self.runner
        progress.note(f"The job {job_name} begins on {place}.")
        submitted = None
        with _sigint_kept() as take_back, collect_lines() as log:
            try:
                submitted = pipeline.run()
                take_back()
                submitted.wait_until_finish()
            except (KeyboardInterrupt, SystemExit) as interrupt:
                progress.note(f"Ending the job {job_name}. This may take {_CANCEL_SECONDS} s.")
                # For a second one, which may end the wait below.
                explain_end(interrupt, f"The job {job_name} may still run.")
                explain_end(interrupt, _end_job(options, job_name, submitted))
                raise
            except Exception as error:
                log.add(_FAILED.sub("", str(error)))
                found = find_cause(self.runner, error, log.read(), log.tell())
                with suppress(StorageError):  # Flink is down, which the error says already
                    ended = _end_on_flink(options, job_name)
                    if found and ended:
                        found.hint = f"{found.hint} {ended}"
                if found is None:
                    raise
                raise found from error


ENGINES = (
    JobServerEngine(FLINK, FLINK_RUNNER, find_flink),
    JobServerEngine(SPARK, SPARK_RUNNER, find_spark),
    JobServerEngine(PRISM, PRISM_RUNNER, find_prism),
    JobServerEngine("", PORTABLE_RUNNER, lambda *_: {}),
)


def _name_job(pipeline: beam.Pipeline, name: str) -> None:
    from apache_beam.options.pipeline_options import DebugOptions, GoogleCloudOptions

    named = pipeline.options.view_as(GoogleCloudOptions)  # Beam has the option there, for all
    named.job_name = f"{named.job_name}-{name}" if named.job_name else name
    # Beam calls pip to log the installed packages. Without pip, Python complains to the user.
    if not find_spec("pip"):
        pipeline.options.view_as(DebugOptions).add_experiment(_NO_LIST)


@contextmanager
def _sigint_kept() -> Iterator[Callable[[], object]]:
    """Yields a function that gives SIGINT back its handler; so does the end of the block.

    Beam takes SIGINT for itself when it starts a job server, and stops that inside its handler. A
    second signal meanwhile would wait for the first one for ever.
    """
    handler = signal.getsignal(signal.SIGINT)
    if handler is None or threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return

    def take_back() -> None:
        signal.signal(signal.SIGINT, handler)

    try:
        yield take_back
    finally:
        take_back()


def _end_job(options: Mapping[str, Any], name: str, submitted: Any) -> str:
    """Ends a job, wherever it runs; returns a message about it, or an empty text."""
    try:
        if told := _end_on_flink(options, name, _APPEAR_SECONDS if submitted else 0):
            return told
    except StorageError as error:
        return f"Whether the job {name} still runs is not known: {error}"
    if not submitted:
        return ""
    is_done = call_in_time(submitted.cancel, _CANCEL_SECONDS)
    endpoint = options.get("job_endpoint")
    if endpoint in (None, "embed"):  # the job ends with the job server, and that with this process
        return ""
    if is_done:
        return (
            f"The job server at {endpoint} was told to cancel the job {name}. If that runs on "
            "Flink, it keeps running: cancel it there, and next time give flink_master, too."
        )
    return (
        f"The job {name} could not be cancelled: the job server at {endpoint} did not do it. Stop "
        "the job on the engine itself."
    )


def _end_on_flink(options: Mapping[str, Any], name: str, seconds: float = 0) -> str:
    """Ends a job on the cluster of the options, if there is one.

    Args:
        options: Beam's options.
        name: A text that only the name of the job contains.
        seconds: How long to wait for the job to appear.

    Returns:
        Its end; empty if it does not run on a cluster.

    Raises:
        StorageError: Flink does not answer.
    """
    master = flink.find_address(options)
    if not master:
        return ""
    end = time.monotonic() + seconds
    while (job := flink.find_job(master, name)) is None and time.monotonic() < end:
        time.sleep(_POLL_SECONDS)
    if job is None or job.has_ended:
        return ""
    with suppress(StorageError):
        job = flink.cancel_job(master, job.id, _CANCEL_SECONDS)
    if job.state == flink.CANCELED:
        return f"The job {name} on Flink was cancelled; run the same command again to resume."
    if job.has_ended:
        return f"The job {name} on Flink had ended before: {job.state}."
    return (
        f"The job {name} could not be cancelled: it keeps running on Flink as job {job.id}, "
        f"{job.state}. Stop it with: {job.stop}"
    )
