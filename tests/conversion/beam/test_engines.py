"""Engines that cannot be reached, and jobs that fail on one: what a user reads."""

from __future__ import annotations

import logging
import os
import re
import socket
import zipfile
from pathlib import Path

import apache_beam
import pytest
from tests.pictures import write_label_folders

from darkroom import errors
from darkroom.conversion.beam import engines, transforms
from darkroom.conversion.beam.engine_log import report_failures
from darkroom.conversion.beam.engines import ENGINES, check_engine
from darkroom.conversion.beam.runners import build_options, list_choices
from darkroom.conversion.convert import convert
from darkroom.errors import DarkroomError, DataError, StorageError, UsageError
from darkroom.options.conversion import ConversionOptions

from .standin import StandIn, serve

EMBEDDED = {"job_endpoint": "embed", "environment_type": "LOOPBACK"}

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
        ("FlinkRunner", "job_endpoint", "The job server of Beam"),
        ("FlinkRunner", "flink_master", "Flink"),
        ("SparkRunner", "spark_master_url", "Spark"),
    ],
)
@pytest.mark.parametrize("scheme", ["", "http://"])
def test_an_engine_that_does_not_answer_is_named(closed, java, runner, option, what, scheme):
    with pytest.raises(StorageError, match=f"{what} cannot be reached at {scheme}{closed}") as stop:
        _check(runner, **{option: f"{scheme}{closed}"})
    assert option in stop.value.hint
    assert stop.value.exit_code == 3


@pytest.mark.parametrize("address", ["flink", "flink:http", "flink:70000", ":8081", "flink:"])
def test_an_address_is_a_host_and_a_port(java, address):
    with pytest.raises(UsageError, match=r"flink_master is .*, expected HOST:PORT"):
        _check("FlinkRunner", flink_master=address)


@pytest.mark.parametrize(
    ("runner", "options"),
    [
        ("FlinkRunner", {}),
        ("FlinkRunner", {"flink_master": "[local]"}),
        ("FlinkRunner", {"flink_master": "[auto]"}),
        ("SparkRunner", {}),
        ("SparkRunner", {"spark_master_url": "local[4]"}),
        ("PrismRunner", {}),
        ("PortableRunner", {"job_endpoint": "embed"}),
    ],
)
def test_an_engine_inside_the_job_server_needs_no_address(java, runner, options):
    _check(runner, **options)


def test_an_engine_that_answers_is_accepted(listening, java):
    _check("FlinkRunner", flink_master=f"http://{listening}/")
    with serve(StandIn()) as options:
        _check("PortableRunner", **options)


def test_what_listens_must_be_a_job_server(listening, monkeypatch):
    monkeypatch.setattr(engines, "_JOB_SERVER_SECONDS", 0.1)
    with pytest.raises(StorageError, match=f"listens at {listening} did not answer as a job serv"):
        _check("PrismRunner", job_endpoint=listening)


def test_a_portable_runner_needs_a_job_server():
    with pytest.raises(UsageError, match="needs the address of a job server") as stop:
        _check("PortableRunner")
    assert "job_endpoint" in stop.value.hint


def test_a_missing_jar_and_a_missing_java_are_named(tmp_path, java, monkeypatch):
    with pytest.raises(UsageError, match=r"flink_job_server_jar is '.*nope\.jar', which does not"):
        _check("FlinkRunner", flink_job_server_jar=str(tmp_path / "nope.jar"))
    java.unlink()
    with pytest.raises(StorageError, match="The job server of Flink needs Java"):
        _check("FlinkRunner")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StorageError, match="The job server of Spark needs Java"):
        _check("SparkRunner")


def _write_jar(path: Path, manifest: str) -> str:
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("META-INF/MANIFEST.MF", manifest)
    return str(path)


