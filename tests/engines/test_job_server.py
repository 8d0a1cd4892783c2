"""A client that is interrupted while its job runs on an engine: what becomes of the job."""

from __future__ import annotations

import logging
import os
import re
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from apache_beam.runners.portability.job_server import JobServer, StopOnExitJobServer
from tests.pictures import write_label_folders

from darkroom.cli import main
from darkroom.cli.process import Signal
from darkroom.conversion.beam.runners import build_options
from darkroom.conversion.shards import writing
from darkroom.engines.job_server import ENGINES
from darkroom.errors import DarkroomError, StorageError, UsageError
from darkroom.runtime.process import find_explanation

from ..flink_rest import JOB, FlinkRest, serve_flink

PORTABLE = ENGINES[-1]
TOKEN, OTHER = "01234567", "f" * 32
NAME = f"darkroom-{TOKEN}"
CANCELLED = f"The job {NAME} on Flink was cancelled; run the same command again to resume."
ENDING = f"Ending the job {NAME}. This may take 10 s."
# The embedded job service stands for the job server, and the stand-in for the cluster.
EMBEDDED = {"job_endpoint": "embed", "environment_type": "LOOPBACK"}


@pytest.fixture
def flink(monkeypatch):
    """A cluster where the job of the conversion runs."""
    monkeypatch.setattr("darkroom.conversion.output.output.new_token", lambda: TOKEN)
    with serve_flink() as rest:
        rest.jobs = {OTHER: ["another", "RUNNING"], JOB: [f"nightly-{NAME}", "RUNNING"]}
        yield rest


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """Python's own handlers; what a command changes of the process is changed back."""
    monkeypatch.setattr(Signal, "number", None)
    numbers = (signal.SIGINT, signal.SIGTERM)
    logger = logging.getLogger("apache_beam")
    level = logger.level
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    logger.setLevel(level)


@pytest.fixture
def fail(monkeypatch):
    """Makes something happen once, when the first shard is written; no shard ever is."""
    first, ended, before = threading.Lock(), threading.Event(), set(threading.enumerate())

    def use(happen: Callable[[], None]) -> None:
        def write_shard(*_: object) -> None:
            if first.acquire(blocking=False):
                try:
                    happen()
                except DarkroomError:
                    ended.set()
                    raise
            ended.wait(60)
            raise InterruptedError

        monkeypatch.setattr(writing, "write_shard", write_shard)

    yield use
    ended.set()
    for thread in set(threading.enumerate()) - before:
        if not thread.daemon:
            thread.join(60)


def _send(number: int) -> Callable[[], None]:
    return partial(signal.pthread_kill, threading.main_thread().ident, number)


def _fail() -> None:
    raise StorageError("There is no room on the disk.", "Make room.")


@pytest.fixture
def source(tmp_path: Path) -> str:
    write_label_folders(tmp_path / "src", 3)
    return str(tmp_path / "src")


def _run(source: str, flink: FlinkRest) -> int:
    master = flink.url.removeprefix("http://")
    options = {**EMBEDDED, "flink_master": master, "job_name": "nightly"}
    pairs = [each for pair in options.items() for each in ("--beam-option", "=".join(pair))]
    place = ["convert", source, "--output-dir", f"{source}/../out", "--runner", "flinkrunner"]
    return main([*place, *pairs])


def _said(capfd: pytest.CaptureFixture[str]) -> list[str]:
    lines = capfd.readouterr().err.splitlines()
    progress = ("Reading", "Converting", f"The job {NAME} begins on http://")
    return [line for line in lines if not line.startswith(progress)]


@pytest.mark.slow
def test_a_signal_cancels_the_job_on_flink(source, flink, fail, capfd):
    number = signal.SIGTERM
    fail(_send(number))
    assert _run(source, flink) == 128 + number
    assert _said(capfd) == [ENDING, f"Ended by {number.name}. {CANCELLED}"]
    assert flink.jobs == {OTHER: ["another", "RUNNING"], JOB: [f"nightly-{NAME}", "CANCELED"]}
    assert not Path(source, "../out/dataset.json").exists()


