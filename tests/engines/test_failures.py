"""What an engine says when a job fails, and what a user reads of it."""

from __future__ import annotations

import pytest

from darkroom.engines.failures import find_cause
from darkroom.errors import STORE_IS_DOWN, StorageError

JAVA = "\tat org.apache.beam.runners.fnexecution.control.Client.get(Client.java:71)\n" * 50
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/site-packages/{}", line 3, in run\n    go()\n'
)


# What engines print in such a case, in short; what a user reads of it; the exit code.
SAID = {
    "a data error": (
        "Caused by: java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error "
        "received from SDK harness for instruction 3: " + TRACEBACK.format("worker.py") +
        "darkroom.errors.DataError: s3://in/a.csv changed while it was read. Run this again. "
        "[while running 'WriteDataset/WriteShards-ptransform-42']\n\n" + JAVA,
        "s3://in/a.csv changed while it was read. Run this again.",
        1,
    ),
    "a wrong jar": (
        "Error: Could not find or load main class org.apache.beam.runners.flink.FlinkJobServer",
        "The jar is not a job server of Beam: ",
        2,
    ),
    "Java that is too old": (
        "java.lang.UnsupportedClassVersionError: org/apache/beam/runners/flink/FlinkDriver "
        "has been compiled by a more recent version of the Java Runtime (class file version 55.0), "
        "this version of the Java Runtime only recognizes class file versions up to 52.0",
        "Java is too old for the job server: UnsupportedClassVersionError: ",
        3,
    ),
    "Java that is too new": (
        "Caused by: java.lang.reflect.InaccessibleObjectException: Unable to make field private "
        'final byte[] java.lang.String.value accessible: module java.base does not "opens '
        'java.lang" to unnamed module @1d057a39',
        "Java is too new for the job server: InaccessibleObjectException: ",
        3,
    ),
    "a jar that cannot be loaded": (
        "RuntimeError: Unable to fetch remote job server jar at "
        "https://repo/beam-runners-flink-1.19-job-server-2.74.0.jar: HTTP Error 404: Not Found",
        "Beam could not load the job server: RuntimeError: ",
        3,
    ),
    "a job server for another version of the engine": (
        "java.io.InvalidClassException: org.apache.flink.runtime.jobgraph.JobGraph; local class "
        "incompatible: stream classdesc serialVersionUID = 1, local class serialVersionUID = 2",
        "The job server does not fit the engine's version: InvalidClassException: ",
        3,
    ),
    "no task manager": (
        "org.apache.flink.runtime.JobException: Recovery is suppressed by "
        "NoRestartBackoffTimeStrategy\n" + JAVA +
        "Caused by: java.util.concurrent.CompletionException: org.apache.flink.runtime.jobmanager."
        "scheduler.NoResourceAvailableException: Could not acquire the minimum required resources.",
        "The engine has no free slot for the job: CompletionException: ",
        3,
    ),
    "no worker pool": (
        "Caused by: org.apache.beam.vendor.grpc.v1p60p1.io.grpc.StatusRuntimeException: "
        "UNAVAILABLE: io exception\n" +
        JAVA.replace("control.Client", "environment.ExternalEnvironmentFactory") +
        "Caused by: java.net.ConnectException: Connection refused",
        "No worker pool answers: ConnectException: Connection refused.",
        3,
    ),
    "a worker without darkroom": (
        "java.lang.RuntimeException: Error received from SDK harness for instruction 1: " +
        TRACEBACK.format("apache_beam/internal/cloudpickle/cloudpickle.py") +
        "ModuleNotFoundError: No module named 'darkroom'\n" + JAVA,
        "A worker of the engine does not have darkroom: ModuleNotFoundError: No module named ",
        3,
    ),
    "a worker with another version of darkroom": (
        TRACEBACK.format("cloudpickle.py") +
        "ModuleNotFoundError: No module named 'darkroom.conversion.beam.versions'\n",
        "A worker of the engine has another version of darkroom: ModuleNotFoundError: ",
        3,
    ),
    "a worker with another version of pyarrow": (
        "RuntimeError: " + TRACEBACK.format("darkroom/conversion/beam/versions.py") +
        "darkroom.errors.StorageError: A worker (w1) has pyarrow 10.0.1, but the client has "
        "pyarrow 25.0.1. The files that it writes would differ. Install the same.\n" + JAVA,
        "A worker (w1) has pyarrow 10.0.1, but the client has pyarrow 25.0.1. ",
        3,
    ),
    "a token that expired": (
        "RuntimeError: " + TRACEBACK.format("darkroom/storage/requests.py") +
        "darkroom.errors.CredentialsError: Reading s3://b/7.jpg failed, because of the "
        "credentials: ExpiredToken. [while running 'WriteDataset/WriteShards']\n\n" + JAVA,
        "Reading s3://b/7.jpg failed, because of the credentials: ExpiredToken.",
        3,
    ),
    "a worker with another Python": (
        TRACEBACK.format("dill/_dill.py") + "ValueError: unsupported pickle protocol: 5\n",
        "A worker of the engine has another Python: ValueError: unsupported pickle protocol: 5.",
        3,
    ),
    "output that is not shared": (
        "RuntimeError: " + TRACEBACK.format("darkroom/conversion/beam/transforms.py") +
        "darkroom.errors.StorageError: /out/.attempt/0a1b/shard-00003.part does not exist. Check "
        "the path. [while running 'WriteDataset/WriteShards-ptransform-42']\n\n" + JAVA,
        "The engine's workers do not see the output folder: StorageError: /out/.attempt/0a1b/",
        3,
    ),
    "features of a dataset that the workers do not see": (
        "darkroom.errors.MissingPathError: /out/.features/0a1b/00003 does not exist.",
        "The engine's workers do not see the output folder: MissingPathError: /out/.features/0a1b/",
        3,
    ),
    "a lost worker": (
        "org.apache.flink.runtime.JobException: Recovery is suppressed by "
        "NoRestartBackoffTimeStrategy\n" + JAVA +
        "Caused by: org.apache.flink.runtime.jobmaster.JobMasterException: TaskManager with id "
        "localhost:36261-4cf4a9 is no longer reachable.",
        "The engine lost a worker: JobMasterException: ",
        3,
    ),
    "a worker of Beam that ended while it worked": (
        "java.util.concurrent.ExecutionException: org.apache.beam.vendor.grpc.v1p69p0.io.grpc."
        "StatusRuntimeException: CANCELLED: client cancelled\n" + JAVA +
        "Caused by: org.apache.beam.vendor.grpc.v1p69p0.io.grpc.StatusRuntimeException: CANCELLED: "
        "client cancelled\n" + JAVA,
        "A worker process ended while it worked: StatusRuntimeException: CANCELLED: client cancel",
        3,
    ),
    "a worker with another Python, or another Beam": (
        "java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error received from "
        "SDK harness for instruction 2: " + TRACEBACK.format("worker/bundle_processor.py") +
        "RuntimeError: Pipeline construction environment and pipeline runtime environment are not "
        "compatible. Submission environment: beam:version:sdk_base:apache/beam_python3.10_sdk:2.7. "
        "Runtime environment: beam:version:sdk_base:apache/beam_python3.11_sdk:2.7.\n\n" + JAVA,
        "A worker of the engine has another Python or Beam: RuntimeError: Pipeline construction ",
        3,
    ),
    "a worker that never connects": (
        "java.lang.RuntimeException: No client connected within timeout\n" + JAVA +
        "Caused by: java.util.concurrent.TimeoutException: Waited 3 minutes for SettableFuture\n",
        "A worker of the engine began, and did not connect for data: RuntimeException: No client ",
        3,
    ),
    "Spark's job server with Java 17": (
        "java.lang.IllegalAccessError: class org.apache.spark.storage.StorageUtils$ cannot access "
        "class sun.nio.ch.DirectBuffer: java.base does not export sun.nio.ch to unnamed module",
        "Java hides parts that the job server of Spark needs: IllegalAccessError: class org",
        3,
    ),
    "memory of Java": (
        "Caused by: java.lang.OutOfMemoryError: Java heap space",
        "A process of the engine had too little memory: OutOfMemoryError: Java heap space.",
        3,
    ),
    "a program that is not there, after which Flink's client fails, too": (
        'Caused by: java.io.IOException: Cannot run program "/opt/w": error=2, No such file\n' +
        "java.lang.IllegalStateException: Process died with exit code 1\n" +
        'Caused by: java.io.IOException: Cannot run program "/opt/w": error=2, No such file\n' +
        JAVA + "org.apache.flink.client.program.ProgramInvocationException: Job failed\n"
        "java.util.NoSuchElementException: No value present\n",
        'The engine could not start a worker process: IOException: Cannot run program "/opt/w": ',
        3,
    ),
    "a job that was cancelled for its cause": (
        "java.io.IOException: No space left on device\n"
        "Caused by: org.apache.flink.runtime.client.JobCancellationException: Job was cancelled.",
        "PortableRunner failed: IOException: No space left on device.",
        3,
    ),
    "a command that does not start a worker": (
        "java.lang.IllegalStateException: Process died with exit code 1",
        "The engine could not start a worker process: IllegalStateException: Process died with",
        3,
    ),
    "something new": ("The engine is out of ideas.", "PortableRunner failed: RuntimeError: ", 3),
}  # fmt: skip


