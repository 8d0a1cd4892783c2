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

import apache_beam as beam
import pytest
from apache_beam.runners.portability.job_server import StopOnExitJobServer
from tests.pictures import write_label_folders

from darkroom.cli.commands import main
from darkroom.cli.process import Signal
from darkroom.conversion.beam import transforms
from darkroom.conversion.beam.cancellation import cancel_with_client
from darkroom.conversion.beam.engine_log import report_failures
from darkroom.conversion.beam.run import guard_job
from darkroom.conversion.beam.runners import build_options
from darkroom.conversion.convert import convert
from darkroom.errors import DarkroomError, StorageError
from darkroom.options.conversion import ConversionOptions
from darkroom.runtime.process import find_explanation

from ...flink_rest import JOB, FlinkRest, serve_flink

TOKEN, OTHER = "01234567", "f" * 32
NAME = f"darkroom-{TOKEN}"
CANCELLED = f"The job {NAME} on Flink was cancelled; run the same command again to go on."
ENDING = f"Ending the job {NAME}. This may take 10 s."
# The embedded job service stands for the job server, and the stand-in for the cluster.
EMBEDDED = {"job_endpoint": "embed", "environment_type": "LOOPBACK"}


@pytest.fixture
def flink(monkeypatch):
    """A cluster where the job of the conversion runs."""
    monkeypatch.setattr("darkroom.conversion.start.new_token", lambda: TOKEN)
    with serve_flink() as rest:
        rest.jobs = {OTHER: ["another", "RUNNING"], JOB: [f"nightly-{NAME}", "RUNNING"]}
        yield rest


@pytest.fixture(autouse=True)
def handlers(monkeypatch):
    """Python's own handlers; what a command changes of the process is changed back."""
    monkeypatch.setattr(Signal, "number", None)
    numbers, hook = (signal.SIGINT, signal.SIGTERM), threading.excepthook
    logger = logging.getLogger("apache_beam")
    level = logger.level
    before = [signal.getsignal(number) for number in numbers]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    threading.excepthook = hook
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

        monkeypatch.setattr(transforms, "write_shard", write_shard)

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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_job_on_flink(source, flink, fail, number, capfd):
    fail(_send(number))
    assert _run(source, flink) == 128 + number
    assert _said(capfd) == [ENDING, f"Ended by {number.name}. {CANCELLED}"]
    assert flink.jobs == {OTHER: ["another", "RUNNING"], JOB: [f"nightly-{NAME}", "CANCELED"]}
    assert not Path(source, "../out/dataset.json").exists()


@pytest.mark.slow
def test_a_job_that_goes_on_is_named_with_the_command_that_stops_it(source, flink, fail, capfd):
    fail(_send(signal.SIGINT))
    flink.states = []
    assert _run(source, flink) == 130
    assert _said(capfd) == [
        ENDING,
        f"Ended by SIGINT. The job {NAME} could not be cancelled: it goes on on Flink as job {JOB},"
        f" RUNNING. Stop it with: curl -X PATCH {flink.url}/jobs/{JOB}",
    ]


@pytest.mark.slow
def test_a_second_signal_ends_the_wait_for_the_first(source, flink, fail, capfd):
    flink.when_cancelled = _send(signal.SIGTERM)
    fail(_send(signal.SIGINT))
    assert _run(source, flink) == 143
    see = f"darkroom attempts {Path(source).parent / 'out'}"
    assert _said(capfd) == [ENDING, f"Ended by SIGTERM. The job {NAME} may go on. See: {see}"]


@pytest.mark.slow
def test_python_tells_the_same_by_its_own_exception(source, flink, fail, tmp_path):
    fail(_send(signal.SIGINT))
    options = {**EMBEDDED, "flink_master": flink.url}
    with pytest.raises(KeyboardInterrupt) as stop:
        convert(
            source,
            tmp_path / "out",
            runner="FlinkRunner",
            options=ConversionOptions(beam_options=options),
        )
    assert str(stop.value) == CANCELLED


@pytest.mark.slow
def test_a_script_that_sigterm_ends_cancels_the_job_and_frees_the_output(
    source, flink, fail, tmp_path, caplog
):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    fail(_send(signal.SIGTERM))
    options = {**EMBEDDED, "flink_master": flink.url}
    with pytest.raises(SystemExit) as stop:
        convert(
            source,
            tmp_path / "out",
            runner="FlinkRunner",
            options=ConversionOptions(beam_options=options),
        )
    assert stop.value.code == 143
    assert caplog.messages[-1] == f"Ended by SIGTERM. {CANCELLED}"
    assert flink.jobs[JOB][1] == "CANCELED"
    assert not [*tmp_path.glob("out/*lock*"), *tmp_path.glob("out/.*lock*")]


@pytest.mark.slow
def test_a_job_that_its_client_gives_up_is_cancelled_too(source, flink, fail, capfd):
    fail(_fail)
    assert _run(source, flink) == 3
    said = "\n".join(_said(capfd))
    assert "There is no room on the disk. Make room." in said
    assert said.endswith(
        f"The job {NAME} on Flink was cancelled; run the same command again to go on."
    )
    assert flink.jobs[JOB][1] == "CANCELED"
    os.unlink(re.findall(r"it is in (\S+\.log)\.", said)[0])