def test_a_job_that_goes_on_is_named_with_the_command_that_stops_it(flink):
    flink.states = []
    assert _end(flink_master=flink.url) == (
        f"The job {NAME} could not be cancelled: it keeps running on Flink as job {JOB}, RUNNING. "
        f"Stop it with: curl -X PATCH {flink.url}/jobs/{JOB}"
    )


@pytest.mark.long
def test_a_second_signal_ends_the_wait_for_the_first(source, flink, fail, capfd):
    flink.when_cancelled = _send(signal.SIGTERM)
    fail(_send(signal.SIGINT))
    assert _run(source, flink) == 143
    assert _said(capfd) == [ENDING, f"Ended by SIGTERM. The job {NAME} may still run."]


@pytest.mark.long
def test_a_job_that_its_client_gives_up_is_cancelled_too(source, flink, fail, capfd):
    fail(_fail)
    assert _run(source, flink) == 3
    said = "\n".join(_said(capfd))
    assert "There is no room on the disk. Make room." in said
    assert said.endswith(
        f"The job {NAME} on Flink was cancelled; run the same command again to resume."
    )
    assert flink.jobs[JOB][1] == "CANCELED"
    os.unlink(re.findall(r"it is in (\S+\.log)\.", said)[0])


class Submitted:
    """A job that a job server has taken."""

    end: BaseException

    def __init__(self, error: Exception | None = None) -> None:
        self.cancelled = 0
        self._error = error

    def wait_until_finish(self) -> None:
        raise self.end

    def cancel(self) -> None:
        self.cancelled += 1
        if self._error:
            raise self._error


class Pipeline:
    """A pipeline that a job server takes, and whose job never ends by itself."""

    def __init__(self, error: Exception | None = None, **options: object) -> None:
        self.options = build_options("PortableRunner", options)
        self.submitted = Submitted(error)
        self.end: BaseException = KeyboardInterrupt()

    def run(self) -> Submitted:
        self.submitted.end = self.end
        return self.submitted


def _end(error: Exception | None = None, **options: str) -> str:
    """Interrupts a job with these options; returns what is told of it."""
    pipeline = Pipeline(error, **options)
    with pytest.raises(KeyboardInterrupt) as stop:
        PORTABLE.run(pipeline, NAME)
    is_external = ":" in options.get("job_endpoint", "")
    assert pipeline.submitted.cancelled >= is_external
    return find_explanation(stop.value)


@pytest.mark.parametrize(("given", "named"), [({}, NAME), ({"job_name": "mine"}, f"mine-{NAME}")])
def test_a_job_on_an_engine_has_a_name_that_no_other_has(given, named):
    pipeline = Pipeline(**given)
    with pytest.raises(KeyboardInterrupt):
        PORTABLE.run(pipeline, NAME)
    assert pipeline.options.get_all_options()["job_name"] == named


@pytest.mark.parametrize("pip", [None, "there"])
def test_beam_does_not_call_a_pip_that_is_missing(monkeypatch, pip):
    """It would complain on the terminal, between lines of progress."""
    monkeypatch.setattr("darkroom.engines.job_server.find_spec", lambda name: pip)
    pipeline = Pipeline()
    with pytest.raises(KeyboardInterrupt):
        PORTABLE.run(pipeline, NAME)
    experiments = pipeline.options.get_all_options()["experiments"] or []
    assert ("disable_logging_submission_environment" in experiments) == (pip is None)


def test_a_signal_is_pythons_again_once_the_job_server_runs():
    """Beam's own handler would wait for itself at the second signal, as `timeout` sends it."""
    stopped: list[bool] = []

    class Server(JobServer):
        def start(self) -> str:
            return "localhost:1"

        def stop(self) -> None:
            stopped.append(True)

    class Signalled(Pipeline):
        def run(self) -> Submitted:
            StopOnExitJobServer(Server()).start()
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            return super().run()

    class Interrupt(KeyboardInterrupt):
        pass

    pipeline = Signalled()
    pipeline.end = Interrupt()
    with pytest.raises(Interrupt):
        PORTABLE.run(pipeline, NAME)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert stopped == []


