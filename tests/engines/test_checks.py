"""Engines that cannot be reached, or that lack something, before a job is submitted."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apache_beam
import grpc
import pytest

from darkroom.conversion.beam.runners import build_options, list_choices
from darkroom.engines import checks
from darkroom.engines.checks import check_engine
from darkroom.errors import StorageError, UsageError

FLINK = list_choices("flink_version")[-1]
JAR = f"beam-runners-flink-{{}}-job-server-{apache_beam.__version__}.jar"


@pytest.fixture
def closed() -> str:
    """An address where nothing answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def listening():
    """An address where something answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with Java."""
    path = tmp_path / "java/bin/java"
    path.parent.mkdir(parents=True)
    path.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return path


def _check(runner: str, **options: str) -> None:
    check_engine(runner, build_options(runner, options))


@pytest.mark.parametrize(
    ("runner", "option", "what"),
    [
        ("PortableRunner", "job_endpoint", "The job server of Beam"),
        ("FlinkRunner", "flink_master", "Flink"),
        ("SparkRunner", "spark_master_url", "Spark"),
    ],
)
def test_an_engine_that_does_not_answer_is_named(closed, java, runner, option, what):
    scheme = "http://" if option == "flink_master" else ""
    with pytest.raises(StorageError, match=f"{what} cannot be reached at {scheme}{closed}") as stop:
        _check(runner, **{option: f"{scheme}{closed}"})
    assert option in stop.value.hint
    assert stop.value.exit_code == 3


@pytest.mark.parametrize("address", ["flink", "flink:70000", ":8081"])
def test_an_address_is_a_host_and_a_port(java, address):
    with pytest.raises(UsageError, match=r"flink_master is .*, expected HOST:PORT"):
        _check("FlinkRunner", flink_master=address)


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FlinkRunner", {}),
        ("FlinkRunner", {"flink_master": "[local]"}),
        ("SparkRunner", {"spark_master_url": "local[4]"}),
        ("PrismRunner", {}),
        ("PortableRunner", {"job_endpoint": "embed"}),
    ],
)
def test_an_engine_inside_the_job_server_needs_no_address(java, runner, options):
    _check(runner, **options)


def test_an_engine_that_answers_is_accepted(listening, java):
    _check("FlinkRunner", flink_master=f"http://{listening}/")
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    _check("PortableRunner", job_endpoint=f"127.0.0.1:{port}")
    server.stop(None).wait()


def test_what_listens_must_be_a_job_server(listening, monkeypatch):
    monkeypatch.setattr(checks, "_JOB_SERVER_SECONDS", 0.1)
    with pytest.raises(StorageError, match=f"server at {listening} did not answer as a job"):
        _check("PrismRunner", job_endpoint=listening)


def test_a_portable_runner_needs_a_job_server():
    with pytest.raises(UsageError, match="needs the address of a job server") as stop:
        _check("PortableRunner")
    assert "job_endpoint" in stop.value.hint


def test_a_missing_jar_and_a_missing_java_are_named(tmp_path, java, monkeypatch):
    with pytest.raises(UsageError, match=r"flink_job_server_jar is '.*nope\.jar', which is not"):
        _check("FlinkRunner", flink_job_server_jar=str(tmp_path / "nope.jar"))
    java.unlink()
    with pytest.raises(StorageError, match="The job server of Flink needs Java"):
        _check("FlinkRunner")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StorageError, match="The job server of Spark needs Java"):
        _check("SparkRunner")
