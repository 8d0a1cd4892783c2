"""An engine or a pool that is not there, or that does not fit, is named before any work."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from apache_beam.version import __version__ as beam_version

from darkroom.conversion.beam import job_server
from darkroom.conversion.beam.job_server import check_job_server
from darkroom.conversion.beam.options import build_options
from darkroom.conversion.convert import convert
from darkroom.errors import StorageError, UsageError
from darkroom.options.conversion import ConversionOptions

# A line of Flink that newer versions of Beam do not know, other than 1.19, which all know.
OTHER = json.dumps({"flink-version": "1.18.1"})
FLINK_JAR = "beam-runners-flink-{}-job-server-{}.jar"


class _Flink(BaseHTTPRequestHandler):
    answer = json.dumps({"flink-version": "1.19.3"})

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer.encode() if self.path == "/config" else b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def master(monkeypatch) -> Iterator[str]:
    """The address of a server that says that it is Flink 1.19.3."""
    server = HTTPServer(("127.0.0.1", 0), _Flink)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def warned(monkeypatch) -> list[str]:
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.warn", notes.append)
    return notes


def _check(runner: str, **options: object) -> None:
    check_job_server(build_options(runner, options))


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_the_version_of_flink_must_be_that_of_the_job_server(master, scheme, monkeypatch):
    master = f"{scheme}{master}"
    _check("FlinkRunner", flink_master=master, flink_version="1.19")
    jar = FLINK_JAR.format("1.19", beam_version)
    _check("FlinkRunner", flink_master=master, flink_job_server_jar=f"/jars/{jar}")
    monkeypatch.setattr(_Flink, "answer", OTHER)
    wrong = (
        {"flink_version": "1.19"},
        {"flink_job_server_jar": FLINK_JAR.format("1.19", "2.1")},
        # Its name says nothing.
        {"flink_job_server_jar": "/jars/job-server-0a1b2c.jar", "flink_version": "1.19"},
    )
    for each in wrong:
        with pytest.raises(UsageError) as error:
            _check("FlinkRunner", flink_master=master, **each)
        assert error.value.message.endswith("is 1.18.1, but the job server is for 1.19.")
        assert "flink_version" in error.value.hint


def test_a_conversion_is_stopped_before_its_source_is_read(master, monkeypatch, tmp_path):
    monkeypatch.setattr(_Flink, "answer", OTHER)
    options = ConversionOptions(beam_options={"flink_master": master, "flink_version": "1.19"})
    with pytest.raises(UsageError, match=r"the job server is for 1\.19"):
        convert(tmp_path / "missing", tmp_path / "out", runner="FlinkRunner", options=options)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "answer", ["", "[]", "{}", '{"flink-version": "1.19.3"', '{"flink-version": ' + "[" * 100_000]
)
def test_a_server_that_is_not_flink_is_named(master, monkeypatch, answer):
    monkeypatch.setattr(_Flink, "answer", answer)
    with pytest.raises(StorageError, match=f"No Flink answers at http://{master}: "):
        _check("FlinkRunner", flink_master=master)


@pytest.mark.parametrize("jar", [{}, {"flink_job_server_jar": "/jars/mine.jar"}])
def test_a_master_that_does_not_answer_is_named(jar):
    with pytest.raises(StorageError, match=r"No Flink answers at http://127\.0\.0\.1:1: .*refused"):
        _check("FlinkRunner", flink_master="127.0.0.1:1", **jar)


def test_a_master_that_takes_a_connection_and_says_nothing_is_named(open_port, monkeypatch):
    monkeypatch.setattr(job_server, "_SECONDS", 0.1)
    with pytest.raises(StorageError, match=f"No Flink answers at http://{open_port}: timed out"):
        _check("FlinkRunner", flink_master=open_port)


@pytest.fixture
def open_port() -> Iterator[str]:
    """The address of a server that takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(autouse=True)
