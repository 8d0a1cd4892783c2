"""What an engine says when a job fails becomes one error of ours."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from darkroom import errors
from darkroom.conversion.output.attempts import check_current
from darkroom.errors import (
    STORE_IS_DOWN,
    AccessError,
    DarkroomError,
    OutputError,
    StorageError,
    TransientStorageError,
    UsageError,
)
from darkroom.runtime.text import make_visible

if TYPE_CHECKING:
    from darkroom.conversion.beam.transforms import WriteDataset

# Our own error, as a worker or the engine prints it: its class, its message, and Beam's step.
_OURS = re.compile(r"\bdarkroom\.errors\.(\w+): (.+?)(?= \[while running|$)", re.MULTILINE)
_CAUSE = re.compile(
    r"^(?:Caused by: |panic: )?((?:[\w$]+\.)*\w*(?:Error|Exception|Interrupt)): (.+)$", re.MULTILINE
)
# They say that a job or a task failed, not why.
_WRAPPERS = {
    "RuntimeError",
    "RuntimeException",
    "ExecutionException",
    "JobExecutionException",
    "JobCancellationException",
    "ProgramInvocationException",
    "ClientExecutionException",
}
# An error that is not ours, raised by a function of ours, at the end of a traceback.
_DEFECT = re.compile(r'File "[^"]*/darkroom/[^"]*", line \d+, in \S+\n[^\n]*\n(?:[ ~^]+\n)?\w+: ')

# What a user may have given to say what runs darkroom on the engine's machines.
_WORKERS = "--engine-workers or environment_config"
_CREDENTIALS = (
    "Workers take a store's address and credentials from their own environment: check these first. "
    "If they are right, run again when the store is back."
)


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
        f"Use an image, or an environment of Python, that has darkroom: {_WORKERS}.",
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
        "Leave the option out: then Beam's job server for the engine is looked for.",
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
        r"IllegalAccessError.{0,400}sun\.nio\.ch",
        "Java hides from Spark what its job server needs",
        "Take --engine spark, or start the job server with this option of Java: "
        "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED.",
    ),
    _Known(
        r"Unable to fetch remote (?:job server jar|prism binary)",
        "Beam could not load the job server",
        "Load it elsewhere, and name it: flink_job_server_jar, prism_location.",
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
        f"Start one beside each task manager, and check its address: {_WORKERS}.",
        is_start=True,
    ),
    _Known(
        "Insufficient number of network buffers",
        "The engine has too few network buffers",
        "Configure Flink with more, as by taskmanager.network.sort-shuffle.min-buffers: 64.",
    ),
    _Known(
        r"NoResourceAvailableException|Could not acquire the minimum required resources"
        r"|Initial job has not accepted any resources",
        "The engine has no free slot for the job",
        "Start a task manager, free slots, or lower parallelism.",
    ),
    _Known(
        r"TaskManager.{0,200}(?:no longer reachable|lost|killed)|RecipientUnreachableException"
        r"|The TaskExecutor is shutting down"
        r"|Connection unexpectedly closed by remote task manager|ExecutorLostFailure",
        "The engine lost a worker",
        "With a restart strategy it goes on by itself. Else run this again: finished shards are "
        "kept.",
    ),
    _Known(
        r"Process died with exit code|Failed to start external process|Cannot run program"
        r"|process failed (?:to start|while running)|error=(?:2|13), ",
        "The engine could not start a worker process",
        f"Check on the engine's machines that the program is there and may be run: {_WORKERS}.",
        is_start=True,
    ),
    _Known(
        "StatusRuntimeException: CANCELLED",
        "A worker process ended while it worked",
        "Perhaps something ended it, or its machine had too little memory. With a restart strategy "
        "the job goes on by itself. Else run this again: finished shards are kept.",
    ),
    # Also where a task of Spark has failed, and went on.
    _Known(
        r"InvalidClassException|StreamCorruptedException|NoSuchMethodError|NoClassDefFoundError"
        r"|IncompatibleClassChangeError|ClassNotFoundException",
        "The job server does not fit the engine's version",
        "Take the job server that Beam made for this version of the engine.",
    ),
    _Known(
        r"FutureTimeoutError|failed to connect to all addresses|UNAVAILABLE|Connection refused",
        "The engine, its job server or its workers cannot be reached",
        f"Check that they run, and their addresses: --engine-url, job_endpoint, {_WORKERS}.",
    ),
    _Known("Service failed to start up", "The job server ended at once", "Its lines say why."),
)


class Failure(NamedTuple):
    """What an engine's lines tell of a failure.

    Attributes:
        text: What failed, and what to do; empty if nothing in them is an error.
        is_start: Whether no worker can begin because of it, so that waiting does not help.
        returns: Whether it comes again when the same is tried again.
    """

    text: str
    is_start: bool = False
    returns: bool = False


def find_cause(
    runner: str, error: Exception, text: str, where: str, workers: str = ""
) -> DarkroomError | None:
    """Returns the error of ours for what an engine raised, from the lines that it printed.

    Args:
        runner: Beam's name of the runner.
        error: What was raised here.
        text: The engine's lines.
        where: A sentence that says where these lines are.
        workers: What was to run darkroom, as `command=PATH`; empty if that is not known.

    Returns:
        The error; None for a defect of darkroom.
    """
    cause = _find_last(text) or _describe_error(error)
    if NOT_SHARED.is_in(text):
        return StorageError(f"{NOT_SHARED.what}: {cause}.", f"{NOT_SHARED.hint} {where}")
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        kind = getattr(errors, name, StorageError)
        is_store = issubclass(kind, TransientStorageError | AccessError)
        return kind(_shorten_ours(message), f"{_CREDENTIALS} {where}" if is_store else where)
    if known := _find_known(text):
        cause = _find_last(text, known) or cause
        given = f" It was {workers}." if workers and known.is_start else ""
        return known.kind(f"{known.what}: {cause}.", f"{known.hint}{given} {where}")
    if _DEFECT.search(text):
        return None
    return StorageError(f"{runner} failed: {cause}.", where)


def describe_failure(text: str) -> Failure:
    """Returns what an engine's lines tell of a failure while its job runs."""
    last = _find_last(text)
    cause = f": {last}" if last else ""
    if NOT_SHARED.is_in(text):
        return Failure(f"{NOT_SHARED.what}{cause}. {NOT_SHARED.hint}", returns=True)
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        # The store may have recovered when an engine tries again.
        is_transient = name == TransientStorageError.__name__
        hint = f" {_CREDENTIALS}" if is_transient or name == AccessError.__name__ else ""
        return Failure(f"{_shorten_ours(message)}{hint}", returns=not is_transient)
    if known := _find_known(text):
        cause = f": {last}" if (last := _find_last(text, known)) else ""
        return Failure(f"{known.what}{cause}. {known.hint}", is_start=known.is_start)
    return Failure(last and f"{last}.", returns=bool(_DEFECT.search(text)))


