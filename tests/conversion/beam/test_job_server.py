"""A job server that does not fit Flink or Beam is named before any work."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from apache_beam.version import __version__ as beam_version

from darkroom.conversion.beam.job_server import check_job_server
from darkroom.conversion.beam.runners import build_options
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


def _check(runner: str, **options: str) -> None:
    check_job_server(build_options(runner, options))


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_the_version_of_flink_must_be_that_of_the_job_server(master, scheme, monkeypatch):
    master = f"{scheme}{master}"
    _check("FlinkRunner", flink_master=master, flink_version="1.19")
    jar = FLINK_JAR.format("1.19", beam_version)
    _check("FlinkRunner", flink_master=master, flink_job_server_jar=f"/jars/{jar}")
    monkeypatch.setattr(_Flink, "answer", OTHER)
    wrong = ({"flink_version": "1.19"}, {"flink_job_server_jar": FLINK_JAR.format("1.19", "2.1")})
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


@pytest.mark.parametrize("answer", ["", "[]", "{}", '{"flink-version": "1.19.3"'])
def test_a_server_that_is_not_flink_is_named(master, monkeypatch, answer):
    monkeypatch.setattr(_Flink, "answer", answer)
    with pytest.raises(StorageError, match=f"No Flink answers at http://{master}: "):
        _check("FlinkRunner", flink_master=master)


def test_a_master_that_does_not_answer_is_named():
    with pytest.raises(StorageError, match=r"No Flink answers at http://127\.0\.0\.1:1: .*refused"):
        _check("FlinkRunner", flink_master="127.0.0.1:1")


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FlinkRunner", {}),
        ("FlinkRunner", {"flink_master": "[local]"}),
        ("FlinkRunner", {"flink_master": "x:1", "job_endpoint": "y:2"}),
        # Nobody knows what a jar of another name is for.
        ("FlinkRunner", {"flink_master": "x:1", "flink_job_server_jar": "mine.jar"}),
        ("SparkRunner", {"spark_master_url": "spark://x:1"}),
        ("PortableRunner", {"job_endpoint": "y:2"}),
        ("FnApiRunner", {"flink_master": "x:1"}),
    ],
)
def test_nothing_is_asked_where_beam_starts_no_job_server_for_a_cluster(runner, options, warned):
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
