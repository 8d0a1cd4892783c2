"""What goes wrong on a cluster: a machine goes away, a worker is not what it must be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .cluster import Cluster
from .conftest import DARKROOM, check_equal, check_readable, convert, use_processes
from .network import find_obstacle
from .processes import wait_until

pytestmark = pytest.mark.flink


def _count_shards(output: Path) -> int:
    return len([*output.glob("Split-*/*")])


def test_a_job_survives_a_machine_that_goes_away(jpegs, on_flink, cluster: Cluster, tmp_path):
    """Task manager and workers end at once, and another task manager starts."""
    source, local = jpegs
    output = tmp_path / "out"
    command = [*DARKROOM, "convert", str(source), "--output-dir", str(output)]
    command += ["--num-shards", "12", *on_flink]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as client:
        wait_until(lambda: _count_shards(output) or client.poll() is not None, "a first shard")
        cluster.kill("task manager 1")
        assert client.poll() is None
        cluster.start_task_manager(1)
        _, said = client.communicate(timeout=300)
    check_equal(output, local, subprocess.CompletedProcess(command, client.returncode, "", said))
    job = cluster.list_jobs()[-1]
    assert job["state"] == "FINISHED"
    # Otherwise the machine was not needed, and nothing was tested.
    assert cluster.count_restarts(job["jid"]) > 0


def test_a_worker_that_cannot_start(jpegs, cluster: Cluster, tmp_path: Path):
    worker = tmp_path / "worker.sh"
    worker.write_text("#!/bin/sh\nexit 1\n")
    worker.chmod(0o755)
    done = convert(jpegs[0], tmp_path / "out", *use_processes(cluster, worker))
    check_readable(done, "The engine could not start a worker process")


def test_a_program_that_is_not_there(jpegs, cluster: Cluster, tmp_path: Path):
    missing = tmp_path / "darkroom-worker"
    done = convert(jpegs[0], tmp_path / "out", *use_processes(cluster, missing))
    check_readable(done, f'Cannot run program "{missing}"')
    assert cluster.list_jobs()[-1]["state"] == "FAILED"


@pytest.mark.skipif(bool(find_obstacle()), reason=find_obstacle())
@pytest.mark.parametrize("hidden", ["output folder", "images"])
def test_workers_that_do_not_see_everything(jpegs, cluster: Cluster, tmp_path: Path, hidden: str):
    """Each worker has an empty folder in the place of one of the client's."""
    output, source = tmp_path / "out", jpegs[0]
    output.mkdir()
    place = {"output folder": output, "images": source.parent}[hidden]
    start = f'exec {sys.executable} -m darkroom.engines.worker "$@"'
    worker = tmp_path / "worker.sh"
    worker.write_text(
        f"#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs none {place} && {start}' sh \"$@\"\n"
    )
    worker.chmod(0o755)
    done = convert(source, output, *use_processes(cluster, worker))
    check_readable(done, f"The engine's workers do not see the {hidden}")
    assert not (output / "dataset.json").exists()


@pytest.mark.skipif(bool(find_obstacle()), reason=find_obstacle())
def test_a_worker_without_darkroom(jpegs, cluster: Cluster, tmp_path: Path):
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    text = "raise ModuleNotFoundError(\"No module named 'darkroom'\", name='darkroom')"
    (hidden / "darkroom.py").write_text(text)
    for number in (1, 2):
        command = ["-m", "apache_beam.runners.worker.worker_pool_main", "--service_port=50000"]
        cluster.start_pool(number, command, {"PYTHONPATH": str(hidden)})
    options = [*use_processes(cluster, tmp_path), "--beam-option", "environment_type=EXTERNAL"]
    options += ["--beam-option", "environment_config=localhost:50000"]
    done = convert(jpegs[0], tmp_path / "out", *options)
    check_readable(done, "A worker of the engine does not have darkroom")