def _find(text: str, error: Exception | None = None):
    return find_cause("PortableRunner", error or RuntimeError("job-1 FAILED"), text, "See x.log.")


@pytest.mark.parametrize("what", SAID)
def test_what_an_engine_says_is_told_in_a_sentence_with_a_hint_and_an_exit_code(what):
    said, message, code = SAID[what]
    error = _find(f"The job begins.\n{said}")
    assert error.message.startswith(message)
    assert error.exit_code == code
    assert error.hint.endswith("See x.log.")
    assert len(str(error).splitlines()) <= 10


def test_a_store_that_fails_for_workers_alone_has_a_hint():
    error = _find(
        f"darkroom.errors.TransientStorageError: s3://a is down. {STORE_IS_DOWN} "
        "[while running 'WriteShards']"
    )
    assert error.message == "s3://a is down."
    assert error.hint.startswith("Workers take a store's address and credentials from their own")


def test_a_defect_of_darkroom_on_a_worker_has_no_cause():
    said = TRACEBACK.format("darkroom/conversion/shards/shard.py") + "TypeError: 'int' object"
    assert _find(said) is None


def test_an_error_in_a_folder_that_has_our_name_is_not_a_defect_of_ours():
    said = 'Traceback (most recent call last):\n  File "/home/me/darkroom/own.py", line 3, in run\n'
    error = _find(f"{said}    go()\nTypeError: 'int' object")
    assert type(error) is StorageError
    assert "TypeError: 'int' object" in error.message


def test_an_error_of_grpc_is_told_by_its_details():
    class Gone(Exception):  # noqa: N818
        def details(self) -> str:
            return "Stream removed"

    error = _find("", Gone("<_Rendezvous of RPC that terminated with:\n\tstatus = ABORTED>"))
    assert error.message == "PortableRunner failed: Gone: Stream removed."
