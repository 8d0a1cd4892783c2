"""The pool of Beam workers of each task manager, started by the command in the manifest."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image

import darkroom
from darkroom.options.conversion import ConversionOptions


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.1)
    raise AssertionError(f"The pool does not listen; it returned {process.poll()}.")


@pytest.fixture
def pool(pods, free_port: int, tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Port and log of a pool as the manifest starts it, with an environment of its own."""
    (container,) = [
        each for pod in pods for each in pod.spec["containers"] if each["name"] == "beam-workers"
    ]
    (port,) = [each["containerPort"] for each in container["ports"]]
    command = [*container["command"], *container["args"]]
    assert command[0] == "python"
    command = [each.replace(str(port), str(free_port)) for each in command[1:]]
    log = tmp_path / "pool.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [sys.executable, *command],
            # The pool starts its workers by the name `python`.
            env={"PATH": str(Path(sys.executable).parent), "HOME": str(tmp_path)},
            cwd=tmp_path,
            stderr=stream,
            start_new_session=True,
        )
    try:
        _wait_for(free_port, process)
        yield free_port, log
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_records(folder: Path) -> dict[str, bytes]:
    paths = [*folder.glob("Split-*/*"), folder / "dataset.json"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.long
def test_a_pool_of_workers_converts_to_the_same_bytes(pool, tmp_path: Path):
    port, log = pool
    rows = ["image_uri,label"]
    for number in range(12):
        Image.new("RGB", (8, 8), (20 * number, 0, 0)).save(tmp_path / f"{number}.png")
        rows.append(f"{number}.png,{number % 2}")
    source = tmp_path / "images.csv"
    source.write_text("\n".join(rows))
    darkroom.convert(source, tmp_path / "local", num_shards=2)
    darkroom.convert(
        source,
        tmp_path / "pool",
        num_shards=2,
        runner="PortableRunner",
        options=ConversionOptions(
            beam_options={
                "job_endpoint": "embed",
                "environment_type": "EXTERNAL",
                "environment_config": f"localhost:{port}",
            }
        ),
    )
    records = _read_records(tmp_path / "pool")
    assert len(records) >= 4
    assert records == _read_records(tmp_path / "local")
    assert "Starting worker with command" in log.read_text()
