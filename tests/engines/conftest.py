"""A Flink cluster that all tests share: a job manager and two task managers, and its clients."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from .cluster import Cluster
from .network import make_machines
from .parts import Parts, find_missing, make_parts
from .pictures import write_jpegs

DARKROOM = (sys.executable, "-m", "darkroom.cli")


@pytest.fixture(scope="session")
def parts() -> Parts:
    """Flink and the job server, built by the first run."""
    if missing := find_missing():
        pytest.skip(missing)
    return make_parts()


@pytest.fixture(scope="session")
def shared_cluster(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with make_machines(3) as machines:
        cluster = Cluster(parts, tmp_path_factory.mktemp("cluster"), machines)
        try:
            cluster.start_job_manager()
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with both task managers, and without what another test started or left."""
    for number in (1, 2):
        if f"task manager {number}" not in shared_cluster.processes:
            shared_cluster.start_task_manager(number)
    yield shared_cluster
    shared_cluster.cancel_jobs()
    for name in [name for name in shared_cluster.processes if "manager" not in name]:
        shared_cluster.kill(name)


@pytest.fixture(scope="session")
def jpegs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A list of 1,200 images of 28 kB, and the dataset that a run on this machine makes of it."""
    folder = tmp_path_factory.mktemp("jpegs")
    source, local = write_jpegs(folder / "images", 1_200), folder / "local"
    done = convert(source, local)
    assert done.returncode == 0, done.stderr
    return source, local


def convert(
    source: Path | str, output: Path | str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Runs `darkroom convert` to its end."""
    command = [*DARKROOM, "convert", str(source), "--output-dir", str(output)]
    command += ["--num-shards", "12", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@pytest.fixture
def make_worker(tmp_path: Path) -> Callable[..., Path]:
    """Writes a program that an engine starts as a worker: ours, with an environment of its own."""

    def make(environment: Mapping[str, str] | None = None) -> Path:
        lines = [f"export {name}='{value}'" for name, value in (environment or {}).items()]
        start = f'exec {sys.executable} -m darkroom.conversion.beam.worker "$@"'
        path = tmp_path / "worker.sh"
        path.write_text("\n".join(["#!/bin/sh", *lines, start, ""]))
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def on_flink(cluster: Cluster, make_worker: Callable[..., Path]) -> list[str]:
    """Options that convert on the cluster, with a worker process for each task manager."""
    return use_processes(cluster, make_worker())


def use_processes(cluster: Cluster, worker: Path, parallelism: int = 4) -> list[str]:
    """Options for the cluster with workers that Flink starts by a program."""
    options = {
        "flink_master": cluster.address,
        "flink_version": cluster.parts.line,
        "flink_job_server_jar": cluster.parts.jar,
        "environment_type": "PROCESS",
        "environment_config": f'{{"command": "{worker}"}}',
        "parallelism": parallelism,
    }
    return ["--runner", "FlinkRunner", *_format(options)]


def use_pools(endpoint: str) -> list[str]:
    """Options for a job server that runs, with pools of workers as the guide of Kubernetes says."""
    options = {
        "job_endpoint": endpoint,
        "environment_type": "EXTERNAL",
        "environment_config": "localhost:50000",
        "parallelism": 4,
    }
    return ["--runner", "PortableRunner", *_format(options)]


def _format(options: Mapping[str, object]) -> list[str]:
    return [part for pair in options.items() for part in ("--beam-option", "{}={}".format(*pair))]


def hash_files(folder: Path) -> dict[str, str]:
    """The hash of every file of a dataset; all of them are the same, whatever wrote them."""
    files = [Path(inside, name) for inside, _, names in os.walk(folder) for name in names]
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def check_equal(output: Path, local: Path, done: subprocess.CompletedProcess[str]) -> None:
    """Checks that a conversion ended well, with the bytes of the local one."""
    assert done.returncode == 0, done.stderr
    expected = hash_files(local)
    assert {"dataset.json", "SHA256SUMS"} <= expected.keys()
    assert hash_files(output) == expected
