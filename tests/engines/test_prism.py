"""Conversions on Prism (make test-engines): bytes, failures, and what an interrupted one leaves."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.pictures import write_label_folders
from tests.trees import read_files

from darkroom.conversion.convert import convert

from .prism import find_missing, kill_group, make_prism, start_pool
from .processes import wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(find_missing()), reason=find_missing())]

# Ends what hangs; nothing here takes as long.
LIMIT_SECONDS = 120
NO_DARKROOM = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "darkroom":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Finder())
"""
OTHER_CODEC = "import simplejpeg; simplejpeg.__version__ = '0.5'"
# A worker that writes two shards, and then waits for ever.
TWO_SHARDS = """
import itertools, threading
from darkroom.conversion.shards import writing
write, begun = writing.write_shard, itertools.count()
def wait(task, *rest):
    if next(begun) >= 2:
        threading.Event().wait()
    return write(task, *rest)
writing.write_shard = wait
"""

Start = Callable[..., subprocess.Popen]


@pytest.fixture(scope="module")
def prism() -> Path:
    return make_prism()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images") / "src"
    write_label_folders(folder, 100)
    return folder


@pytest.fixture(scope="module")
def local(source: Path) -> dict[str, bytes]:
    """What a run on this machine writes."""
    convert(source, source.parent / "local")
    return read_files(source.parent / "local")


@pytest.fixture
def start(prism: Path, source: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts clients, each in a session of its own; what is left of them ends with the test."""
    clients = []

    def start(options: dict[str, str], source: Path = source) -> subprocess.Popen:
        flags = [f"--beam-option={name}={value}" for name, value in options.items()]
        client = subprocess.Popen(
            [
                *(sys.executable, "-m", "darkroom.cli", "convert", str(source)),
                *("--output-dir", str(tmp_path / "out"), "--runner", "PrismRunner"),
                *(f"--beam-option=prism_location={prism}", *flags),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell that runs tests in the background may ignore it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        clients.append(client)
        return client

    yield start
    for client in clients:
        kill_group(client)


def _finish(client: subprocess.Popen) -> tuple[int, str]:
    """Returns the exit code of a client and what it said on the terminal."""
    _, said = client.communicate(timeout=LIMIT_SECONDS)
    return client.returncode, said


def _check_failure(client: subprocess.Popen, message: str, code: int = 3) -> str:
    """Checks how a client failed; returns the lines of the engine."""
    returned, said = _finish(client)
    assert returned == code, said
    assert message in "\n".join(said.splitlines()[-10:])
    [log] = {*re.findall(r"The log of the engine as this client saw it is in (\S+\.log)\.", said)}
    text = Path(log).read_text()
    os.unlink(log)
    return text


def test_workers_in_the_client_write_the_same_bytes(start, local, tmp_path):
    code, said = _finish(start({}))
    assert code == 0, said
    assert read_files(tmp_path / "out") == local
    assert len(local) > 10


def test_workers_elsewhere_write_the_same_bytes_and_their_shards_are_counted(
    start, local, tmp_path
):
    with start_pool(tmp_path / "pool") as options:
        code, said = _finish(start(options))
    assert code == 0, said
    assert read_files(tmp_path / "out") == local
    assert re.search(r"^Converting \d+/200 rows .*, \d+ of \d+ shards$", said, re.MULTILINE)
    assert "Starting worker with command" in (tmp_path / "pool/pool.log").read_text()


def test_a_pool_that_does_not_run_is_named(start):
    options = {"environment_type": "EXTERNAL", "environment_config": "localhost:1"}
    _check_failure(start(options), "No worker pool answers")


def test_a_worker_without_darkroom_is_named(start, tmp_path):
    with start_pool(tmp_path / "pool", NO_DARKROOM) as options:
        text = _check_failure(start(options), "A worker of the engine does not have darkroom")
    assert "No module named 'darkroom" in text


def test_a_worker_with_another_codec_stops_the_job(start, tmp_path):
    with start_pool(tmp_path / "pool", OTHER_CODEC) as options:
        _check_failure(start(options), "has simplejpeg 0.5, but the client has simplejpeg ")
    assert not (tmp_path / "out/dataset.json").exists()


def test_a_killed_conversion_resumes(start, local, tmp_path):
    out = tmp_path / "out"
    with start_pool(tmp_path / "pool", TWO_SHARDS) as options:
        client = start(options)
        kept = _wait_for_shards(out, 2)
        client.kill()
        client.wait(LIMIT_SECONDS)
        kill_group(client)  # the job server that it left behind
    with start_pool(tmp_path / "other_pool") as options:
        code, said = _finish(start(options))
    assert code == 0, said
    assert read_files(out) == local
    times = {path: path.stat().st_mtime_ns for path in kept}
    assert times == kept


def _wait_for_shards(out: Path, count: int) -> dict[Path, int]:
    """Returns the times of the shards of which a report is there."""

    def find() -> list[Path]:
        return list(out.glob(".attempt/**/shard-*[0-9].json"))

    wait_until(lambda: len(find()) >= count, "shards")
    return {path: path.stat().st_mtime_ns for path in out.glob("Split-*/data_tfrecord-*")}