def test_a_jar_that_is_not_a_job_server_is_named_before_anything_starts(tmp_path, java):
    (tmp_path / "half.jar").write_bytes(b"PK\3\4half")
    half = str(tmp_path / "half.jar")
    for jar, says in ((half, "not a whole jar"), (str(tmp_path), "a folder")):
        with pytest.raises(UsageError, match=f"'{jar}', which is {says}") as stop:
            _check("FlinkRunner", flink_job_server_jar=jar, flink_version=FLINK)
        assert f"Give the path of {JAR.format(FLINK)}, or leave" in stop.value.hint
    empty = _write_jar(tmp_path / "empty.jar", "Manifest-Version: 1.0\r\n")
    other = _write_jar(tmp_path / "other.jar", "Manifest-Version: 1.0\r\nMain-Class: a.Shell\r\n")
    folded = "Main-Class: org.apache.beam.runners.spark.Spark\r\n JobServerDriver\r\n"
    spark = _write_jar(tmp_path / "good.jar", folded)
    of_spark = r"its program is org\.apache\.beam\.runners\.spark\.SparkJobServerDriver"
    for jar, says in (
        (empty, "it has no program"),
        (other, r"its program is a\.Shell"),
        (spark, of_spark),
    ):
        match = f"'{jar}', which is not a job server of Flink: {says}"
        with pytest.raises(UsageError, match=match) as stop:
            _check("FlinkRunner", flink_job_server_jar=jar)
        assert JAR.format(FLINK) in stop.value.hint
    _check("SparkRunner", spark_job_server_jar=spark)


