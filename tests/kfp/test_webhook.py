"""A webhook hears why a gate stopped and how a run ended; when it fails, nothing else does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from darkroom.steps import webhook
from darkroom.storage.stores import retries

from ..raw_server import HOSTILE, serve_raw
from .tasks import Artifact

# Of no webhook.
WRONG = [
    "", "ftp://h/geheim", "file:///geheim", "http:///geheim", "https://ann:geheim@h/", "http://[geheim",
    "http://h/geheim\u00e9", "http://h/ geheim", "http://h:geheim/", "http://h\r\ngeheim: 1",
    "http://geheim..b/x", f"http://geheim{'a' * 63}.b/x",
]  # fmt: skip
NAMES = {"pipeline": "images", "run": "first", "run_id": "7f"}
# Of Kubeflow Pipelines 2.17's driver: it never has an error.
FAILED = {"state": "FAILED", "pipelineTaskName": "exit-handler-1", "error": {}}
SECRET = "T0/geheim"
DEEP = "[" * 100_000


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

    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.0)
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
        # Whatever it says, the end is told.
        ("no quota", "UNKNOWN", "no quota"),
        ('{"error": "no quota", "state": null}', "UNKNOWN", "no quota"),
        ({"state": "FAILED", "error": ["no", "quota"]}, "FAILED", "['no', 'quota']"),
        ('["no quota"]', "UNKNOWN", '["no quota"]'),
        (DEEP, "UNKNOWN", f"{DEEP[:200]}\u2026{DEEP[-99:]}"),
    ],
)
def test_the_end_of_a_run_is_told(cluster, server, monkeypatch, status, state, reason):
    monkeypatch.setenv(webhook.WEBHOOK_VARIABLE, server.url)
    assert cluster.run("notify", **NAMES, status=status).code == 0
    text = f"images first 7f: {state}\n{reason}".strip()
    message = {**NAMES, "state": state, "reason": reason, "text": text}
    assert server.told == [(f"/{SECRET}", "application/json", message)]


@pytest.fixture
def report(cluster, jpeg_set) -> dict[str, Artifact]:
    """The input of a gate that stops a run."""
    dataset = cluster.run("convert_images", data=str(jpeg_set.csv)).artifacts["dataset"]
    policies = {"small_classes": "fail"}
    options = {"min_class_images": 20, "policies": policies, "fail": False}
    judged = cluster.run("validate_dataset", {"dataset": dataset}, **options)
    return {"report": judged.artifacts["validation_report"]}


def test_a_gate_says_why_it_stops(cluster, server, report):
    gate = cluster.run("validation_gate", report, **NAMES, url=server.url)
    assert (gate.code, gate.error["code"]) == (1, "data")
    [(_, _, message)] = server.told
    assert (message["state"], message["reason"]) == ("STOPPED", gate.error["message"])
    assert "small_classes" in message["text"]


def test_nothing_takes_the_place_of_the_findings(cluster, server, report, monkeypatch):
    stopped = cluster.run("validation_gate", report).error
    assert "small_classes" in stopped["message"]

    def check(url: str, said: str) -> None:
        gate = cluster.run("validation_gate", report, **NAMES, url=url)
        printed = "\n".join(gate.printed)
        assert (gate.code, gate.error, said in printed) == (1, stopped, True), printed
        assert "geheim" not in printed

    for url in WRONG:
        check(url, "small_classes" if url == "" else "Warning: The URL of the webhook is missing")
    with serve_raw() as raw:
        raw.url += f"/{SECRET}"
        for answer in (*HOSTILE.values(), raw.echo):
            raw.answer = answer
            check(raw.url, "Warning: Telling the webhook at 127.0.0.1 failed 3 times")
        raw.answer = raw.drip
        with monkeypatch.context() as patch:
            patch.setattr(webhook, "_LIMIT_SECONDS", 0.3)
            check(raw.url, "the last time with: no end after")
    check(f"http://127.0.0.1:1/{SECRET}", "Connection refused")
    server.status = 404
    check(
        server.url, "Warning: The webhook at 127.0.0.1 did not take the message: HTTP status 404."
    )
    monkeypatch.setattr(webhook, "tell", lambda *_: 1 / 0)
    check(server.url, "Warning: ZeroDivisionError")


@pytest.mark.parametrize(("status", "tries"), [(301, 1), (404, 1), (500, 3)])
def test_a_webhook_that_does_not_take_it_ends_the_task(cluster, server, status, tries):
    server.status = status
    done = cluster.run("notify", **NAMES, status=FAILED, url=server.url)
    assert (done.code, len(server.told)) == (3, tries)
    assert "webhook at 127.0.0.1 " in done.error["message"]
    assert done.error["message"].endswith(f": HTTP status {status}.")
    assert "The run itself ended as its other tasks say." in done.error["hint"]
    assert "geheim" not in "\n".join(done.printed)


@pytest.mark.parametrize("url", WRONG)
def test_what_cannot_be_a_webhook_is_refused_unseen(cluster, url):
    done = cluster.run("notify", **NAMES, status=FAILED, url=url)
    assert (done.code, done.error["code"]) == (2, "usage")
    assert "geheim" not in "\n".join(done.printed)
