"""A stand-in for Flink's REST interface, for tests: a server in this process, and no Flink."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

JOB = "0123456789abcdef0123456789abcdef"
HERE = "pekko.tcp://flink@127.0.0.1:6122/user/rpc/taskmanager_0"


@dataclass
class FlinkRest:
    """What the stand-in answers, and what it was asked.

    Attributes:
        url: Its address.
        version: Version of Flink.
        slots: Slots of all task managers together.
        managers: Address of each task manager.
        jobs: Name and state of each job by its id.
        states: States that a job has after it was cancelled, one for each question; the last
            stays. Empty: Flink refuses to cancel.
        answers: What a path answers instead: a status and a text.
        when_cancelled: Called before Flink answers that it cancels a job.
        asked: Method and path of every question.
    """

    url: str = ""
    version: str = "1.19.3"
    slots: int = 4
    managers: tuple[str, ...] = (HERE, HERE)
    jobs: dict[str, list[str]] = field(default_factory=dict)
    states: list[str] = field(default_factory=lambda: ["CANCELLING", "CANCELED"])
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    when_cancelled: Callable[[], None] = lambda: None
    asked: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str) -> tuple[int, str]:
        """Returns status and text for a question."""
        self.asked.append(f"{method} {path}")
        if path in self.answers:
            return self.answers[path]
        if path == "/overview":
            return _format({"flink-version": self.version, "slots-total": self.slots})
        if path == "/taskmanagers":
            return _format({"taskmanagers": [{"path": path} for path in self.managers]})
        if path == "/jobs/overview":
            return _format({"jobs": [self._describe(job_id) for job_id in self.jobs]})
        job_id = path.removeprefix("/jobs/")
        if job_id not in self.jobs:
            return 404, '{"errors": ["Job not found"]}'
        if method == "PATCH":
            self.when_cancelled()
            if not self.states:
                return 500, '{"errors": ["no"]}'
            return 202, "{}"
        if f"PATCH {path}" in self.asked and self.states:
            self.jobs[job_id][1] = self.states[0]
            del self.states[: len(self.states) > 1]
        return _format(self._describe(job_id))

    def _describe(self, job_id: str) -> dict[str, Any]:
        name, state = self.jobs[job_id]
        start = list(self.jobs).index(job_id)
        return {"jid": job_id, "name": name, "state": state, "start-time": start}


def _format(value: object) -> tuple[int, str]:
    return 200, json.dumps(value)


@contextmanager
def serve_flink() -> Iterator[FlinkRest]:
    """Serves a stand-in on a free port while the block runs."""
    rest = FlinkRest()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, text = rest.answer(self.command, self.path)
            with suppress(ConnectionError):  # who asked may have been interrupted
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

        do_PATCH = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        rest.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield rest
        server.shutdown()
