"""Serves a gallery to browsers of this machine: the page, and pictures of records on demand.

Whoever knows the address may look; it has a random token. Nothing is written, and no part of an
address is a path: a picture is asked for by the number of its row.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from darkroom.errors import DarkroomError
from darkroom.images.decoders import ImagePreparer
from darkroom.images.records import read_record_images
from darkroom.images.thumbnails import encode_thumbnail
from darkroom.options.image import ImageOptions

HOST = "127.0.0.1"
PICTURE_PIXELS = 512
_PORTS = range(20_000, 30_000)
_TARGET = re.compile(r"/([\w-]+)/([0-9]{1,9})?", re.ASCII)
_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # The token, and so the address of a picture, is another one in the next run.
    "Cache-Control": "private, max-age=3600",
}


class GalleryServer(ThreadingHTTPServer):
    """Answers at `url` with `page`, once that is set, until it is closed.

    Attributes:
        url: The address of the page.
        page: The page, in UTF-8.
        hosts: The names by which browsers may call it. Another one is that of a web site whose name
            was made to mean this machine.
    """

    daemon_threads = True

    def __init__(self, seed: str) -> None:
        """Opens a port, by choice the one that belongs to a seed, such as a fingerprint.

        A browser keeps decisions by the address, so a dataset has the same port each time.
        """
        port = _PORTS[int.from_bytes(seed.encode()[:8], "big") % len(_PORTS)]
        super().__init__((HOST, port), _Handler, bind_and_activate=False)
        try:
            self.server_bind()
        except OSError:  # taken
            self.server_address = (HOST, 0)
            self.server_bind()
        self.server_activate()
        self.token, self.page = secrets.token_urlsafe(16), b""
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}
        self.url = f"http://{HOST}:{self.server_port}/{self.token}/"
        self._found: dict[int, Mapping[str, Any]] = {}
        self._preparer, self._lock = ImagePreparer(ImageOptions()), threading.Lock()

    def add_pictures(self, found: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
        """Adds records, by their places in the index, and returns the addresses of their pictures.

        Args:
            found: The records, as `find_records` finds them.
        """
        self._found |= found
        return {place: str(place) for place in found}

    def draw(self, place: int) -> bytes | None:
        """Returns a picture as a JPEG of at most 512 pixels a side; None if there is none."""
        with suppress(DarkroomError, LookupError, OSError, ValueError):
            [(_, data)] = read_record_images([self._found[place]])
            with self._lock:
                return encode_thumbnail(data, self._preparer, PICTURE_PIXELS)
        return None

    def server_close(self) -> None:
        """Closes the port, and what decodes images."""
        super().server_close()
        self._preparer.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing: a browser may go away at any time."""


class _Handler(BaseHTTPRequestHandler):
    server: GalleryServer
    # Browsers open connections that they may never use.
    timeout = 30
    server_version, sys_version = "darkroom", ""

    def do_GET(self) -> None:
        if self.headers.get_all("Host", []) not in [[each] for each in self.server.hosts]:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        found, body = _TARGET.fullmatch(self.path), None
        if found and secrets.compare_digest(found[1], self.server.token):
            body = self.server.draw(int(found[2])) if found[2] else self.server.page
        if not found or body is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        kind = "image/jpeg" if found[2] else "text/html; charset=utf-8"
        self.send_response(HTTPStatus.OK)
        for name, value in {**_HEADERS, "Content-Type": kind, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing of what is looked at."""
