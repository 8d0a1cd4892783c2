"""What it costs to take the fingerprint of a source, as ManifestGen does in each run.

    python benchmarks/fingerprint.py [--rows 10000,100000] [--places local,s3] [--latency 0,20]

The source is a CSV `split,image_uri,label`. Its images are hard links on local disk in folders of
1,000, or objects of an S3 server on loopback. The server is a process of its own that answers HEAD
and listings after a latency in milliseconds. Rows are in the order of their images' names, or
shuffled.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

_IN_FOLDER = 1_000
_PAGE = 1_000
_ORDERS = ("sorted", "shuffled")


def list_names(rows: int) -> list[str]:
    """Returns the names of the images, sorted."""
    return [f"{number // _IN_FOLDER:05d}/{number % _IN_FOLDER:04d}.jpg" for number in range(rows)]


class Store(asyncio.Protocol):
    """A connection to a server that implements the part of S3 that a fingerprint needs."""

    names: list[str]
    latency_seconds: float
    counts: dict[str, int]

    def connection_made(self, transport: Any) -> None:
        """Remembers the connection."""
        self._transport, self._data = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answers the requests that have arrived completely."""
        self._data += data
        while b"\r\n\r\n" in self._data:
            head, _, self._data = self._data.partition(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
            answer = self._answer(method, urlsplit(target))
            loop = asyncio.get_running_loop()
            loop.call_later(self.latency_seconds, self._transport.write, answer)

    def _answer(self, method: str, url: Any) -> bytes:
        if "list-type=2" in url.query:
            self.counts["listings"] += 1
            text = self._list(parse_qs(url.query, keep_blank_values=True))
            return _format("Content-Type: application/xml\r\n", len(text)) + text
        if method == "GET":  # the only GET that is not a listing asks for the counts
            text = json.dumps(self.counts).encode()
            self.counts.update(dict.fromkeys(self.counts, 0))
            return _format("", len(text)) + text
        self.counts["look-ups"] += 1
        return _format(f'ETag: "{unquote(url.path)[-24:]}"\r\n', 1000)

    def _list(self, query: dict[str, list[str]]) -> bytes:
        prefix = query.get("prefix", [""])[0]
        after = query.get("continuation-token", query.get("start-after", [""]))[0]
        first = max(bisect_left(self.names, prefix), bisect_right(self.names, after))
        last = min(first + _PAGE, bisect_left(self.names, f"{prefix}\U0010ffff"))
        page = self.names[first:last]
        is_cut = last < len(self.names) and self.names[last].startswith(prefix)
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if is_cut else ""
        found = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"{f"/photos/{name}"[-24:]}"</ETag><Size>1000</Size>'
            "<StorageClass>STANDARD</StorageClass></Contents>"
            for name in page
        )
        return (
            '<?xml version="1.0" encoding="UTF-8"?>'
            '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>photos</Name><IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}{found}"
            "</ListBucketResult>"
        ).encode()


def _format(headers: str, length: int) -> bytes:
    date = "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
    return f"HTTP/1.1 200 OK\r\n{date}{headers}Content-Length: {length}\r\n\r\n".encode()


def serve(rows: int, latency_ms: float) -> None:
    """Serves until the process ends; prints the port."""
    Store.names, Store.latency_seconds = list_names(rows), latency_ms / 1000
    Store.counts = {"look-ups": 0, "listings": 0}

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Store, "127.0.0.1", 0, backlog=256)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def start_store(rows: int, latency_ms: float) -> Iterator[str]:
    """Starts the server in its own process; yields its URL."""
    command = [sys.executable, __file__, "--serve", str(rows), "--latency", str(latency_ms)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline()) if process.stdout else 0
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def write_source(folder: Path, base: str, rows: int, order: str) -> Path:
    """Writes the list, and the images where they are local."""
    names = list_names(rows)
    if not base:
        for number, name in enumerate(names):
            if number % _IN_FOLDER == 0:  # file systems limit the links of a file
                original = folder / name
                original.parent.mkdir()
                original.write_bytes(b"x" * 1000)
            else:
                os.link(original, folder / name)
    if order == "shuffled":
        random.Random(0).shuffle(names)
    with (folder / "m.csv").open("w") as file:
        file.write("split,image_uri,label\n")
        file.writelines(f"train,{base}{name},label{n % 101}\n" for n, name in enumerate(names))
    return folder / "m.csv"


def measure(source: Path, url: str) -> dict[str, float]:
    """Takes a fingerprint in this process; returns seconds and the counts of requests."""
    from urllib.request import urlopen

    from darkroom.manifest.fingerprint import read_source_state

    environment = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    os.environ.update(environment if url else {})
    started, used = time.perf_counter(), time.process_time()
    read_source_state(str(source))
    found = {
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - used,
    }
    if url:
        with urlopen(url) as answer:
            found |= json.load(answer)
    return found


def main() -> None:
    """Measures and prints a row for each case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="10000,100000", help="numbers of rows")
    parser.add_argument("--places", default="local,s3", help="where the images are")
    parser.add_argument("--orders", default=",".join(_ORDERS), help="orders of the rows")
    parser.add_argument("--latency", default="0,20", help="of the server, in milliseconds")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, float(arguments.latency))
        return
    print("place  latency  order        rows  seconds  of a processor  rows/s  requests")
    for place in arguments.places.split(","):
        for latency in arguments.latency.split(",") if place == "s3" else ["0"]:
            for order in arguments.orders.split(","):
                for rows in map(int, arguments.rows.split(",")):
                    _print_case(place, float(latency), order, rows)


def _print_case(place: str, latency_ms: float, order: str, rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        if place == "local":
            found = measure(write_source(Path(folder), "", rows, order), "")
        else:
            source = write_source(Path(folder), "s3://photos/", rows, order)
            with start_store(rows, latency_ms) as url:
                found = measure(source, url)
    seconds = found["seconds"]
    requests = ", ".join(
        f"{found[name]:,} {name}" for name in ("look-ups", "listings") if found.get(name)
    )
    print(
        f"{place:5}  {latency_ms:4.0f} ms  {order:8} {rows:>8,} {seconds:>8.1f} "
        f"{found['processor_seconds']:>14.1f} {rows / seconds:>8,.0f}  {requests}",
        flush=True,
    )


if __name__ == "__main__":
    main()