@pytest.mark.parametrize(("given", "named"), [({}, "one"), ({"job_name": "mine"}, "mine-one")])
def test_a_job_on_an_engine_has_a_name_that_no_other_has(write, given, named):
    pipeline = beam.Pipeline(argv=["--runner=flinkrunner", *(f"--{k}={given[k]}" for k in given)])
    with guard_job(pipeline, write, "one"):
        assert pipeline.options.get_all_options()["job_name"] == named


@pytest.mark.parametrize("pip", [None, "there"])
def test_beam_does_not_call_a_pip_that_is_missing(write, monkeypatch, pip):
    """It would complain on the terminal, between lines of progress."""
    monkeypatch.setattr("darkroom.conversion.beam.run.find_spec", lambda name: pip)
    pipeline = beam.Pipeline(options=build_options("PortableRunner", {}))
    with guard_job(pipeline, write, NAME):
        experiments = pipeline.options.get_all_options()["experiments"] or []
    assert ("disable_logging_submission_environment" in experiments) == (pip is None)


def test_a_job_in_this_process_has_no_name(write):
    pipeline = beam.Pipeline(options=build_options("FnApiRunner", {}))
    with guard_job(pipeline, write, NAME):
        assert pipeline.options.get_all_options()["job_name"] is None


class Submitted:
    """A job that a job server has taken."""

    def __init__(self, error: Exception | None = None) -> None:
        self.cancelled = 0
        self._error = error

    def cancel(self) -> None:
        self.cancelled += 1
        if self._error:
            raise self._error


def _end(error: Exception | None = None, *, submitted: bool = True, **options: str) -> str:
    """Interrupts a pipeline with these options; returns what is told of it."""
    pipeline = beam.Pipeline(options=build_options("PortableRunner", options))
    pipeline.result = Submitted(error) if submitted else None
    with pytest.raises(KeyboardInterrupt) as stop, cancel_with_client(pipeline, NAME):
        raise KeyboardInterrupt
    assert not submitted or pipeline.result.cancelled == bool(
        "at jobs:8099" in str(find_explanation(stop.value))
    )
    return find_explanation(stop.value)


def _fail_in_a_thread(name: str) -> None:
    thread = threading.Thread(target=_fail, name=name)
    thread.start()
    thread.join()


def _log_as_beam(text: str) -> None:
    """Logs a line on the root logger, as Beam does with what an engine says."""
    code = compile(f"logging.error({text!r})", beam.pipeline.__file__, "exec")
    exec(code, {"logging": logging})


def test_what_an_engine_says_after_the_end_stays_from_the_terminal(write, caplog, monkeypatch):
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    pipeline, filters = beam.Pipeline(options=build_options("PrismRunner", {})), []
    monkeypatch.setattr(logging.getLogger(), "filters", filters)
    with pytest.raises(KeyboardInterrupt), guard_job(pipeline, write, NAME):
        raise KeyboardInterrupt
    _log_as_beam("Job 0 was cancelled")
    logging.error("mine")
    assert caplog.messages == ["mine"]
    with report_failures("PrismRunner") as log:
        _log_as_beam("The next job")
        assert "The next job" in log.read()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_that_follow_the_job_say_nothing_of_its_end(write, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: said.append(failure.thread.name))
    pipeline = beam.Pipeline(options=build_options("PrismRunner", {}))
    with pytest.raises(KeyboardInterrupt), guard_job(pipeline, write, NAME):
        raise KeyboardInterrupt
    for name in ("wait_until_finish_read", "run_worker_1", "mine"):
        _fail_in_a_thread(name)
    assert said == ["mine"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_threads_say_nothing_when_the_job_server_is_stopped_under_them(write, monkeypatch):
    """As after a second signal, when nobody has waited for the end of the job."""

    class Server:
        def start(self) -> str:
            return "localhost:1"

        def stop(self) -> None:
            _fail_in_a_thread("wait_until_finish_read")
            stopped.append(True)

    said: list[str] = []
    stopped: list[bool] = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: said.append(failure.thread.name))
    pipeline = beam.Pipeline(options=build_options("PrismRunner", {}))

    def interrupt() -> None:
        with guard_job(pipeline, write, NAME):
            StopOnExitJobServer(Server()).start()
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert stopped == [True]
    assert said == []


def test_a_job_server_that_is_not_ours_is_told_to_cancel():
    told = _end(job_endpoint="jobs:8099")
    assert told.startswith(f"The job server at jobs:8099 was told to cancel the job {NAME}. If ")


def test_a_job_server_that_does_not_cancel_is_named():
    told = _end(ConnectionError("gone"), job_endpoint="jobs:8099")
    assert told.startswith(f"The job {NAME} could not be cancelled: the job server at jobs:8099")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"job_endpoint": "embed"},
        {"flink_master": "[local]"},
        {"spark_master_url": "spark://s:1"},
    ],
)
def test_a_job_that_ends_with_its_client_needs_no_word(options):
    assert _end(**options) == ""


def test_a_job_that_was_not_submitted_needs_no_word(flink):
    assert _end(submitted=False, job_endpoint="jobs:8099") == ""
    flink.jobs = {OTHER: ["another", "RUNNING"]}
    assert _end(submitted=False, flink_master=flink.url) == ""


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
        f"Whether the job {NAME} goes on is not known: Flink at {flink.url} answ"
    )
