"""The end of a job on an engine whose client ends before it, as by Ctrl+C or SIGTERM.

The job would go on without its client. Beam's own `cancel` does not end it on Flink, so Flink
itself is asked.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn

from darkroom.conversion.beam.engine_log import is_not_beams
from darkroom.conversion.engines import flink
from darkroom.errors import StorageError
from darkroom.runtime import progress
from darkroom.runtime.process import explain_end, find_explanation

if TYPE_CHECKING:
    import apache_beam as beam

# The job server takes a job at once; on the cluster it appears some time later.
_APPEAR_SECONDS = 5
_POLL_SECONDS = 0.5
_CANCEL_SECONDS = 10
# Beam's mark of an exception that it neither wraps nor logs.
_MARK = "_tagged_with_step"
_LOGGER = logging.getLogger(__name__)
# Names of Beam's threads for messages and for workers in this process.
_FOLLOWERS = ("wait_until_finish", "run_worker", "read_grpc")


@contextmanager
def cancel_with_client(pipeline: beam.Pipeline, job_name: str, output: str = "") -> Iterator[None]:
    """Cancels the job of a pipeline when the block that waits for it is interrupted or fails.

    The exception then says what became of the job: `find_explanation`.

    Args:
        pipeline: A pipeline. What does not run on an engine ends with its client anyway.
        job_name: What only the name of this job contains.
        output: The folder that it writes a dataset into, if it does.
    """
    options = pipeline.options.get_all_options(retain_unknown_options=True)
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as interrupt:
        progress.note(f"Ending the job {job_name}. This may take {_CANCEL_SECONDS} s.")
        # For a second one, which may end the wait below.
        see = f" See: darkroom attempts {output}" if output else ""
        explain_end(interrupt, f"The job {job_name} may go on.{see}")
        explain_end(interrupt, _end(options, job_name, getattr(pipeline, "result", None)))
        raise
    except Exception as error:
        with suppress(StorageError):  # of Flink that is down, which the error says already
            explain_end(error, _end_on_flink(options, job_name))
        raise


def cancel_in_time(cancel: Callable[[], object]) -> bool:
    """Calls what cancels a job, and waits a few seconds for it; tells whether it succeeded."""
    done = threading.Event()

    def call() -> None:
        with suppress(Exception):
            cancel()
            done.set()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(_CANCEL_SECONDS)
    return done.is_set()


@contextmanager
def hide_threads() -> Iterator[None]:
    """Keeps Beam's threads from printing that their job has gone, after a block is interrupted.

    Leave it before the job server is stopped, which they read from.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        before = threading.excepthook

        def report(failure: threading.ExceptHookArgs) -> None:
            if failure.thread is None or not failure.thread.name.startswith(_FOLLOWERS):
                before(failure)

        threading.excepthook = report
        # They log what the engine says on the root logger, and may do so after its file was closed.
        logging.getLogger().addFilter(is_not_beams)
        raise


def end_job(pipeline: beam.Pipeline, job_name: str) -> None:
    """Ends the job of a pipeline on its engine, as far as that is possible."""
    options = pipeline.options.get_all_options(retain_unknown_options=True)
    with suppress(StorageError):
        if _end_on_flink(options, job_name):
            return
    if submitted := getattr(pipeline, "result", None):
        cancel_in_time(submitted.cancel)


def _end(options: Mapping[str, Any], name: str, submitted: Any) -> str:
    """Ends a job, wherever it runs; returns what to tell of it, or an empty text."""
    try:
        if told := _end_on_flink(options, name, _APPEAR_SECONDS if submitted else 0):
            return told
    except StorageError as error:
        return f"Whether the job {name} goes on is not known: {error}"
    endpoint = options.get("job_endpoint")
    if not submitted or endpoint in (None, "embed"):
        return ""
    if cancel_in_time(submitted.cancel):
        return (
            f"The job server at {endpoint} was told to cancel the job {name}. If that runs on "
            "Flink, it goes on: cancel it there, and next time give flink_master, too."
        )
    return (
        f"The job {name} could not be cancelled: the job server at {endpoint} did not do it. Stop "
        "the job on the engine itself."
    )


def _end_on_flink(options: Mapping[str, Any], name: str, seconds: float = 0) -> str:
    """Ends a job on the cluster of the options, if there is one.

    Args:
        options: Beam's options.
        name: What only the name of the job contains.
        seconds: How long to wait for the job to appear.

    Returns:
        What became of it; empty if it does not run on a cluster.

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
        return f"The job {name} on Flink was cancelled; run the same command again to go on."
    if job.has_ended:
        return f"The job {name} on Flink had ended before: {job.state}."
    return (
        f"The job {name} could not be cancelled: it goes on on Flink as job {job.id}, "
        f"{job.state}. Stop it with: {flink.format_cancel(master, job.id)}"
    )


@contextmanager
def take_signals() -> Iterator[None]:
    """Makes both signals raise an exception in the block, so that the job can be cancelled.

    SIGTERM would end a script without a word. Beam takes SIGINT for itself, and stops its job
    server inside the handler; a second signal meanwhile would wait for the first one for ever.
    """
    if threading.current_thread() is not threading.main_thread():  # it gets no signals
        yield
        return
    servers: list[Any] = []
    with ExitStack() as restored:
        restored.callback(_stop_servers, servers)
        _leave_servers(restored, servers)
        _restore(restored, signal.SIGINT)
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            _restore(restored, signal.SIGTERM)
            signal.signal(signal.SIGTERM, _raise_end)
        try:
            yield
        except SystemExit as end:
            if hasattr(end, _MARK):  # Python says nothing of it
                _LOGGER.warning("Ended by SIGTERM. %s", find_explanation(end) or "Run it again.")
            raise


def _restore(restored: ExitStack, number: int) -> None:
    handler = signal.getsignal(number)
    if handler is not None:  # None: it was not set by Python
        restored.callback(signal.signal, number, handler)


def _leave_servers(restored: ExitStack, servers: list[Any]) -> None:
    """Makes Beam's handler only pass SIGINT on; adds the job servers that it would have stopped."""
    from apache_beam.runners.portability.job_server import StopOnExitJobServer

    def pass_on(server: Any, number: int, frame: Any) -> None:
        servers.append(server)
        handler: Callable[[int, Any], Any] | Any = server._original_sigint_handler
        if callable(handler):
            handler(number, frame)

    restored.callback(
        setattr, StopOnExitJobServer, "_sigint_handler", StopOnExitJobServer._sigint_handler
    )
    StopOnExitJobServer._sigint_handler = pass_on


def _stop_servers(servers: list[Any]) -> None:
    """Stops job servers in a thread, which no signal interrupts."""
    for server in set(servers):
        thread = threading.Thread(target=server.stop)
        thread.start()
        thread.join()


def _raise_end(number: int, _: object) -> NoReturn:
    end = SystemExit(128 + number)
    setattr(end, _MARK, True)
    raise end
