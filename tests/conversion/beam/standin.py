"""A job service of Beam that runs nothing: it answers what a test tells it to.

It speaks the real protocol on loopback, so that everything in the client is tried: submission,
states, messages, cancelling, and what becomes of a failure.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_job_api_pb2 as api
from apache_beam.portability.api import beam_job_api_pb2_grpc as services
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

State, Message = api.JobState, api.JobMessage
JOB = "job-1"


class StandIn(services.JobServiceServicer):
    """Takes one job, says what it is told to, and ends it.

    Args:
        end: The job's last state.
        messages: What the engine says of errors while the job runs, in this order.
        run: Called with the job's pipeline while it runs. It may wait; the job ends with it. What
            it raises is the last message of a job that failed.

    Attributes:
        pipeline: The job, as it was submitted.
        options: Beam's options of the job by name.
        was_cancelled: Set once the client has cancelled the job.
        stream_seconds: For how long the client follows the job's states; None for ever.
    """

    def __init__(
        self,
        end: int = State.DONE,
        messages: Sequence[str] = (),
        run: Callable[[Any], None] = lambda pipeline: None,
    ) -> None:
        self.pipeline: Any = None
        self.options: dict[str, Any] = {}
        self.was_cancelled = threading.Event()
        self.stream_seconds: float | None = None
        self._end, self._messages, self._run = end, [*messages], run
        self._started, self._ended = threading.Event(), threading.Event()

    def DescribePipelineOptions(self, request, context):  # noqa: N802
        return api.DescribePipelineOptionsResponse()

    def Prepare(self, request, context):  # noqa: N802
        self.pipeline = request.pipeline
        values = request.pipeline_options.fields
        self.options = {name.split(":")[2]: value for name, value in values.items()}
        # Without an address for artifacts, the client stages none.
        return api.PrepareJobResponse(preparation_id=JOB, staging_session_token="token")

    def Run(self, request, context):  # noqa: N802
        self._started.set()
        threading.Thread(target=self._work, daemon=True).start()
        return api.RunJobResponse(job_id=JOB)

    def _work(self) -> None:
        try:
            self._run(self.pipeline)
        except Exception:  # noqa: BLE001  a job that fails says why
            self._end = State.FAILED
            self._messages.append(traceback.format_exc())
        finally:
            self._ended.set()

    def GetState(self, request, context):  # noqa: N802
        return api.JobStateEvent(state=self._last() if self._ended.is_set() else State.RUNNING)

    def GetStateStream(self, request, context):  # noqa: N802
        self.stream_seconds = context.time_remaining()
        for state in self._states():
            yield api.JobStateEvent(state=state)

    def GetMessageStream(self, request, context):  # noqa: N802
        for state in self._states():
            if state == self._last():
                for number, text in enumerate(self._messages):
                    yield api.JobMessagesResponse(
                        message_response=Message(
                            message_id=str(number),
                            importance=Message.JOB_MESSAGE_ERROR,
                            message_text=text,
                        )
                    )
            yield api.JobMessagesResponse(state_response=api.JobStateEvent(state=state))

    def Cancel(self, request, context):  # noqa: N802
        self.was_cancelled.set()
        self._ended.set()
        return api.CancelJobResponse(state=State.CANCELLED)

    def _last(self) -> int:
        return State.CANCELLED if self.was_cancelled.is_set() else self._end

    def _states(self) -> Iterator[int]:
        yield State.STOPPED
        self._started.wait()
        yield State.STARTING
        yield State.RUNNING
        self._ended.wait()
        yield self._last()


def run_here(pipeline: Any) -> None:
    """Runs a job in this process, as an engine would."""
    FnApiRunner().run_via_runner_api(pipeline, PipelineOptions([])).wait_until_finish()


@contextmanager
def serve(service: StandIn) -> Iterator[dict[str, Any]]:
    """Yields the Beam options of `PortableRunner` that submit to the service while it runs."""
    server = grpc.server(ThreadPoolExecutor(8))
    port = server.add_insecure_port("127.0.0.1:0")
    services.add_JobServiceServicer_to_server(service, server)
    server.start()
    try:
        yield {
            "job_endpoint": f"127.0.0.1:{port}",
            "environment_type": "beam:env:embedded_python:v1",
        }
    finally:
        service._started.set()
        service._ended.set()
        server.stop(None).wait()
