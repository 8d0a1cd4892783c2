"""A server on loopback that answers each request with bytes, whether or not they are HTTP."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

OK = b"HTTP/1.1 200 OK\r\n"
# What no service should say. None of them is a success of HTTP.
HOSTILE = {
    "nothing": b"",
    "zeros": bytes(1000),
    "an odd status": b"HTTP/1.1 abc\r\n\r\n",
    "a long header": OK + b"X: " + b"x" * 100_000,
    "many headers": OK + b"X: x\r\n" * 200 + b"\r\n",
    "a cut body": OK + b"Content-Length: 10\r\n\r\n{}",
    "no chunks": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "away": b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
}


@dataclass
class RawServer:
    """What it says, and what it was asked.

    Attributes:
        url: Its address.
        answer: The bytes of each answer, or what is called with the connection.
        requests: The head of each request.
    """

    url: str
    answer: bytes | Callable[[Any], None] = b""
    requests: list[str] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def drip(self, connection: Any) -> None:
        """Sends a header byte by byte, until the test ends or the client has gone."""
        connection.sendall(OK + b"X: ")
        while not self.stopped.wait(0.02):
            connection.sendall(b"x")

    def echo(self, connection: Any) -> None:
        """Sends the request back."""
        connection.sendall(self.requests[-1].encode())


def make_answer(body: bytes, status: str = "200 OK") -> bytes:
    """Returns an answer of HTTP."""
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


@contextmanager
def serve_raw() -> Iterator[RawServer]:
    """Runs the server for as long as the block does."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = []
            while (line := self.rfile.readline().decode("latin-1")).strip():
                head.append(line)
            length = [each.split(":")[1] for each in head if each.startswith("Content-Length")]
            self.rfile.read(int(length[0]) if length else 0)
            state.requests.append("".join(head))
            with suppress(OSError):
                if callable(state.answer):
                    state.answer(self.connection)
                else:
                    self.connection.sendall(state.answer)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state = RawServer(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield state
        finally:
            state.stopped.set()
            server.shutdown()
            thread.join()
