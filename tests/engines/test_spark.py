"""A cluster of Spark writes the bytes of a run on one machine, whatever becomes of its parts."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from .conftest import begin, check_equal, convert, use_spark
from .pictures import write_jpegs
from .processes import wait_until
from .spark import Spark
from .watching import list_processes

pytestmark = pytest.mark.spark

# Each image is decoded and encoded again, so that the job takes longer than a signal.
_SLOW = ("--resize-short-side", "160")


@pytest.fixture
def on_spark(spark: Spark, make_worker) -> list[str]:
    """Options that convert on the cluster, with a worker process for each executor."""
    return use_spark(spark, make_worker())


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A list of 10,000 images, and the dataset that a slow run on this machine makes of it."""
    folder = tmp_path_factory.mktemp("slow")
    source, local = write_jpegs(folder / "images", 10_000), folder / "local"
    done = convert(source, local, *_SLOW)
    assert done.returncode == 0, done.stderr
    return source, local


def _finish(client: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    _, said = client.communicate(timeout=300)
    return subprocess.CompletedProcess(client.args, client.returncode, "", said)


def _list_workers(spark: Spark, *names: str) -> list[int]:
    """Lists the workers of Beam that executors have started, on all workers of Spark or these."""
    processes = spark.list_processes()
    roots = [processes[name] for name in names or processes]
    found = [each for root in roots for each in list_processes(root)]
    return [pid for pid in found if b"beam.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _runs(pid: int) -> bool:
    with suppress(OSError):
        # One that nobody has asked how it ended is still listed.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_the_same_bytes(jpegs, on_spark, spark: Spark, tmp_path: Path):
    source, local = jpegs
    check_equal(tmp_path / "out", local, convert(source, tmp_path / "out", *on_spark))
    assert spark.wait_for_end() == "FINISHED"


def test_a_job_survives_a_machine_that_goes_away(slow, on_spark, spark: Spark, tmp_path: Path):
    """Worker, executor and Beam's worker end at once; the other worker does the rest."""
    source, local = slow
    client = begin(source, tmp_path / "out", [*on_spark, *_SLOW])
    assert _list_workers(spark, "worker 1")  # otherwise nothing is lost
    spark.kill("worker 1")
    check_equal(tmp_path / "out", local, _finish(client))
    assert spark.wait_for_end() == "FINISHED"


def test_a_signal_ends_the_job(slow, on_spark, spark: Spark, tmp_path: Path):
    (source, local), number = slow, signal.SIGTERM
    output, on_spark = tmp_path / "out", [*on_spark, *_SLOW]
    client = begin(source, output, on_spark)
    _, *job_server = list_processes(client.pid)
    client.send_signal(number)
    done = _finish(client)
    assert done.returncode == 128 + number
    assert done.stderr.splitlines()[-1] == f"Ended by {number.name}; run it again."
    # Spark says of each job whose driver has left that it is finished: look for its parts.
    assert spark.wait_for_end() == "FINISHED"
    wait_until(lambda: not _list_workers(spark), "the end of Beam's workers")
    assert not any(map(_runs, job_server))
    assert not (output / "dataset.json").exists()
    # The same command goes on where it ended.
    before = {path: path.stat().st_mtime_ns for path in output.glob("Split-*/*")}
    check_equal(output, local, convert(source, output, *on_spark))
    assert any(path.stat().st_mtime_ns == time for path, time in before.items())


def test_a_job_goes_on_without_a_client_that_is_killed(
    slow, on_spark, spark: Spark, tmp_path: Path
):
    """Its job server does; the master can end the job."""
    client = begin(slow[0], tmp_path / "out", [*on_spark, *_SLOW])
    _, *job_server = list_processes(client.pid)
    client.kill()
    client.communicate()
    try:
        assert any(map(_runs, job_server))
        assert spark.list_jobs()[-1]["state"] == "RUNNING"
        spark.end_job(spark.list_jobs()[-1]["id"])
        assert spark.wait_for_end() == "KILLED"
        wait_until(lambda: not _list_workers(spark), "the end of Beam's workers")
        assert not (tmp_path / "out" / "dataset.json").exists()
    finally:
        for pid in filter(_runs, job_server):
            os.kill(pid, signal.SIGKILL)
