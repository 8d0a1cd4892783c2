"""The gallery as it is served: who may look, and at what."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

import darkroom
from darkroom.dataset.index import read_index
from darkroom.validation.browse import open_gallery
from darkroom.validation.gallery.serve import PICTURE_PIXELS, GalleryServer

from ...html_page import Page
from ...pictures import encode


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of six images, each of one gray, of which the last record is damaged later."""
    folder = tmp_path_factory.mktemp("served")
    for number in range(6):
        pixels = np.full((40 + number, 900, 3), 40 * number, np.uint8)
        (folder / f"{number}.png").write_bytes(encode(pixels, "PNG"))
    lines = [f"train,{number}.png,a" for number in range(6)]
    (folder / "images.csv").write_text("\n".join(["split,image,label", *lines]))
    darkroom.convert(folder / "images.csv", folder / "records")
    return folder / "records"


@pytest.fixture(scope="module")
def server(records: Path) -> Iterator[GalleryServer]:
    with open_gallery(records) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(
    server: GalleryServer, target: str, method: str = "GET", host: str | None = None
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(*server.server_address, timeout=60)
    path = urlsplit(server.url).path + target if target[:1] != "/" else target
    connection.request(method, path, headers={"Host": host or urlsplit(server.url).netloc})
    answer = connection.getresponse()
    return answer, answer.read()


def test_pictures_are_those_of_the_records(server: GalleryServer, records: Path):
    answer, body = ask(server, "")
    page = Page(body.decode())
    assert (answer.status, server.server_address[0]) == (200, "127.0.0.1")
    assert page.policy.startswith("default-src 'none'; img-src data: 'self'; script-src 'sha256-")
    index = read_index(str(records / "index")).to_pylist()
    assert len(page.blocks["tiles"]) == 6
    for tile in page.blocks["tiles"]:
        answer, body = ask(server, tile["picture"])
        assert (answer.status, answer.headers["Content-Type"]) == (200, "image/jpeg")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        with Image.open(io.BytesIO(body)) as image:
            gray = 40 * int(Path(index[tile["place"]]["uri"]).stem)
            assert abs(np.asarray(image).mean() - gray) < 2
            assert image.width == PICTURE_PIXELS


def test_each_address_has_another_token_and_a_dataset_its_port(
    server: GalleryServer, records: Path
):
    # Its own port is taken here, so another one is.
    with open_gallery(records) as other:
        assert len(other.token) >= 20
        assert other.token != server.token
        assert other.server_port != server.server_port
    with GalleryServer("abc") as one:
        port = one.server_port
    with GalleryServer("abc") as again:
        assert again.server_port == port


@pytest.mark.parametrize(
    "target",
    ["/", "/wrong/", "/wrong/0", "x", "-1", "6", "0/", "0.jpg", "0?a", "../0", "9" * 40, "\u0661"],
)
def test_nothing_else_is_found(server: GalleryServer, target: str):
    if target == "\u0661":
        target = "%D9%A1"
    assert ask(server, target)[0].status == 404


@pytest.mark.parametrize("path", ["/%s/../../../etc/passwd", "/%s", "/%s/%%30"])
def test_no_part_of_an_address_is_a_path(server: GalleryServer, path: str):
    assert ask(server, path % server.token)[0].status == 404


def test_only_this_machine_by_its_name_may_look_and_nobody_may_write(server: GalleryServer):
    port = server.server_port
    assert ask(server, "", host=f"localhost:{port}")[0].status == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}"):
        answer, body = ask(server, "", host=host)
        assert answer.status == 421
        assert b"tiles" not in body
    for method in ("POST", "PUT", "DELETE"):
        assert ask(server, "", method)[0].status == 501


def test_a_damaged_record_has_no_picture(records: Path):
    with open_gallery(records) as server:
        index = read_index(str(records / "index")).to_pylist()
        [path] = [
            path
            for path in (records / "Split-train").iterdir()
            if int(path.name.split("-")[1]) == index[2]["shard"]
        ]
        good = path.read_bytes()
        damaged = bytearray(good)
        damaged[index[2]["offset"] + 20] ^= 1
        path.write_bytes(damaged)
        try:
            assert [server.draw(place) is None for place in range(6)] == [
                place == 2 for place in range(6)
            ]
        finally:
            path.write_bytes(good)


def test_the_command_serves_until_it_is_interrupted(records: Path):
    command = [sys.executable, "-m", "darkroom.cli", "gallery", str(records), "--serve", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    url = urlsplit(json.loads(process.stdout.readline())["url"])
    connection = HTTPConnection(url.hostname or "", url.port, timeout=60)
    connection.request("GET", url.path)
    assert connection.getresponse().status == 200
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said.split(b"\n")[-2]) == (130, b"Ended by SIGINT.")
    assert not (Path.cwd() / "gallery.html").exists()
