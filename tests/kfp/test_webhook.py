"""A webhook hears why a gate stopped and how a run ended; when it fails, nothing else does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from darkroom.kfp import webhook

from .tasks import Artifact

NAMES = {"pipeline": "images", "run": "first", "run_id": "7f"}
# Of Kubeflow Pipelines 2.17's driver: it never has an error.
FAILED = {"state": "FAILED", "pipelineTaskName": "exit-handler-1", "error": {}}
SECRET = "T0/geheim"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A webhook: its URL, the status of its answers, and what it was told."""
    known = SimpleNamespace(status=200, told=[])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            known.told.append((self.path, self.headers["Content-Type"], json.loads(body)))
            self.send_response(known.status)
            self.send_header("Location", known.url)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    monkeypatch.setattr(webhook, "_WAIT_SECONDS", 0)
    with HTTPServer(("127.0.0.1", 0), Handler) as found:
        known.url = f"http://127.0.0.1:{found.server_port}/{SECRET}"
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield known
        found.shutdown()


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        (FAILED, "FAILED", ""),
        ({"state": "COMPLETE", "error": {}}, "SUCCEEDED", ""),
        ({"state": "RUNNING", "error": {}}, "UNKNOWN", ""),
        # Vertex has other words, and an error.
        (json.dumps({"state": "FAILED", "error": {"message": "no quota"}}), "FAILED", "no quota"),
    ],
)
def test_the_end_of_a_run_is_told(cluster, server, monkeypatch, status, state, reason):
    monkeypatch.setenv(webhook.VARIABLE, server.url)
    assert cluster.run("notify", **NAMES, status=status).code == 0
    text = f"images first 7f: {state}\n{reason}".strip()
    message = {**NAMES, "state": state, "reason": reason, "text": text}
    assert server.told == [(f"/{SECRET}", "application/json", message)]


@pytest.mark.parametrize("status", [200, 500])
def test_a_gate_says_why_it_stops_and_stops_in_any_case(cluster, server, jpeg_set, status):
    server.status = status
    dataset = cluster.run("convert_images", data=str(jpeg_set.csv)).artifacts["dataset"]
    policies = {"small_classes": "fail"}
    options = {"min_class_images": 20, "policies": policies, "fail": False}
    judged = cluster.run("validate_dataset", {"dataset": dataset}, **options)
    report: dict[str, Artifact] = {"report": judged.artifacts["validation_report"]}
    gate = cluster.run("validation_gate", report, **NAMES, url=server.url)
    assert (gate.code, gate.error["code"]) == (1, "data")
    assert len(server.told) == (1 if status == 200 else 3)
    message = server.told[0][2]
    assert (message["state"], message["reason"]) == ("STOPPED", gate.error["message"])
    assert "small_classes" in message["text"]
    assert ("HTTP status 500" in "\n".join(gate.printed)) == (status == 500)


@pytest.mark.parametrize("status", [301, 404])
def test_a_webhook_that_does_not_take_it_ends_the_task_without_its_secret(cluster, server, status):
    server.status = status
    done = cluster.run("notify", **NAMES, status=FAILED, url=server.url)
    assert (done.code, len(server.told)) == (3, 3)
    assert (
        f"at 127.0.0.1 did not take the message in 3 tries: HTTP status {status}."
        in (done.error["message"])
    )
    assert "geheim" not in "\n".join(done.printed)


@pytest.mark.parametrize(
    "url",
    ["", "ftp://h/geheim", "file:///geheim", "http:///geheim", "https://ann:geheim@h/", "http://[geheim",
     "http://h/geheim\u00e9", "http://h/ geheim", "http://h:geheim/", "http://h\r\ngeheim: 1"],
)  # fmt: skip
def test_what_cannot_be_a_webhook_is_refused_unseen(cluster, url):
    done = cluster.run("notify", **NAMES, status=FAILED, url=url)
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "geheim" not in "\n".join(done.printed)
