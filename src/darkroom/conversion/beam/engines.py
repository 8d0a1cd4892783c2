"""Engines that run a job of Beam elsewhere: Flink, Spark, or what a job server stands for.

What a job needs is looked at before it is submitted, and what an engine says when a job fails
becomes one error of ours. The engine's own lines go to a file.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from darkroom import errors
from darkroom.errors import DarkroomError, StorageError, UsageError
from darkroom.runtime.text import make_visible

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

FLINK_RUNNER, SPARK_RUNNER = "FlinkRunner", "SparkRunner"
PORTABLE_RUNNER, PRISM_RUNNER = "PortableRunner", "PrismRunner"
ENGINES = (FLINK_RUNNER, SPARK_RUNNER, PORTABLE_RUNNER, PRISM_RUNNER)

_CONNECT_SECONDS = 10
# Beam would wait for minutes, and say nothing meanwhile.
_JOB_SERVER_SECONDS = 30
_MAX_CAUSE = 400
# A master that runs inside the job server.
_INSIDE = re.compile(r"\[.*\]|local(\[.*\])?")
# A cluster that is named by its host alone.
_DEFAULT_PORTS = {"http": 80, "https": 443, "spark": 7077}
# Our own error, as a worker or the engine prints it: its class, its message, and Beam's step.
_OURS = re.compile(r"\bdarkroom\.errors\.(\w+): (.+?)(?= \[while running|\n\n|\Z)", re.DOTALL)
_CAUSE = re.compile(
    r"^(?:Caused by: )?((?:[\w$]+\.)*\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE
)
# They say that a job or a task failed, not why.
_WRAPPERS = {"RuntimeError", "RuntimeException", "ExecutionException", "JobExecutionException"}
# An error that is not ours, raised by a function of ours, at the end of a traceback.
_DEFECT = re.compile(r'File "[^"]*/darkroom/[^"]*", line \d+, in \S+\n[^\n]*\n(?:[ ~^]+\n)?\w+: ')
# What the engine's last lines stand for, by a text in them: what is wrong, and what to do.
_KNOWN = (
    (
        r"No module named '?darkroom|No module named '?apache_beam",
        "A worker of the engine does not have darkroom",
        "Use an image, or an environment of Python, that has darkroom: environment_config.",
    ),
    (
        r"UnsupportedClassVersionError",
        "Java is too old for the job server",
        "Install Java 17, or name it with JAVA_HOME.",
    ),
    (
        r"OutOfMemoryError|MemoryError|exit(?:ed with)? code (?:137|-9)|Killed",
        "A process of the engine had too little memory",
        "Give its workers more memory, or each fewer shards at once: --num-shards.",
    ),
    (
        r"NoResourceAvailableException|Could not acquire the minimum required resources",
        "The engine has no free slot for the job",
        "Start a task manager, free slots, or lower parallelism.",
    ),
    (
        r"TaskManager.{0,200}(?:no longer reachable|lost|killed)|RecipientUnreachableException"
        r"|Connection unexpectedly closed by remote task manager",
        "The engine lost a worker, and did not start the job's tasks again",
        "Run this again: finished shards are kept. A restart strategy of the engine continues the "
        "job itself.",
    ),
    (
        r"Process died with exit code|Failed to start external process|Cannot run program",
        "The engine could not start a worker process",
        "Check the command in environment_config on the engine's machines.",
    ),
    (
        r"\.part['\"]? does not exist|\.attempt/\S+ does not exist",
        "The engine's workers do not see the output folder",
        "Give an output that all machines reach at this path: a store, or a shared file system.",
    ),
    (
        r"FutureTimeoutError|failed to connect to all addresses|UNAVAILABLE|Connection refused",
        "The engine, its job server or its workers cannot be reached",
        "Check that they run, and their addresses: flink_master, job_endpoint, environment_config.",
    ),
)


def check_engine(runner: str, options: PipelineOptions) -> None:
    """Checks that an engine answers, and that its job server can be started here.

    Raises:
        StorageError: It does not answer, or Java is missing.
        UsageError: An address or a jar of the options cannot be used.
    """
    values = options.get_all_options(retain_unknown_options=True)
    if endpoint := values.get("job_endpoint"):
        if endpoint != "embed":
            _connect("job_endpoint", endpoint, "the job server of Beam")
            _ask_job_server(endpoint)
        return
    if runner == PORTABLE_RUNNER:
        raise UsageError(
            "PortableRunner needs the address of a job server.",
            "Give job_endpoint=HOST:PORT (--beam-option), or take FlinkRunner or SparkRunner.",
        )
    if runner not in (FLINK_RUNNER, SPARK_RUNNER):
        return
    kind = runner.removesuffix("Runner")
    master = "flink_master" if runner == FLINK_RUNNER else "spark_master_url"
    if (address := str(values.get(master) or "")) and not _INSIDE.fullmatch(address):
        _connect(master, address, kind)
    if values.get(f"{kind.lower()}_submit_uber_jar"):
        return
    jar = values.get(f"{kind.lower()}_job_server_jar")
    if jar and "://" not in jar and not os.path.isfile(jar):
        raise UsageError(
            f"{kind.lower()}_job_server_jar is {jar!r}, which does not exist.",
            "Name the jar of Beam's job server, or leave the option out to load it.",
        )
    if not _find_java():
        raise StorageError(
            f"The job server of {kind} needs Java, and there is none.",
            "Install Java 17, or give job_endpoint=HOST:PORT of a job server that runs.",
        )


def _find_java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return shutil.which(os.path.join(home, "bin", "java") if home else "java")


def _connect(option: str, address: str, what: str) -> None:
    scheme, _, place = address.strip().rpartition("://")
    host, _, port = place.split("/")[0].rpartition(":")
    if not host and scheme in _DEFAULT_PORTS:
        host, port = port, str(_DEFAULT_PORTS[scheme])
    if not host or not port.isdigit() or int(port) >= 1 << 16:
        raise UsageError(f"{option} is {address!r}, expected HOST:PORT.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except OSError as error:
        reason = "no answer" if isinstance(error, TimeoutError) else error.strerror or error
        raise StorageError(
            f"{what[:1].upper()}{what[1:]} cannot be reached at {address}: {reason}.",
            f"Check that it runs, and the address in {option}.",
        ) from error


def _ask_job_server(endpoint: str) -> None:
    """Checks that what listens speaks as a job server does: an engine's web page listens, too."""
    import grpc

    with grpc.insecure_channel(endpoint) as channel:
        try:
            grpc.channel_ready_future(channel).result(_JOB_SERVER_SECONDS)
        except grpc.FutureTimeoutError as error:
            raise StorageError(
                f"What listens at {endpoint} did not answer as a job server of Beam in "
                f"{_JOB_SERVER_SECONDS} s.",
                "Check the port in job_endpoint: the engine and its worker pools have others.",
            ) from error


