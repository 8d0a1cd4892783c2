"""What an engine says when a job fails becomes one error of ours; its own lines go to a file."""

from __future__ import annotations

import logging
import os
import re
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, Any, NamedTuple

from darkroom import errors
from darkroom.errors import DarkroomError, StorageError, UsageError
from darkroom.runtime.text import make_visible

# Beam's own lines, and those of the job server that it starts: Beam logs them under these names.
_LOGGERS = ("apache_beam", "FlinkJarJobServer", "SparkJarJobServer", "PrismJobServer")
_READER_SECONDS = 1.0
_BEAM = f"{os.sep}apache_beam{os.sep}"
# What is before the text of a line in the file.
_FORMAT = "%(asctime)s %(levelname)s %(message)s"
_PREFIX = re.compile(r"^\d{4}-\d\d-\d\d [\d:,]{12} [A-Z+\d ]+? (?=\S|$)", re.MULTILINE)
# Our own error, as a worker or the engine prints it: its class, its message, and Beam's step.
_OURS = re.compile(r"\bdarkroom\.errors\.(\w+): (.+?)(?= \[while running|$)", re.MULTILINE)
_CAUSE = re.compile(
    r"^(?:Caused by: |panic: )?((?:[\w$]+\.)*\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE
)
# They say that a job or a task failed, not why.
_WRAPPERS = {"RuntimeError", "RuntimeException", "ExecutionException", "JobExecutionException"}
# An error that is not ours, raised by a function of ours, at the end of a traceback.
_DEFECT = re.compile(r'File "[^"]*/darkroom/[^"]*", line \d+, in \S+\n[^\n]*\n(?:[ ~^]+\n)?\w+: ')


class _Known(NamedTuple):
    """What some lines of an engine stand for.

    Attributes:
        pattern: A text in them.
        what: What is wrong, and what to do: `hint`.
        kind: The error that it becomes.
        is_start: Whether no worker can begin because of it, so that waiting does not help.
    """

    pattern: str
    what: str
    hint: str
    kind: type[DarkroomError] = StorageError
    is_start: bool = False

    def is_in(self, text: str) -> bool:
        """Tells whether an engine said this."""
        return bool(re.search(self.pattern, text, re.DOTALL | re.MULTILINE))


