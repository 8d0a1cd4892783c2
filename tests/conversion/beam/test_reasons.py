"""Of what Beam says of a job that failed, the line that is a reason."""

from __future__ import annotations

import grpc
import pytest

from darkroom.conversion.beam.options import build_options
from darkroom.conversion.beam.reasons import find_failure_reason, find_remedy

FRAMES = """\
org.apache.beam.runners.spark.SparkPipelineRunner.run(SparkPipelineRunner.java:126)
java.base/jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)
java.base/java.lang.Thread.run(Thread.java:840)
"""
STOPPED = f"""\
IllegalStateException: Cannot call methods on a stopped SparkContext.
This stopped SparkContext was created at:

{FRAMES}
The currently active SparkContext was created at:

(No active SparkContext.)
{FRAMES}"""
TRACE = """\
Traceback (most recent call last):
  File "apache_beam/runners/common.py", line 1501, in process
    return self.do_fn_invoker.invoke_process(windowed_value)
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "darkroom/conversion/beam/versions.py", line 99, in check_versions
    raise StorageError(
darkroom.errors.StorageError: A worker (node-3) has Pillow 9.0, but the client has Pillow 12.3.0.
"""
IN_JAVA = f"""\
java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error from SDK: {TRACE}
\tat java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
\t... 7 more
"""
NO_POOL = """\
org.apache.flink.runtime.client.JobExecutionException: Job execution failed.
\tat org.apache.flink.runtime.jobmaster.JobResult.toJobExecutionResult(JobResult.java:144)
\t... 1 more
Caused by: io.grpc.StatusRuntimeException: UNAVAILABLE: io exception
\tat io.grpc.stub.ClientCalls.toStatusRuntimeException(ClientCalls.java:271)
Caused by: java.net.ConnectException: finishConnect(..) failed: Connection refused
"""
WORKER = "darkroom.errors.StorageError: A worker (node-3) has Pillow 9.0, but the client has Pillow"


class Deadline(grpc.RpcError, grpc.Call):
    """An error as a stream raises it, whose text ends with a line of `>` alone."""

    def code(self):
        return grpc.StatusCode.DEADLINE_EXCEEDED

    def details(self):
        return "Deadline Exceeded"

    def __str__(self):
        return '<_MultiThreadedRendezvous:\n\tdetails = "Deadline Exceeded"\n>'


Deadline.__abstractmethods__ = frozenset()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "Pipeline job-001 failed in state FAILED: no slots\n",
            "Pipeline job-001 failed in state FAILED: no slots",
        ),
        (
            STOPPED,
            "IllegalStateException: Cannot call methods on a stopped SparkContext.",
        ),
        (TRACE, f"{WORKER} 12.3.0."),
        (IN_JAVA, f"{WORKER} 12.3.0."),
        (NO_POOL, "java.net.ConnectException: finishConnect(..) failed: Connection refused"),
        ("Dataflow pipeline failed. State: FAILED, Error:\nno quota\n", "no quota"),
        (FRAMES, "RuntimeError"),
        ("", "RuntimeError"),
        ("a\x1b[2Jb", "a<U+001B>[2Jb"),
    ],
)
def test_a_line_that_names_a_place_in_code_is_not_a_reason(text, reason):
    assert find_failure_reason(RuntimeError(text)) == reason


def test_an_error_of_grpc_says_its_status_and_not_its_last_line():
    assert find_failure_reason(Deadline()) == "DEADLINE_EXCEEDED: Deadline Exceeded"


@pytest.mark.parametrize(
    ("reason", "options", "remedy"),
    [
        (
            find_failure_reason(Deadline()),
            {"job_server_timeout": 7},
            "for 7 seconds: give more, as --beam",
        ),
        (
            find_failure_reason(RuntimeError(NO_POOL)),
            {"environment_type": "EXTERNAL", "environment_config": "localhost:50000"},
            "a pool of workers at localhost:50000 beside each task manager",
        ),
        (find_failure_reason(RuntimeError(NO_POOL)), {}, "The lines above"),
        (
            find_failure_reason(RuntimeError(STOPPED)),
            {"environment_type": "EXTERNAL"},
            "The lines above",
        ),
    ],
)
def test_a_reason_that_is_known_comes_with_what_helps(reason, options, remedy):
    assert remedy in find_remedy(reason, build_options("FlinkRunner", options))
