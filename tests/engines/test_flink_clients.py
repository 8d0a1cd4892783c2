"""A client ends before its job: by a signal, which cancels the job, or by a kill."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .cluster import Cluster
from .conftest import DARKROOM, begin, check_equal, convert
from .pictures import write_jpegs
from .processes import wait_until
from .watching import list_processes

pytestmark = pytest.mark.flink

# Each image is decoded and encoded again, so that the job takes longer than a signal.
_SLOW = ("--resize-short-side", "160")
_OTHERS = ("--seed", "7")
_ENDED = ("FINISHED", "FAILED", "CANCELED")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jpegs(tmp_path_factory.mktemp("slow") / "images", 10_000)


@pytest.fixture
def orphans() -> Iterator[list[int]]:
    """Processes whose parent a test kills; they are ended after it."""
    found: list[int] = []
    yield found
    for pid in found:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_signal_cancels_the_job(source, on_flink, cluster: Cluster, tmp_path: Path):
    number = signal.SIGINT
    local = convert(source, tmp_path / "local", *_SLOW)
    assert local.returncode == 0, local.stderr
    output, on_flink = tmp_path / "out", [*on_flink, *_SLOW]
    client = begin(source, output, on_flink)
    client.send_signal(number)
    said = client.communicate(timeout=120)[1]
    assert client.returncode == 128 + number
    job = cluster.list_jobs()[-1]
    assert job["state"] == "CANCELED"
    assert f"Ended by {number.name}. The job {job['name']} on Flink was cancelled;" in said
    # The same command goes on where it ended.
    before = {path: path.stat().st_mtime_ns for path in output.glob("Split-*/*")}
    check_equal(output, tmp_path / "local", convert(source, output, *on_flink))
    assert any(path.stat().st_mtime_ns == time for path, time in before.items())


def test_a_job_whose_client_was_killed_loses_the_output(
    source, on_flink, cluster: Cluster, tmp_path: Path, orphans: list[int]
):
    """The next run has other options: the job of the first must not end in its dataset."""
    output = tmp_path / "out"
    local = convert(source, tmp_path / "local", *_OTHERS)
    assert local.returncode == 0, local.stderr
    client = begin(source, output, [*on_flink, *_SLOW])
    orphans += list_processes(client.pid)[1:]  # its job server
    with _hold_workers(cluster):
        client.kill()
        client.communicate()
        job = cluster.list_jobs()[-1]
        assert job["state"] == "RUNNING"
        listed = subprocess.run(
            [*DARKROOM, "attempts", str(output), "--remove"], capture_output=True, text=True
        )
        assert f"job {job['name']} on FlinkRunner is RUNNING" in listed.stdout
        assert "Removed: 0 attempts, because none is known to have ended." in listed.stdout

        done = convert(source, output, *_OTHERS)

        assert f"This run takes {output} from that job" in done.stderr
        check_equal(output, tmp_path / "local", done)
    state = wait_until(lambda: _find_end(cluster, job["jid"]), "the end of the first job", 300)
    assert state == "FAILED"
    check_equal(output, tmp_path / "local", done)


@contextmanager
def _hold_workers(cluster: Cluster) -> Iterator[None]:
    """Stops all workers for a while, so that no job ends in it, however slow this machine is."""
    managers = cluster.list_processes().values()
    workers = [pid for manager in managers for pid in list_processes(manager)[1:]]
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)


def _find_end(cluster: Cluster, job: str) -> str:
    state = str(cluster.ask(f"jobs/{job}")["state"])
    return state if state in _ENDED else ""