# It comes as an error of ours, which would only name a path.
NOT_SHARED = _Known(
    r"\.part['\"]? does not exist|/\.attempt\S* does not exist",
    "The engine's workers do not see the output folder",
    "Give an output that all machines reach at this path: a store, or a shared file system.",
)
# From what tells most to what may only follow from something else.
_KNOWN = (
    _Known(
        r"No module named '?darkroom['.]\S+\.|Can't get attribute \S+ on <module 'darkroom"
        r"|cannot import name \S+ from 'darkroom|__init__\(\) .{0,60}argument.{0,200}darkroom",
        "A worker of the engine has another version of darkroom",
        "Install the client's version where the workers run, or run the client in their image.",
        is_start=True,
    ),
    _Known(
        r"No module named '?(?:darkroom|apache_beam)",
        "A worker of the engine does not have darkroom",
        "Use an image, or an environment of Python, that has darkroom: environment_config.",
        is_start=True,
    ),
    _Known(
        r"unknown opcode|bad marshal data|unsupported pickle protocol|code\(\) argument \d+",
        "A worker of the engine has another Python",
        "Use the same version of Python for the client and the workers, as 3.11 for both.",
        is_start=True,
    ),
    _Known(
        r"no main manifest attribute|(?:Invalid or corrupt|Unable to access) jarfile"
        r"|Could not find or load main class",
        "The jar is not a job server of Beam",
        "Name that of the engine, such as beam-runners-flink-1.19-job-server-2.74.0.jar.",
        UsageError,
    ),
    _Known(
        r"UnsupportedClassVersionError|Unrecognized (?:VM )?option",
        "Java is too old for the job server",
        "Install Java 17, or name it with JAVA_HOME.",
    ),
    _Known(
        r"InaccessibleObjectException|does not \"opens",
        "Java is too new for the job server",
        "Install Java 17, or name it with JAVA_HOME.",
    ),
    _Known(
        r"Unable to fetch remote (?:job server jar|prism binary)",
        "Beam could not load the job server",
        "Load it elsewhere, and name it: flink_job_server_jar, prism_location.",
    ),
    _Known(
        r"InvalidClassException|StreamCorruptedException|NoSuchMethodError|NoClassDefFoundError"
        r"|IncompatibleClassChangeError|ClassNotFoundException",
        "The job server does not fit the engine's version",
        "Take the job server that Beam made for this version of the engine, as flink_version=1.19.",
    ),
    _Known(
        r"OutOfMemoryError|MemoryError|exit(?:ed with)? (?:code|status) (?:137|-9)\b|OOMKilled"
        r"|signal: killed|^Killed$",
        "A process of the engine had too little memory",
        "Give its workers more memory, or each fewer shards at once: --num-shards.",
    ),
    _Known(
        r"unable to (?:dial|start) sdk worker"
        r"|(?:UNAVAILABLE|Connection refused).{0,4000}ExternalEnvironmentFactory"
        r"|in start_worker\n.{0,4000}(?:UNAVAILABLE|failed to connect)",
        "No worker pool answers",
        "Start one beside each task manager, and check its address in environment_config.",
        is_start=True,
    ),
    _Known(
        r"NoResourceAvailableException|Could not acquire the minimum required resources"
        r"|Initial job has not accepted any resources",
        "The engine has no free slot for the job",
        "Start a task manager, free slots, or lower parallelism.",
    ),
    _Known(
        r"TaskManager.{0,200}(?:no longer reachable|lost|killed)|RecipientUnreachableException"
        r"|Connection unexpectedly closed by remote task manager|ExecutorLostFailure",
        "The engine lost a worker, and did not start the job's tasks again",
        "Run this again: finished shards are kept. With a restart strategy, the job goes on.",
    ),
    _Known(
        r"Process died with exit code|Failed to start external process|Cannot run program"
        r"|process failed (?:to start|while running)",
        "The engine could not start a worker process",
        "Check the command in environment_config on the engine's machines.",
        is_start=True,
    ),
    _Known(
        r"FutureTimeoutError|failed to connect to all addresses|UNAVAILABLE|Connection refused",
        "The engine, its job server or its workers cannot be reached",
        "Check that they run, and their addresses: flink_master, job_endpoint, environment_config.",
    ),
    _Known("Service failed to start up", "The job server ended at once", "Its lines say why."),
)


@contextmanager
def report_failures(runner: str) -> Iterator[str]:
    """Turns what an engine raises into one error of ours; its lines go to a file, kept if it fails.

    Yields:
        The path of the file.

    Raises:
        UsageError: The engine does not know an option.
        DarkroomError: What a worker raised, if it is ours; else a `StorageError` with the cause.
        Exception: A defect of ours, as it is.
    """
    with tempfile.NamedTemporaryFile(
        "w", prefix="darkroom-engine-", suffix=".log", delete=False, errors="replace"
    ) as log:
        try:
            with _collect_lines(log, runner):
                yield log.name
        except (DarkroomError, KeyboardInterrupt, SystemExit):
            os.unlink(log.name)
            raise
        except Exception as error:
            log.write(f"{type(error).__name__}: {error}\n")
            log.flush()
            if found := _find_cause(runner, error, log.name):
                raise found from error
            raise
        else:
            os.unlink(log.name)


