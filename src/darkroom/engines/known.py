"""Messages of engines about failures, and their meaning."""

from __future__ import annotations

import re
from typing import NamedTuple

from darkroom.errors import DarkroomError, StorageError, UsageError

# The options that say how darkroom runs on the engine's machines.
WORKERS = "--engine-workers or environment_config"


class Known(NamedTuple):
    """The meaning of some lines of an engine.

    Attributes:
        pattern: A text in them.
        what: The problem, and what to do: `hint`.
        kind: The error that it becomes.
    """

    pattern: str
    what: str
    hint: str
    kind: type[DarkroomError] = StorageError

    def is_in(self, text: str) -> bool:
        """Tells whether an engine said this."""
        return bool(re.search(self.pattern, text, re.DOTALL | re.MULTILINE))


# It comes as a darkroom error, which would only name a path.
NOT_SHARED = Known(
    r"/\.(?:attempt|features)\S* does not exist",
    "The engine's workers do not see the output folder",
    "Give an output that all machines reach at this path: a store, or a shared file system.",
)
# From causes to errors that may only follow from something else.
KNOWN = (
    Known(
        r"No module named '?darkroom['.]\S+\.|Can't get attribute \S+ on <module 'darkroom"
        r"|cannot import name \S+ from 'darkroom|__init__\(\) .{0,60}argument.{0,200}darkroom",
        "A worker of the engine has another version of darkroom",
        "Install the client's version where the workers run, or run the client in their image.",
    ),
    Known(
        r"No module named '?(?:darkroom|apache_beam)",
        "A worker of the engine does not have darkroom",
        f"Use an image, or an environment of Python, that has darkroom: {WORKERS}.",
    ),
    Known(
        "Pipeline construction environment and pipeline runtime",
        "A worker of the engine has another Python or Beam",
        f"Use the client's versions of both where the workers run: {WORKERS}.",
    ),
    Known(
        "No client connected within timeout",
        "A worker of the engine began, and did not connect for data",
        "Mostly it has another Python or Beam than the client. See the log of the task manager or "
        "of the worker pool.",
    ),
    Known(
        r"unknown opcode|bad marshal data|unsupported pickle protocol|code\(\) argument \d+",
        "A worker of the engine has another Python",
        "Use the same version of Python for the client and the workers, as 3.11 for both.",
    ),
    Known(
        r"no main manifest attribute|(?:Invalid or corrupt|Unable to access) jarfile"
        r"|Could not find or load main class",
        "The jar is not a job server of Beam",
        "Leave the option out: then Beam's job server for the engine is looked for.",
        UsageError,
    ),
    Known(
        r"UnsupportedClassVersionError|Unrecognized (?:VM )?option",
        "Java is too old for the job server",
        "Install Java 17, or name it with JAVA_HOME.",
    ),
    Known(
        r"InaccessibleObjectException|does not \"opens",
        "Java is too new for the job server",
        "Install Java 17, or name it with JAVA_HOME.",
    ),
    Known(
        r"IllegalAccessError.{0,400}sun\.nio\.ch",
        "Java hides parts that the job server of Spark needs",
        "Take --engine spark, or start the job server with this option of Java: "
        "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED.",
    ),
    Known(
        r"Unable to fetch remote (?:job server jar|prism binary)",
        "Beam could not load the job server",
        "Load it elsewhere, and name it: flink_job_server_jar, prism_location.",
    ),
    Known(
        r"OutOfMemoryError|MemoryError|exit(?:ed with)? (?:code|status) (?:137|-9)\b|OOMKilled"
        r"|signal: killed|^Killed$",
        "A process of the engine had too little memory",
        "Give its workers more memory, or each fewer shards at once: --num-shards.",
    ),
    Known(
        r"unable to (?:dial|start) sdk worker"
        r"|(?:UNAVAILABLE|Connection refused).{0,4000}ExternalEnvironmentFactory"
        r"|in start_worker\n.{0,4000}(?:UNAVAILABLE|failed to connect)",
        "No worker pool answers",
        f"Start one beside each task manager, and check its address: {WORKERS}.",
    ),
    Known(
        "Insufficient number of network buffers",
        "The engine has too few network buffers",
        "Configure Flink with more, as by taskmanager.network.sort-shuffle.min-buffers: 64.",
    ),
    Known(
        r"NoResourceAvailableException|Could not acquire the minimum required resources"
        r"|Initial job has not accepted any resources",
        "The engine has no free slot for the job",
        "Start a task manager, free slots, or lower parallelism.",
    ),
    Known(
        r"TaskManager.{0,200}(?:no longer reachable|lost|killed)|RecipientUnreachableException"
        r"|The TaskExecutor is shutting down"
        r"|Connection unexpectedly closed by remote task manager|ExecutorLostFailure",
        "The engine lost a worker",
        "With a restart strategy it resumes by itself. Else run this again: finished shards are "
        "kept.",
    ),
    Known(
        r"Process died with exit code|Failed to start external process|Cannot run program"
        r"|process failed (?:to start|while running)|error=(?:2|13), ",
        "The engine could not start a worker process",
        f"Check on the engine's machines that the program exists and may be run: {WORKERS}.",
    ),
    Known(
        "StatusRuntimeException: CANCELLED",
        "A worker process ended while it worked",
        "Perhaps something ended it, or its machine had too little memory. With a restart strategy "
        "the job resumes by itself. Else run this again: finished shards are kept.",
    ),
    # Also where a task of Spark has failed and was repeated.
    Known(
        r"InvalidClassException|StreamCorruptedException|NoSuchMethodError|NoClassDefFoundError"
        r"|IncompatibleClassChangeError|ClassNotFoundException",
        "The job server does not fit the engine's version",
        "Take the job server that Beam made for this version of the engine.",
    ),
    Known(
        r"FutureTimeoutError|failed to connect to all addresses|UNAVAILABLE|Connection refused",
        "The engine, its job server or its workers cannot be reached",
        f"Check that they run, and their addresses: --engine-url, job_endpoint, {WORKERS}.",
    ),
    Known("Service failed to start up", "The job server ended at once", "Its lines say why."),
)
