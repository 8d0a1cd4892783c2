"""Stores on loopback: S3 by moto, Google's by gcp-storage-emulator, both behind faults."""

from __future__ import annotations

import http.client
import io
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from darkroom import storage
from darkroom.storage.stores import retries

from ..storage.test_retries import Clock

BUCKET = "photos"
# The fixture `hurry` takes it away.
_SET_PATIENCE = retries.set_patience
# A status, headers and a body.
Answer = tuple[int, dict[str, str], bytes]
# Answers a method, a path with its query, headers, and a body.
Store = Callable[[str, str, Mapping[str, str], bytes], Answer]


FaultKind = int | str | Callable[[dict[str, str], bytes], tuple[dict[str, str], bytes]]


@dataclass
class Fault:
    """A fault of the requests that contain a text.

    Attributes:
        text: Part of "METHOD /path?query".
        kind: A status, a status and S3's code for it as in "400 ExpiredToken", or one of cut, drip,
            stall, reset. Or it damages the headers and the body of an answer.
        times: How many more times.
    """

    text: str
    kind: FaultKind
    times: int = 1_000


class Proxy(ThreadingHTTPServer):
    """Passes requests on to a store, or fails as asked.

    Attributes:
        ask: The store.
        faults: What to do wrong.
        requests: The requests that came, as "METHOD /path?query".
        on_request: Called with each of them before it is passed on.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, ask: Store) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ask = ask
        self.reset()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def reset(self) -> None:
        self.faults: list[Fault] = []
        self.requests: list[str] = []
        self.on_request = lambda line: None

    def fail(self, text: str, kind: FaultKind, times: int = 1_000) -> None:
        self.faults.append(Fault(text, kind, times))

    def find_fault(self, line: str) -> FaultKind | None:
        for fault in self.faults:
            if fault.text in line and fault.times > 0:
                fault.times -= 1
                return fault.kind
        return None

    def count(self, text: str) -> int:
        return sum(text in line for line in self.requests)

    def handle_error(self, *_: object) -> None:
        """Logs nothing: clients hang up on purpose here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Else a body that follows its head waits 40 ms for the client to confirm the head.
    disable_nagle_algorithm = True
    server: Proxy

    def handle_any(self) -> None:
        body = self._read_body()
        line = f"{self.command} {self.path}"
        if "uploadType=multipart" in line:
            # Google's API names a small upload only in its body.
            line += " " + body.partition(b'"name": "')[2].partition(b'"')[0].decode()
        self.server.requests.append(line)
        self.server.on_request(line)
        fault = self.server.find_fault(line)
        if isinstance(fault, int):
            self._answer(fault, {}, _ERROR % (b"Fault%d" % fault))
        elif isinstance(fault, str) and fault[0].isdigit():
            status, code = fault.split()
            self._answer(int(status), {}, _ERROR % code.encode())
        elif fault == "reset":
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
            for file in (self.rfile, self.wfile, self.connection):
                file.close()
        else:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOP}
            status, found, data = self.server.ask(self.command, self.path, headers, body)
            kept = {k: v for k, v in found.items() if k.lower() not in _HOP}
            if self.command == "HEAD":
                kept["Content-Length"] = found.get("Content-Length", "0")
            if callable(fault):
                kept, data = fault(kept, data)
                fault = None
            self._answer(status, kept, data, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

    def _read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(
        self, status: int, headers: dict[str, str], data: bytes, fault: str | None = None
    ) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault is None:
            self.wfile.write(data)
            return
        self.close_connection = True
        if fault == "cut":
            self.wfile.write(data[: len(data) // 2])
        elif fault == "stall":
            time.sleep(5)
        else:
            for number in range(min(len(data), 100)):
                self.wfile.write(data[number : number + 1])
                self.wfile.flush()
                time.sleep(0.05)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


_HOP = {"connection", "content-length", "transfer-encoding", "host", "expect", "keep-alive"}
_ERROR = b"<?xml version='1.0'?><Error><Code>%b</Code><Message>made up</Message></Error>"


def _serve(ask: Store) -> Iterator[Proxy]:
    proxy = Proxy(ask)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield proxy
    proxy.shutdown()
    proxy.server_close()
    thread.join()


def _ask_moto(app: Any) -> Store:
    """Returns moto's S3 in this process: over HTTP, it takes five times as long."""

    def ask(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        name, _, query = path.partition("?")
        environment = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote(name).encode().decode("latin-1"),
            "QUERY_STRING": query,
            "RAW_URI": path,
            "HTTP_HOST": "127.0.0.1",
            "SERVER_NAME": "127.0.0.1",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for key, value in headers.items():
            key = key.upper().replace("-", "_")
            environment[key if key == "CONTENT_TYPE" else f"HTTP_{key}"] = value
        begun: list[tuple[str, dict[str, str]]] = []
        chunks = app(environment, lambda status, found, _=None: begun.append((status, dict(found))))
        data = b"".join(chunks)
        [(status, found)] = begun
        return int(status.split()[0]), found, data

    return ask


@pytest.fixture(scope="session")
def s3_server() -> Iterator[Proxy]:
    pytest.importorskip("boto3")
    yield from _serve(_ask_moto(pytest.importorskip("moto.server").create_backend_app("s3")))


@pytest.fixture
def s3(s3_server: Proxy, no_cloud: None, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """An empty S3 bucket at `s3://photos`, found by AWS's own environment variables."""
    from moto.s3.models import s3_backends

    s3_server.reset()
    for name, value in {
        "AWS_ENDPOINT_URL": s3_server.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3_backends.reset()
    assert s3_server.ask("PUT", f"/{BUCKET}", {}, b"")[0] == 200
    return s3_server


def _ask_http(address: tuple[str, int]) -> Store:
    def ask(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        connection = http.client.HTTPConnection(*address)
        connection.request(method, path, body, {**headers, "Connection": "close"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), data

    return ask


@pytest.fixture(scope="session")
def gs_server() -> Iterator[Proxy]:
    pytest.importorskip("google.cloud.storage")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    server = emulator.create_server("127.0.0.1", 0, in_memory=True)
    server.start()
    yield from _serve(_ask_http(("127.0.0.1", server._api._httpd.server_port)))
    server.stop()


@pytest.fixture
def gs(gs_server: Proxy, no_cloud: None, monkeypatch: pytest.MonkeyPatch) -> Proxy:
    """An empty bucket at `gs://photos`."""
    gs_server.reset()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gs_server.url)
    gs_server.ask("GET", "/wipe", {}, b"")
    body = b'{"name": "%s"}' % BUCKET.encode()
    gs_server.ask("POST", "/storage/v1/b?project=p", {"Content-Type": "application/json"}, body)
    return gs_server


@pytest.fixture(params=["s3", "gs"])
def store(request: pytest.FixtureRequest) -> tuple[Proxy, str]:
    """Each store in turn: its proxy, and the URL of its bucket."""
    return request.getfixturevalue(request.param), f"{request.param}://{BUCKET}"


@pytest.fixture
def go_away(
    s3: Proxy, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Callable[[], bool]]:
    """Takes S3 away for 20 s of patience, which take no time, at the first request with a text.

    Returns what tells whether it was away, and is back.
    """
    clock, away = Clock(), []
    monkeypatch.setattr(retries, "time", clock)
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.5)
    monkeypatch.setattr(retries, "_shared", retries.Limits())
    monkeypatch.setattr(retries, "set_patience", _SET_PATIENCE)

    def begin(text: str) -> Callable[[], bool]:
        def find_fault(line: str) -> int | None:
            if text in line and not away:
                away.append(clock.now)
            return 503 if away and clock.now < away[0] + 20 else None

        monkeypatch.setattr(s3, "find_fault", find_fault)
        return lambda: bool(away) and clock.now >= away[0] + 20

    return begin


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Few waits of milliseconds, and a temporary folder that a test can look into."""
    monkeypatch.setattr(retries, "FIRST_PAUSE_SECONDS", 0.002)
    monkeypatch.setattr(retries, "_shared", retries.Limits(10.0, 4))
    # A conversion would hold out; tests/storage/test_retries.py has its patience.
    monkeypatch.setattr(retries, "set_patience", lambda seconds: None)
    monkeypatch.setattr(storage, "set_patience", lambda seconds: None)
    monkeypatch.setattr(retries, "ATTEMPT_SECONDS", 5.0)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", os.fspath(tmp_path / "temporary"))
