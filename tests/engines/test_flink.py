"""A conversion on a real Flink (make test-flink) writes the bytes of a run on this machine."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.trees import read_files

from .conftest import finish, start_client
from .flink import Flink
from .parts import find_missing, make_flink
from .pool import start_pool
from .processes import wait_until

pytestmark = pytest.mark.flink

# A worker that writes a shard, and then waits for ever.
ONE_SHARD = """
import itertools, threading
from darkroom.conversion.shards import writing
write, begun = writing.write_shard, itertools.count()
def wait(task, *rest):
    if next(begun):
        threading.Event().wait()
    return write(task, *rest)
writing.write_shard = wait
"""


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    if missing := find_missing():
        pytest.skip(missing)
    flink = Flink(make_flink(), tmp_path_factory.mktemp("flink") / "cluster")
    try:
        flink.begin()
        yield flink
    finally:
        flink.stop()


def _make_options(flink: Flink) -> dict[str, object]:
    jar, line = flink.parts.jar, flink.parts.line
    # The jar's name does not say for which Flink it is.
    job_server = {"flink_job_server_jar": jar, "flink_version": line}
    return {"flink_master": flink.address, **job_server, "parallelism": 2}


def test_the_same_bytes(flink: Flink, source: Path, local: dict[str, bytes], tmp_path: Path):
    with (
        start_pool(tmp_path / "pool") as workers,
        start_client(
            source, tmp_path / "out", "FlinkRunner", {**_make_options(flink), **workers}
        ) as client,
    ):
        code, said = finish(client)
    assert code == 0, said
    assert read_files(tmp_path / "out") == local
    (job,) = flink.ask("jobs/overview")["jobs"]
    assert job["state"] == "FINISHED"
    assert f"Starting the job {job['name']} with FlinkRunner." in said
    assert "Starting worker with command" in (tmp_path / "pool/pool.log").read_text()


def test_ctrl_c_leaves_the_job_and_names_it(flink: Flink, source: Path, tmp_path: Path):
    output = tmp_path / "out"
    with (
        start_pool(tmp_path / "pool", ONE_SHARD) as workers,
        start_client(source, output, "FlinkRunner", {**_make_options(flink), **workers}) as client,
    ):
        wait_until(lambda: [*output.glob("Split-*/*")] or client.poll() is not None, "a shard")
        client.send_signal(signal.SIGINT)
        code, said = finish(client)
        assert code == 128 + signal.SIGINT, said
        [name] = re.findall(r"The job (darkroom-\w+) of FlinkRunner may keep running", said)
        # As the guide says.
        [job] = re.findall(rf"(\w{{32}}) : {name} \(RUNNING\)", flink.run_client("list"))
        flink.run_client("cancel", job)
    assert not (output / "dataset.json").exists()
    assert flink.ask(f"jobs/{job}")["state"] in ("CANCELLING", "CANCELED")