@contextmanager
def report_failures(runner: str) -> Iterator[str]:
    """Turns what an engine raises into one error of ours; its own lines go to a file.

    The file is kept if something fails. Meanwhile, Beam's logger sends nothing to the terminal.

    Yields:
        The path of the file.

    Raises:
        UsageError: The engine does not know an option.
        DarkroomError: What a worker raised, if it is ours; else a `StorageError` with the cause.
        Exception: A defect of ours, as it is.
    """
    root, logger = logging.getLogger(), logging.getLogger("apache_beam")
    before = logger.level, logger.propagate
    with tempfile.NamedTemporaryFile(
        "w", prefix="darkroom-engine-", suffix=".log", delete=False, errors="replace"
    ) as log:
        handler = logging.StreamHandler(log)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        handler.addFilter(lambda record: _check_record(record, runner))
        # Without a handler, Beam's errors on the root logger would make one for the terminal.
        root.addHandler(handler)
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        try:
            yield log.name
        except DarkroomError:
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
        finally:
            root.removeHandler(handler)
            logger.removeHandler(handler)
            logger.setLevel(before[0])
            logger.propagate = before[1]


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
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        kind = getattr(errors, name, StorageError)
        return kind(make_visible(message, max_characters=_MAX_CAUSE), where)
    cause = _find_last(text) or _shorten(f"{type(error).__name__}: {error}")
    for pattern, what, hint in _KNOWN:
        if re.search(pattern, text, re.DOTALL):
            return StorageError(f"{what}: {cause}.", f"{hint} {where}")
    if _DEFECT.search(text):
        return None
    return StorageError(f"{runner} failed: {cause}.", where)


def find_known(log: str) -> str:
    """Returns what an engine's lines stand for, as far as they tell of a failure; else nothing."""
    text = _read_log(log)
    for pattern, what, hint in _KNOWN:
        if re.search(pattern, text, re.DOTALL):
            return f"{what}: {_find_last(text)}. {hint}"
    return ""


def _read_log(log: str) -> str:
    with open(log, encoding="utf-8", errors="replace") as file:
        return file.read()


def _find_last(text: str) -> str:
    """Returns the last error that tells why something failed; nothing if there is none."""
    causes = [(kind.rpartition(".")[2], what) for kind, what in _CAUSE.findall(text)]
    telling = [each for each in causes if each[0] not in _WRAPPERS] or causes
    return _shorten(": ".join(telling[-1])) if telling else ""


def _shorten(cause: str) -> str:
    return make_visible(" ".join(cause.split()), max_characters=_MAX_CAUSE).rstrip(".:")