def names(monkeypatch) -> None:
    """Answers for a server of names: none is known, and no network is asked."""
    find = socket.getaddrinfo

    def find_number(host, *rest, **options):
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return find(host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", find_number)


CLOSED = "127.0.0.1:1"
POOL = {"environment_type": "EXTERNAL"}


@pytest.mark.parametrize(
    ("runner", "option", "address"),
    [
        ("SparkRunner", "spark_master_url", f"spark://{CLOSED}"),
        ("SparkRunner", "spark_master_url", "spark://a-name.invalid:7077"),
        ("PortableRunner", "job_endpoint", CLOSED),
        ("PortableRunner", "job_endpoint", "a-name-without-port"),
        ("FlinkRunner", "job_endpoint", CLOSED),
    ],
)
def test_an_address_where_nothing_listens_is_named_with_its_option(runner, option, address):
    with pytest.raises(StorageError) as stop:
        _check(runner, **{option: address})
    place = address.removeprefix("spark://")
    assert stop.value.message.startswith(f"Nothing answers at {place} ({option}): ")


def test_one_of_several_masters_is_enough(open_port):
    _check("SparkRunner", spark_master_url=f"spark://{CLOSED},{open_port}")


@pytest.mark.parametrize("config", ["localhost:1", CLOSED, json.dumps({"url": CLOSED})])
@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("PrismRunner", {}),
        ("FlinkRunner", {}),
        ("SparkRunner", {"spark_master_url": "local[2]"}),
        ("PortableRunner", {"job_endpoint": "embed"}),
    ],
)
def test_a_pool_that_is_not_on_this_machine_is_named_where_its_engine_is(runner, options, config):
    with pytest.raises(StorageError, match=r"Nothing answers at \S+:1 \(environment_config\): "):
        _check(runner, **POOL, environment_config=config, **options)


@pytest.mark.parametrize(
    ("host", "is_named"),
    [
        # This machine's, not those of the task managers.
        ("localhost", False),
        ("127.0.0.1", False),
        # Perhaps the cluster knows it.
        ("a-name.invalid", False),
        ("127.0.0.2", True),
    ],
)
def test_of_a_pool_elsewhere_only_a_refusal_counts(open_port, host, is_named):
    options = {**POOL, "environment_config": f"{host}:1", "job_endpoint": open_port}
    with pytest.raises(StorageError) if is_named else nullcontext() as stop:
        _check("PortableRunner", **options)
    assert not stop or "Nothing answers at 127.0.0.2:1 (environment_config): " in str(stop.value)


def test_a_pool_that_is_there_is_taken(open_port):
    _check("PrismRunner", **POOL, environment_config=open_port)


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FlinkRunner", {}),
        ("FlinkRunner", {"flink_master": "[local]"}),
        ("FlinkRunner", {"flink_master": CLOSED, "job_endpoint": "embed"}),
        ("SparkRunner", {"spark_master_url": "local[4]"}),
        ("SparkRunner", {"spark_master_url": "yarn"}),
        ("PrismRunner", {"environment_type": "LOOPBACK", "environment_config": CLOSED}),
        ("FnApiRunner", {"flink_master": CLOSED, **POOL}),
        ("DataflowRunner", {"job_endpoint": CLOSED}),
    ],
)
def test_nothing_is_asked_that_a_job_does_not_need(runner, options, warned):
    _check(runner, **options)
    assert warned == []


@pytest.mark.parametrize(
    ("runner", "option", "jar"),
    [
        ("FlinkRunner", "flink_job_server_jar", FLINK_JAR.format("1.19", "2.1.0")),
        ("SparkRunner", "spark_job_server_jar", "beam-runners-spark-3-job-server-2.1.0.jar"),
    ],
)
def test_a_job_server_of_another_beam_is_named(runner, option, jar, warned):
    _check(runner, **{option: f"/jars/{jar}"})
    assert warned == [f"{jar} is for Beam 2.1.0, and Beam {beam_version} is installed."]
    _check(runner, **{option: f"/jars/{jar.replace('2.1.0', beam_version)}"})
    assert len(warned) == 1