def test_what_the_engine_raises_becomes_one_error_with_its_lines(capfd):
    pipeline = Pipeline()
    pipeline.end = RuntimeError("Pipeline job-1 failed in state FAILED: java.io.IOException: Full.")

    def run() -> Submitted:
        logging.getLogger("FlinkJarJobServer").info("a line of the job server")
        logging.getLogger("apache_beam.utils").warning("a line of Beam")
        return Pipeline.run(pipeline)

    pipeline.run = run
    with pytest.raises(StorageError, match=r"PortableRunner failed: IOException: Full\.") as stop:
        PORTABLE.run(pipeline, NAME)
    [log] = re.findall(r"as this client saw it is in (\S+\.log)\.", stop.value.hint)
    said = "a line of the job server\na line of Beam\njava.io.IOException: Full.\n"
    assert Path(log).read_text() == said
    os.unlink(log)
    assert capfd.readouterr().err == ""


def test_the_reason_of_a_job_server_that_does_not_start_is_in_its_lines():
    pipeline = Pipeline()

    def run() -> Submitted:
        logging.getLogger("FlinkJarJobServer").info("Error: Invalid or corrupt jarfile x.jar")
        raise RuntimeError("Service failed to start up with error 1")

    pipeline.run = run
    with pytest.raises(UsageError, match="The jar is not a job server of Beam") as stop:
        PORTABLE.run(pipeline, NAME)
    os.unlink(re.findall(r"it is in (\S+\.log)\.", stop.value.hint)[0])


def test_a_defect_of_darkroom_on_a_worker_is_raised_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipeline = Pipeline()
    trace = 'File "/site-packages/darkroom/conversion/shards/shard.py", line 3, in run\n    go()\n'
    pipeline.end = RuntimeError(f"job-1 FAILED: {trace}TypeError: 'int' object")
    with pytest.raises(RuntimeError, match="job-1"):
        PORTABLE.run(pipeline, NAME)


def test_nothing_stays_of_a_job_that_ended_well(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    loggers = [logging.getLogger(name) for name in ("", "apache_beam", "FlinkJarJobServer")]
    before = [(each.level, each.propagate, list(each.handlers)) for each in loggers]
    pipeline = Pipeline()
    monkeypatch.setattr(Submitted, "wait_until_finish", lambda self: None)
    PORTABLE.run(pipeline, NAME)
    assert [(each.level, each.propagate, list(each.handlers)) for each in loggers] == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        *(
            ({"job_endpoint": "jobs:8099"}, error, told)
            for error, told in (
                (None, f"The job server at jobs:8099 was told to cancel the job {NAME}. If "),
                (
                    ConnectionError("gone"),
                    f"The job {NAME} could not be cancelled: the job server ",
                ),
            )
        ),
        # These end with their client.
        ({}, None, ""),
        ({"flink_master": "[local]"}, None, ""),
        ({"spark_master_url": "spark://s:1"}, None, ""),
    ],
)
def test_what_is_told_of_a_job_when_its_client_ends(options, error, told):
    said = _end(error, **options)
    assert said.startswith(told)
    assert bool(said) == bool(told)


def test_a_job_that_was_not_submitted_needs_no_word(flink):
    flink.jobs = {OTHER: ["another", "RUNNING"]}
    for options in ({"job_endpoint": "jobs:8099"}, {"flink_master": flink.url}):
        pipeline = Pipeline(**options)

        def run() -> Submitted:
            raise KeyboardInterrupt

        pipeline.run = run
        with pytest.raises(KeyboardInterrupt) as stop:
            PORTABLE.run(pipeline, NAME)
        assert find_explanation(stop.value) == ""


def test_a_job_that_appears_late_is_cancelled(flink, monkeypatch):
    jobs, flink.jobs = flink.jobs, {}
    monkeypatch.setattr("time.sleep", lambda _: flink.jobs.update(jobs))
    assert "on Flink was cancelled" in _end(flink_master=flink.url)


def test_a_job_that_has_ended_is_not_cancelled(flink):
    flink.jobs[JOB][1] = "FINISHED"
    assert _end(flink_master=flink.url) == ""
    assert not [each for each in flink.asked if "PATCH" in each]


def test_a_flink_that_does_not_answer_is_told(flink):
    flink.answers = {"/jobs/overview": (503, "")}
    told = _end(flink_master=flink.url)
    assert told.startswith(
        f"Whether the job {NAME} still runs is not known: Flink at {flink.url} answ"
    )