def test_an_engine_that_does_not_answer_stops_before_the_source_is_read(closed, tmp_path):
    options = {"job_endpoint": closed}
    write_label_folders(tmp_path / "src", 1)
    with pytest.raises(StorageError, match=closed):
        convert(
            tmp_path / "src",
            tmp_path / "out",
            runner="portablerunner",
            options=ConversionOptions(beam_options=options),
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("runner", ENGINES)
def test_a_job_server_follows_a_job_for_days_and_gets_options_of_its_own(runner):
    found = build_options(runner, {"number_of_execution_retries": 3}).get_all_options(
        retain_unknown_options=True
    )
    assert found["job_server_timeout"] > 24 * 3600
    assert found["number_of_execution_retries"] == "3"
    assert (
        build_options(runner, {"job_server_timeout": 5}).get_all_options()["job_server_timeout"]
        == 5
    )


@pytest.mark.parametrize("runner", ENGINES)
def test_a_mistyped_option_of_beam_is_not_taken_for_one_of_the_engine(runner):
    with pytest.raises(UsageError, match=r"no option 'paralelism'.*'parallelism'"):
        build_options(runner, {"paralelism": 2})


TRACEBACK = (
    'Traceback (most recent call last):\n  File "/site-packages/{}", line 3, in run\n    go()\n'
)


@pytest.mark.parametrize(
    ("said", "kind", "message"),
    [
        # A worker of Python in the lines of Java, as Flink prints them.
        (
            "java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error received "
            "from SDK harness for instruction 1: "
            + TRACEBACK.format("worker.py")
            + "darkroom.errors.DataError: s3://in/a.csv changed while it was read. Run this again."
            " [while running 'WriteDataset/WriteShards']\n\n\tat org.apache.beam.fn(Beam.java:1)\n",
            DataError,
            "s3://in/a.csv changed while it was read. Run this again.",
        ),
        (
            TRACEBACK.format("runpy.py") + "ModuleNotFoundError: No module named 'darkroom'\n",
            StorageError,
            "A worker of the engine does not have darkroom: ModuleNotFoundError: ",
        ),
        (
            "Caused by: java.util.concurrent.TimeoutException: The heartbeat of TaskManager with "
            "id x-1 timed out.\nThe TaskManager is no longer reachable.",
            StorageError,
            "The engine lost a worker: TimeoutException: ",
        ),
        (
            "Caused by: org.apache.flink.runtime.jobmanager.scheduler."
            "NoResourceAvailableException: Could not acquire the minimum required resources.",
            StorageError,
            "The engine has no free slot for the job: NoResourceAvailableException: ",
        ),
        (
            "java.lang.UnsupportedClassVersionError: Driver has been compiled by a more recent "
            "version of the Java Runtime",
            StorageError,
            "Java is too old for the job server: UnsupportedClassVersionError: ",
        ),
        (
            "Caused by: java.lang.OutOfMemoryError: Java heap space",
            StorageError,
            "A process of the engine had too little memory: OutOfMemoryError: Java heap space.",
        ),
        (
            "java.lang.IllegalStateException: Process died with exit code 127",
            StorageError,
            "The engine could not start a worker process: IllegalStateException: ",
        ),
        (
            TRACEBACK.format("io.py")
            + "FileNotFoundError: /out/.attempt/7/shard-0001.part does not exist",
            StorageError,
            "The engine's workers do not see the output folder: FileNotFoundError: ",
        ),
        (
            "grpc.FutureTimeoutError: ",
            StorageError,
            "The engine, its job server or its workers cannot be reached: ",
        ),
        ("something new", StorageError, "FlinkRunner failed: RuntimeError: job-1 FAILED."),
    ],
)
def test_the_last_cause_is_told_in_one_sentence_with_a_hint(said, kind, message):
    def run() -> None:
        with report_failures("FlinkRunner"):
            logging.getLogger("apache_beam.runners.portability").info("started\n%s", said)
            raise RuntimeError("job-1 FAILED")

    with pytest.raises(DarkroomError) as stop:
        run()
    error = stop.value
    assert type(error) is kind
    assert error.message.startswith(message)
    assert str(error).count("\n") < 9
    [log] = re.findall(
        r"The log of the engine as this client saw it is in (\S+\.log)\.", error.hint
    )
    text = Path(log).read_text()
    assert said in text
    assert "job-1 FAILED" in text
    os.unlink(log)


def test_a_defect_of_darkroom_on_a_worker_is_raised_as_it_is():
    said = TRACEBACK.format("darkroom/conversion/shard.py") + "TypeError: 'int' object"
    with pytest.raises(RuntimeError, match="job-1"), report_failures("FlinkRunner"):
        raise RuntimeError(f"job-1 FAILED: {said}")


def test_an_error_in_a_folder_that_has_our_name_is_not_a_defect_of_ours(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = 'Traceback (most recent call last):\n  File "/home/me/darkroom/own.py", line 3, in run\n'
    with (
        pytest.raises(StorageError, match="TypeError: 'int' object"),
        report_failures("FlinkRunner"),
    ):
        raise RuntimeError(f"job-1 FAILED: {said}    go()\nTypeError: 'int' object")


def test_nothing_stays_of_a_job_that_ended_well(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    loggers = logging.getLogger(), logging.getLogger("apache_beam")
    before = [(each.level, each.propagate, list(each.handlers)) for each in loggers]
    with report_failures("FlinkRunner"):
        logging.getLogger("apache_beam.utils").warning("a line of Beam")
        logging.error("a line of a job server")
    assert [(each.level, each.propagate, list(each.handlers)) for each in loggers] == before
    assert list(tmp_path.iterdir()) == []
    assert "a line" not in capfd.readouterr().err


def _convert(tmp_path: Path, **options: object) -> None:
    write_label_folders(tmp_path / "src", 3)
    convert(
        tmp_path / "src",
        tmp_path / "out",
        runner="PortableRunner",
        options=ConversionOptions(beam_options={**EMBEDDED, **options}),
    )


@pytest.mark.slow
def test_an_option_that_the_engine_does_not_know_stops_the_job(tmp_path):
    with pytest.raises(UsageError, match="nor PortableRunner has the option 'retries_of_tasks'"):
        _convert(tmp_path, retries_of_tasks=3)
    assert not (tmp_path / "out/dataset.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DataError", "StorageError", "OutputError"])
def test_an_error_of_ours_on_a_worker_keeps_its_class(tmp_path, monkeypatch, name):
    kind = getattr(errors, name)

    def fail(*_: object) -> None:
        raise kind("There is no room on the disk.", "Make room.")

    monkeypatch.setattr(transforms, "write_shard", fail)
    with pytest.raises(kind, match=r"There is no room on the disk\. Make room\.") as stop:
        _convert(tmp_path)
    assert type(stop.value) is kind
    [log] = re.findall(r"as this client saw it is in (\S+\.log)\.", stop.value.hint)
    assert "There is no room" in Path(log).read_text()
    os.unlink(log)