def is_unshared(write: WriteDataset, said: str) -> bool:
    """Tells whether workers do not see the output, when they say that a later run has taken it.

    To a worker both look the same, but the client sees the attempt's folder.
    """
    task = write.tasks[0]
    if f"attempt {task.folders.token} ends" not in said:
        return False
    with suppress(OutputError):
        check_current(task.folders, task.output or task.folders.examples)
        return True
    return False


def _find_known(text: str) -> _Known | None:
    return next((known for known in _KNOWN if known.is_in(text)), None)


def _find_last(text: str, known: _Known | None = None) -> str:
    """Returns the last error that tells why something failed; nothing if there is none.

    Args:
        text: The engine's lines.
        known: What they stand for: an error that says this tells more than a later one.
    """
    causes = [(kind.rpartition(".")[2], what) for kind, what in _CAUSE.findall(text)]
    telling = [each for each in causes if each[0] not in _WRAPPERS] or causes
    if known:
        telling = [each for each in telling if known.is_in(": ".join(each))] or telling
    # The line before it names the program.
    telling = [each for each in telling if not each[1].startswith("error=")] or telling
    return _shorten(": ".join(telling[-1])) if telling else ""


def _describe_error(error: Exception) -> str:
    # gRPC's own text is several lines about the protocol.
    details = getattr(error, "details", None)
    said = details() if callable(details) else error
    return _shorten(f"{type(error).__name__.lstrip('_')}: {said}")


def _shorten_ours(message: str) -> str:
    # The client may reach the store: that it is down is only one of the causes.
    return make_visible(message.replace(STORE_IS_DOWN, "").strip(), max_characters=400)


def _shorten(cause: str) -> str:
    return make_visible(" ".join(cause.split())).rstrip(".:")
