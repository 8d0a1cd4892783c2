"""Clusters that all tests share, of Flink and of Spark, and their clients."""

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
from .parts import Parts, find_missing, make_flink, make_spark
from .pictures import write_jpegs
from .processes import wait_until
from .spark import Spark

DARKROOM = (sys.executable, "-m", "darkroom.cli")


@pytest.fixture(scope="session")
def parts() -> Parts:
    """Flink and the job server, built by the first run."""
    if missing := find_missing():
        pytest.skip(missing)
    return make_flink()


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
def shared_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    if missing := find_missing():
        pytest.skip(missing)
    spark = Spark(make_spark(), tmp_path_factory.mktemp("spark"))
    try:
        spark.start_master()
        yield spark
    finally:
        spark.stop()


@pytest.fixture
def spark(shared_spark: Spark) -> Spark:
    """The cluster with both workers."""
    for number in (1, 2):
        if f"worker {number}" not in shared_spark.processes:
            shared_spark.start_worker(number)
    return shared_spark


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


def begin(source: Path, output: Path, options: list[str]) -> subprocess.Popen[str]:
    """Starts a conversion; returns its client once a first shard is there."""
    command = [*DARKROOM, "convert", str(source), "--output-dir", str(output)]
    client = subprocess.Popen(
        [*command, "--num-shards", "12", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: [*output.glob("Split-*/*")] or client.poll() is not None, "a first shard")
    assert client.poll() is None, client.communicate()
    return client


@pytest.fixture
def make_worker(tmp_path: Path) -> Callable[..., Path]:
    """Writes a program that an engine starts as a worker: ours, with an environment of its own."""

    def make(environment: Mapping[str, str] | None = None) -> Path:
        lines = [f"export {name}='{value}'" for name, value in (environment or {}).items()]
        start = f'exec {sys.executable} -m darkroom.engines.worker "$@"'
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


def use_spark(spark: Spark, worker: Path) -> list[str]:
    """Options for Spark with workers that it starts by a program."""
    named = ["--engine", "spark", "--engine-url", spark.url, "--engine-workers"]
    return [*named, f"command={worker}", *_format({"spark_job_server_jar": spark.parts.jar})]


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


def check_readable(done: subprocess.CompletedProcess[str], cause: str) -> None:
    """Checks that a conversion failed because of its surroundings, and said why at the end."""
    assert done.returncode == 3, done.stderr
    assert cause in "\n".join(done.stderr.splitlines()[-10:])


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