@contextmanager
def _collect_lines(log: IO[str], runner: str) -> Iterator[None]:
    """Sends to a file what Beam, its job server and its threads say."""
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter(_FORMAT))
    handler.addFilter(lambda record: _check_record(record, runner))
    with ExitStack() as restored:
        # Beam logs an engine's messages on the root logger itself; the program's own lines stay.
        for other in logging.getLogger().handlers:
            other.addFilter(_is_not_beams)
            restored.callback(other.removeFilter, _is_not_beams)
        # Without a handler, Beam's errors on the root logger would make one for the terminal.
        for logger in (logging.getLogger(), *map(logging.getLogger, _LOGGERS)):
            logger.addHandler(handler)
            restored.callback(logger.removeHandler, handler)
            if logger.name in _LOGGERS:
                restored.callback(logger.setLevel, logger.level)
                restored.callback(setattr, logger, "propagate", logger.propagate)
                logger.setLevel(logging.INFO)
                logger.propagate = False
        restored.callback(setattr, threading, "excepthook", threading.excepthook)
        threading.excepthook = _make_hook(handler, threading.excepthook)
        restored.callback(_wait_for_readers)
        yield


def _wait_for_readers() -> None:
    """Lets the threads end that read from the job server: they fail a moment after the job."""
    for thread in threading.enumerate():
        if thread.name.startswith("wait_until_finish"):
            thread.join(_READER_SECONDS)


def _make_hook(handler: logging.Handler, others: Callable[[Any], object]) -> Callable[[Any], None]:
    """Returns a hook that keeps the tracebacks of Beam's own threads from the terminal."""

    def hook(failed: Any) -> None:
        frames = traceback.extract_tb(failed.exc_traceback)
        if not any(_BEAM in frame.filename for frame in frames):
            others(failed)
            return
        error = (failed.exc_type, failed.exc_value, failed.exc_traceback)
        handler.emit(logging.LogRecord("", logging.ERROR, "", 0, "In a thread:", (), error))

    return hook


def _is_not_beams(record: logging.LogRecord) -> bool:
    return _BEAM not in record.pathname


def _check_record(record: logging.LogRecord, runner: str) -> bool:
    """Stops a job whose options the engine does not know; Beam would only warn."""
    if isinstance(record.msg, str) and record.msg.startswith("Discarding unparseable args"):
        names = re.findall(r"--([\w-]+)", record.getMessage())
        raise UsageError(
            f"Neither Beam nor {runner} has the option {' or '.join(map(repr, names))}.",
            "See the documentation of Beam's runner.",
        )
    return True


def _find_cause(runner: str, error: Exception, log: str) -> DarkroomError | None:
    """Returns the error of ours for what an engine raised, from the lines that it printed.

    None if it is a defect of darkroom.
    """
    text = _read_log(log)
    where = f"All that {runner} said is in {log}."
    cause = _find_last(text) or _describe_error(error)
    if NOT_SHARED.is_in(text):
        return StorageError(f"{NOT_SHARED.what}: {cause}.", f"{NOT_SHARED.hint} {where}")
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        kind = getattr(errors, name, StorageError)
        return kind(make_visible(message, max_characters=400), where)
    for known in _KNOWN:
        if known.is_in(text):
            return known.kind(f"{known.what}: {cause}.", f"{known.hint} {where}")
    if _DEFECT.search(text):
        return None
    return StorageError(f"{runner} failed: {cause}.", where)


def find_known(log: str) -> tuple[str, bool]:
    """Returns what an engine's lines tell of a failure, and whether no worker can begin then."""
    text = _read_log(log)
    found = next((known for known in _KNOWN if known.is_in(text)), None)
    if not found:
        return "", False
    cause = _find_last(text)
    return f"{found.what}{cause and ': '}{cause}. {found.hint}", found.is_start


def _read_log(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        return _PREFIX.sub("", file.read())


def _find_last(text: str) -> str:
    """Returns the last error that tells why something failed; nothing if there is none."""
    causes = [(kind.rpartition(".")[2], what) for kind, what in _CAUSE.findall(text)]
    telling = [each for each in causes if each[0] not in _WRAPPERS] or causes
    return _shorten(": ".join(telling[-1])) if telling else ""


def _describe_error(error: Exception) -> str:
    # gRPC's own text is several lines about the protocol.
    details = getattr(error, "details", None)
    said = details() if callable(details) else error
    return _shorten(f"{type(error).__name__.lstrip('_')}: {said}")


def _shorten(cause: str) -> str:
    return make_visible(" ".join(cause.split())).rstrip(".:")
