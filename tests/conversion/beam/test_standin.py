"""Jobs that a stand-in for an engine takes: what a user reads when they fail, and how they end."""

from __future__ import annotations

import io
import logging
import os
import re
import shutil
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.pictures import write_label_folders

from darkroom.conversion.beam import transforms, versions, watching
from darkroom.conversion.beam.engine_log import EngineLog, report_failures
from darkroom.conversion.beam.engines import ENGINES
from darkroom.conversion.beam.failures import describe_failure
from darkroom.conversion.convert import convert
from darkroom.conversion.result import ConversionResult
from darkroom.errors import DarkroomError, MissingPathError, OutputError, StorageError
from darkroom.options.conversion import ConversionOptions
from darkroom.runtime import progress

from .standin import StandIn, State, run_here, serve

pytestmark = pytest.mark.heavy

DAY = 24 * 3600
JAVA = "\tat org.apache.beam.runners.fnexecution.control.Client.get(Client.java:71)\n" * 50
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/site-packages/{}", line 3, in run\n    go()\n'
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_label_folders(tmp_path / "src", 1)
    return tmp_path / "src"


def _submit(service: StandIn, source: Path) -> ConversionResult:
    with serve(service) as options:
        return convert(
            source,
            source.parent / "out",
            runner="PortableRunner",
            options=ConversionOptions(beam_options=options),
        )


def _fail(service: StandIn, source: Path) -> tuple[DarkroomError, str]:
    """Returns the error of a job that fails, and all that the engine said."""
    with pytest.raises(DarkroomError) as stop:
        _submit(service, source)
    assert len(str(stop.value).splitlines()) <= 10
    [log] = re.findall(r"as this client saw it is in (\S+\.log)\.", stop.value.hint)
    text = Path(log).read_text()
    os.unlink(log)
    return stop.value, text


def test_a_job_may_run_for_days(source):
    service = StandIn(run=run_here)
    assert _submit(service, source).written == 2
    assert service.stream_seconds is None or service.stream_seconds > DAY
    assert "job_server_timeout" in service.options


# What engines print in such a case, in short; what a user reads of it; the exit code.
SAID = {
    "a data error": (
        "Caused by: java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error "
        "received from SDK harness for instruction 3: " + TRACEBACK.format("worker.py") +
        "darkroom.errors.DataError: s3://in/a.csv changed while it was read. Run this again. "
        "[while running 'WriteDataset/WriteShards-ptransform-42']\n\n" + JAVA,
        "s3://in/a.csv changed while it was read. Run this again.",
        1,
    ),
    "a wrong jar": (
        "Error: Could not find or load main class org.apache.beam.runners.flink.FlinkJobServer",
        "The jar is not a job server of Beam: ",
        2,
    ),
    "Java that is too old": (
        "java.lang.UnsupportedClassVersionError: org/apache/beam/runners/flink/FlinkDriver "
        "has been compiled by a more recent version of the Java Runtime (class file version 55.0), "
        "this version of the Java Runtime only recognizes class file versions up to 52.0",
        "Java is too old for the job server: UnsupportedClassVersionError: ",
        3,
    ),
    "Java that is too new": (
        "Caused by: java.lang.reflect.InaccessibleObjectException: Unable to make field private "
        'final byte[] java.lang.String.value accessible: module java.base does not "opens '
        'java.lang" to unnamed module @1d057a39',
        "Java is too new for the job server: InaccessibleObjectException: ",
        3,
    ),
    "a jar that cannot be loaded": (
        "RuntimeError: Unable to fetch remote job server jar at "
        "https://repo/beam-runners-flink-1.19-job-server-2.74.0.jar: HTTP Error 404: Not Found",
        "Beam could not load the job server: RuntimeError: ",
        3,
    ),
    "a job server for another version of the engine": (
        "java.io.InvalidClassException: org.apache.flink.runtime.jobgraph.JobGraph; local class "
        "incompatible: stream classdesc serialVersionUID = 1, local class serialVersionUID = 2",
        "The job server does not fit the engine's version: InvalidClassException: ",
        3,
    ),
    "no task manager": (
        "org.apache.flink.runtime.JobException: Recovery is suppressed by "
        "NoRestartBackoffTimeStrategy\n" + JAVA +
        "Caused by: java.util.concurrent.CompletionException: org.apache.flink.runtime.jobmanager."
        "scheduler.NoResourceAvailableException: Could not acquire the minimum required resources.",
        "The engine has no free slot for the job: CompletionException: ",
        3,
    ),
    "no worker pool": (
        "Caused by: org.apache.beam.vendor.grpc.v1p60p1.io.grpc.StatusRuntimeException: "
        "UNAVAILABLE: io exception\n" +
        JAVA.replace("control.Client", "environment.ExternalEnvironmentFactory") +
        "Caused by: java.net.ConnectException: Connection refused",
        "No worker pool answers: ConnectException: Connection refused.",
        3,
    ),
    "a worker without darkroom": (
        "java.lang.RuntimeException: Error received from SDK harness for instruction 1: " +
        TRACEBACK.format("apache_beam/internal/cloudpickle/cloudpickle.py") +
        "ModuleNotFoundError: No module named 'darkroom'\n" + JAVA,
        "A worker of the engine does not have darkroom: ModuleNotFoundError: No module named ",
        3,
    ),
    "a worker without Beam": (
        "/usr/bin/python: No module named apache_beam",
        "A worker of the engine does not have darkroom: ",
        3,
    ),
    "a worker with another version of darkroom": (
        TRACEBACK.format("cloudpickle.py") +
        "ModuleNotFoundError: No module named 'darkroom.conversion.beam.versions'\n",
        "A worker of the engine has another version of darkroom: ModuleNotFoundError: ",
        3,
    ),
    "a worker with another version of pyarrow": (
        "RuntimeError: " + TRACEBACK.format("darkroom/conversion/beam/versions.py") +
        "darkroom.errors.StorageError: A worker (w1) has pyarrow 10.0.1, but the client has "
        "pyarrow 25.0.1. The files that it writes would differ. Install the same.\n" + JAVA,
        "A worker (w1) has pyarrow 10.0.1, but the client has pyarrow 25.0.1. ",
        3,
    ),
    "a token that expired": (
        "RuntimeError: " + TRACEBACK.format("darkroom/storage/requests.py") +
        "darkroom.errors.CredentialsError: Reading s3://b/7.jpg failed, because of the "
        "credentials: ExpiredToken. [while running 'WriteDataset/WriteShards']\n\n" + JAVA,
        "Reading s3://b/7.jpg failed, because of the credentials: ExpiredToken.",
        3,
    ),
    "a worker with another Python": (
        TRACEBACK.format("dill/_dill.py") + "ValueError: unsupported pickle protocol: 5\n",
        "A worker of the engine has another Python: ValueError: unsupported pickle protocol: 5.",
        3,
    ),
    "output that is not shared": (
        "RuntimeError: " + TRACEBACK.format("darkroom/conversion/beam/transforms.py") +
        "darkroom.errors.StorageError: /out/.attempt/0a1b/shard-00003.part does not exist. Check "
        "the path. [while running 'WriteDataset/WriteShards-ptransform-42']\n\n" + JAVA,
        "The engine's workers do not see the output folder: StorageError: /out/.attempt/0a1b/",
        3,
    ),
    "a lost worker": (
        "org.apache.flink.runtime.JobException: Recovery is suppressed by "
        "NoRestartBackoffTimeStrategy\n" + JAVA +
        "Caused by: org.apache.flink.runtime.jobmaster.JobMasterException: TaskManager with id "
        "localhost:36261-4cf4a9 is no longer reachable.",
        "The engine lost a worker: JobMasterException: ",
        3,
    ),
    "a worker of Beam that ended while it worked": (
        "java.util.concurrent.ExecutionException: org.apache.beam.vendor.grpc.v1p69p0.io.grpc."
        "StatusRuntimeException: CANCELLED: client cancelled\n" + JAVA +
        "Caused by: org.apache.beam.vendor.grpc.v1p69p0.io.grpc.StatusRuntimeException: CANCELLED: "
        "client cancelled\n" + JAVA,
        "A worker process ended while it worked: StatusRuntimeException: CANCELLED: client cancel",
        3,
    ),
    "a worker with another Python, or another Beam": (
        "java.util.concurrent.ExecutionException: java.lang.RuntimeException: Error received from "
        "SDK harness for instruction 2: " + TRACEBACK.format("worker/bundle_processor.py") +
        "RuntimeError: Pipeline construction environment and pipeline runtime environment are not "
        "compatible. Submission environment: beam:version:sdk_base:apache/beam_python3.10_sdk:2.7. "
        "Runtime environment: beam:version:sdk_base:apache/beam_python3.11_sdk:2.7.\n\n" + JAVA,
        "A worker of the engine has another Python or Beam: RuntimeError: Pipeline construction ",
        3,
    ),
    "a worker that never connects": (
        "java.lang.RuntimeException: No client connected within timeout\n" + JAVA +
        "Caused by: java.util.concurrent.TimeoutException: Waited 3 minutes for SettableFuture\n",
        "A worker of the engine began, and did not connect for data: RuntimeException: No client ",
        3,
    ),
    "a lost executor of Spark": (
        "org.apache.spark.SparkException: Job aborted due to stage failure: ExecutorLostFailure "
        "(executor 1 exited caused by one of the running tasks)",
        "The engine lost a worker: SparkException: ",
        3,
    ),
    "a program that is not there, on Spark, after a task that went on": (
        "WARN org.apache.spark.scheduler.TaskSetManager - Lost task 1.0 in stage 0.0 (TID 1): "
        "java.lang.NoSuchMethodError: 'void com.google.common.base.Preconditions.checkState'\n"
        + JAVA + 'Caused by: java.io.IOException: Cannot run program "/opt/w": error=2, No such\n',
        'The engine could not start a worker process: IOException: Cannot run program "/opt/w": ',
        3,
    ),
    "Spark's job server with Java 17": (
        "java.lang.IllegalAccessError: class org.apache.spark.storage.StorageUtils$ cannot access "
        "class sun.nio.ch.DirectBuffer: java.base does not export sun.nio.ch to unnamed module",
        "Java hides from Spark what its job server needs: IllegalAccessError: class org.apache.",
        3,
    ),
    "memory of Java": (
        "Caused by: java.lang.OutOfMemoryError: Java heap space",
        "A process of the engine had too little memory: OutOfMemoryError: Java heap space.",
        3,
    ),
    "memory of Python": (
        TRACEBACK.format("darkroom/images/decoders.py") + "MemoryError: \n",
        "A process of the engine had too little memory: ",
        3,
    ),
    "a worker that was killed": (
        "java.lang.IllegalStateException: Process died with exit code 137",
        "A process of the engine had too little memory: IllegalStateException: Process died",
        3,
    ),
    "a program that is not there": (
        "java.lang.RuntimeException: failed\n" + JAVA +
        'Caused by: java.io.IOException: Cannot run program "/opt/w": error=2, No such file\n' +
        JAVA + "Caused by: java.io.IOException: error=2, No such file or directory",
        'The engine could not start a worker process: IOException: Cannot run program "/opt/w": ',
        3,
    ),
    "a program that is not there, after which Flink's client fails, too": (
        'Caused by: java.io.IOException: Cannot run program "/opt/w": error=2, No such file\n' +
        "java.lang.IllegalStateException: Process died with exit code 1\n" +
        'Caused by: java.io.IOException: Cannot run program "/opt/w": error=2, No such file\n' +
        JAVA + "org.apache.flink.client.program.ProgramInvocationException: Job failed\n"
        "java.util.NoSuchElementException: No value present\n",
        'The engine could not start a worker process: IOException: Cannot run program "/opt/w": ',
        3,
    ),
    "a job that was cancelled for its cause": (
        "java.io.IOException: No space left on device\n"
        "Caused by: org.apache.flink.runtime.client.JobCancellationException: Job was cancelled.",
        "PortableRunner failed: IOException: No space left on device.",
        3,
    ),
    "a command that does not start a worker": (
        "java.lang.IllegalStateException: Process died with exit code 1",
        "The engine could not start a worker process: IllegalStateException: Process died with",
        3,
    ),
    "something new": ("The engine is out of ideas.", "PortableRunner failed: RuntimeError: ", 3),
}  # fmt: skip


@pytest.mark.parametrize("what", SAID)
def test_what_an_engine_says_is_told_in_a_sentence_with_a_hint_and_an_exit_code(source, what):
    said, message, code = SAID[what]
    error, log = _fail(StandIn(State.FAILED, ["The job begins.", said]), source)
    assert error.message.startswith(message)
    assert error.exit_code == code
    assert said in log
    assert not (source.parent / "out/dataset.json").exists()


def test_what_was_to_run_the_workers_is_named_but_not_its_variables(source):
    died = ["java.lang.IllegalStateException: Process died with exit code 1"]
    config = '{"command": "/bin/true", "env": {"KEY": "secret"}}'
    with serve(StandIn(State.FAILED, died)) as options:
        options |= {"environment_type": "PROCESS", "environment_config": config}
        with pytest.raises(StorageError) as stop:
            convert(
                source,
                source.parent / "out",
                runner="PortableRunner",
                options=ConversionOptions(beam_options=options),
            )
    assert " It was command=/bin/true. The log " in stop.value.hint
    assert "secret" not in str(stop.value)


def test_workers_that_do_not_share_the_output_are_named(source):
    out = source.parent / "out"

    def run_elsewhere(pipeline: object) -> None:
        out.rename(source.parent / "aside")
        try:
            run_here(pipeline)
        finally:
            (source.parent / "aside").rename(out)

    error, _ = _fail(StandIn(run=run_elsewhere), source)
    assert type(error) is StorageError
    assert error.message == "The engine's workers do not see the output folder."
    assert "a shared file system" in error.hint


def test_workers_that_do_not_see_the_images_reject_none(source, monkeypatch):
    """The client sees them, so that they are not missing: the workers are on other machines."""

    def run_elsewhere(pipeline: object) -> None:
        source.rename(source.parent / "aside")
        try:
            run_here(pipeline)
        finally:
            (source.parent / "aside").rename(source)

    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    with pytest.raises(StorageError, match="The engine's workers do not see the images: ") as stop:
        _submit(StandIn(run=run_elsewhere), source)
    assert f"{source}/" in stop.value.message
    assert "a shared file system" in str(stop.value)
    assert not (source.parent / "out/dataset.json").exists()
    assert not [*source.parent.glob("out/**/shard-*")]


def test_an_output_that_a_later_run_has_taken_is_not_called_unshared(source):
    def lose_output(pipeline: object) -> None:
        shutil.rmtree(source.parent / "out/.attempt")
        run_here(pipeline)

    error, _ = _fail(StandIn(run=lose_output), source)
    assert type(error) is OutputError
    assert error.message.startswith(f"A later run has taken {source.parent / 'out'}")


def test_an_error_of_ours_keeps_its_class_through_an_engine(source, monkeypatch):
    def fail(*_: object) -> None:
        raise MissingPathError("s3://in/a.jpg does not exist.", "Check the list.")

    monkeypatch.setattr(transforms, "write_shard", fail)
    error, _ = _fail(StandIn(run=run_here), source)
    assert type(error) is MissingPathError
    assert error.message.startswith("s3://in/a.jpg does not exist. Check the list.")


def test_a_defect_of_ours_is_not_blamed_on_the_engine(source, monkeypatch):
    real = transforms.write_shard

    def fail(*given: object) -> None:
        real(*given[:1], None, 5)  # calls a number

    monkeypatch.setattr(transforms, "write_shard", fail)
    with pytest.raises(Exception, match="TypeError: 'int' object is not callable") as stop:
        _submit(StandIn(run=run_here), source)
    assert not isinstance(stop.value, DarkroomError) or stop.value.exit_code == 70


def test_a_worker_that_refuses_ends_a_job_that_would_start_it_again_and_again(source, monkeypatch):
    """As with a restart strategy: the engine keeps the worker's error to itself."""
    service = StandIn()

    def start_again_and_again(pipeline: object) -> None:
        with pytest.raises(Exception, match=r"has pyarrow 0\.5"):
            run_here(pipeline)
        assert service.was_cancelled.wait(60)

    service._run = start_again_and_again
    real = versions.find_versions

    def find_versions(**options: bool) -> dict[str, str]:
        return {**real(**options), "pyarrow": "0.5"}

    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(versions, "find_versions", find_versions)
    with pytest.raises(StorageError, match=r"has pyarrow 0\.5, but the client has ") as stop:
        _submit(service, source)
    assert service.was_cancelled.is_set()
    assert stop.value.hint.startswith("Install the client's versions")
    assert not (source.parent / "out/dataset.json").exists()


def test_a_job_that_somebody_cancels_is_an_error(source):
    error, _ = _fail(StandIn(State.CANCELLED), source)
    assert error.exit_code == 3
    assert "CANCELLED" in error.message


def test_an_interrupted_job_resumes_after_its_shards(source):
    """The client ends as by Ctrl-C; what the job had finished is kept."""
    kept = {}

    def run_and_be_lost(pipeline: object) -> None:
        commit = transforms.CommitFn.process
        transforms.CommitFn.process = lambda *_: None
        try:
            run_here(pipeline)
        finally:
            transforms.CommitFn.process = commit
        kept.update(_read_times(source.parent / "out"))
        raise RuntimeError("TaskManager with id 7 is no longer reachable.")

    _fail(StandIn(run=run_and_be_lost), source)
    assert len(kept) >= 1
    assert _submit(StandIn(run=run_here), source).written == 2
    assert _read_times(source.parent / "out") == kept


def _read_times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("Split-*/*")}


@pytest.mark.parametrize("name", ["FlinkJarJobServer", "SparkJarJobServer", "PrismJobServer"])
def test_the_lines_of_a_job_server_are_kept_and_read(name):
    logger = logging.getLogger(name)
    before = logger.level, logger.propagate, list(logger.handlers)

    def run() -> None:
        with report_failures("FlinkRunner"):
            for line in ("Error: Invalid or corrupt jarfile x.jar", "", "Bye."):
                logger.info(line)
            raise RuntimeError("Service failed to start up with error 1")

    with pytest.raises(DarkroomError, match="The jar is not a job server of Beam") as stop:
        run()
    assert stop.value.exit_code == 2
    [log] = re.findall(r"as this client saw it is in (\S+\.log)\.", stop.value.hint)
    assert "INFO Error: Invalid or corrupt jarfile x.jar\n" in Path(log).read_text()
    os.unlink(log)
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


def test_an_error_that_each_line_of_a_job_server_has_apart_is_found(tmp_path):
    lines = [
        "java.lang.RuntimeException: job failed",
        "Caused by: java.lang.OutOfMemoryError: Java heap space",
        "\tat org.apache.flink.Task.run(Task.java:1)",
    ]
    log = tmp_path / "engine.log"
    log.write_text("".join(f"2026-01-02 03:04:05,678 INFO {line}\n" for line in lines))
    assert describe_failure(EngineLog(str(log)).read()).text == (
        "A process of the engine had too little memory: OutOfMemoryError: Java heap space. Give "
        "its workers more memory, or each fewer shards at once: --num-shards."
    )
    log.write_text("2026-01-02 03:04:05,678 INFO Starting the job.\n")
    assert describe_failure(EngineLog(str(log)).read()) == ("", False, False)


def _make_failure(file: str) -> SimpleNamespace:
    """Returns what Python's hook for threads gets when a function of this file fails."""
    try:
        exec(compile("raise ValueError('lost')", file, "exec"))
    except ValueError as error:
        return SimpleNamespace(
            exc_type=ValueError, exc_value=error, exc_traceback=error.__traceback__, thread=None
        )
    raise AssertionError


def test_tracebacks_of_beam_s_threads_go_to_the_file_and_others_stay(monkeypatch):
    others = []
    monkeypatch.setattr(threading, "excepthook", others.append)
    hook = threading.excepthook
    own, beams = _make_failure("/home/me/app.py"), _make_failure("/lib/apache_beam/runner.py")
    with report_failures("FlinkRunner") as log:
        threading.excepthook(own)
        threading.excepthook(beams)
        text = log.read()
    assert others == [own]
    assert "apache_beam/runner.py" in text
    assert "ValueError: lost" in text
    assert threading.excepthook is hook


def test_what_an_engine_says_is_in_the_file_and_not_on_the_terminal(source, caplog):
    stream = io.StringIO()
    terminal = logging.StreamHandler(stream)
    logging.getLogger().addHandler(terminal)

    def run(pipeline: object) -> None:
        logging.getLogger("mine").error("a line of the program")
        raise RuntimeError("a line of the engine")

    try:
        _, text = _fail(StandIn(run=run), source)
    finally:
        logging.getLogger().removeHandler(terminal)
    assert stream.getvalue() == "a line of the program\n"
    assert "RuntimeError: a line of the engine" in text
    assert terminal.filters == []


def test_a_script_without_logging_sees_our_warnings_and_the_file_has_none(capsys, monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    with report_failures("FlinkRunner") as log:
        progress.warn("Failure 1 of the job: The engine lost a worker.")
        assert log.read() == ""
    assert capsys.readouterr().err == "Failure 1 of the job: The engine lost a worker.\n"
    assert logging.getLogger("darkroom").handlers == []


def test_an_error_of_grpc_is_told_by_its_details(source):
    class Gone(Exception):  # noqa: N818
        def details(self) -> str:
            return "Stream removed"

    def run() -> None:
        with report_failures("PrismRunner"):
            raise Gone("<_Rendezvous of RPC that terminated with:\n\tstatus = ABORTED>")

    with pytest.raises(DarkroomError, match=r"PrismRunner failed: Gone: Stream removed\.") as stop:
        run()
    os.unlink(re.findall(r"as this client saw it is in (\S+\.log)\.", stop.value.hint)[0])


@pytest.mark.parametrize("runner", ENGINES)
def test_a_failure_says_where_all_lines_are(runner):
    with pytest.raises(DarkroomError) as stop, report_failures(runner):
        raise ValueError("no")
    [log] = re.findall(r"as this client saw it is in (\S+\.log)\.", stop.value.hint)
    assert Path(log).read_text().endswith("ValueError: no\n")
    os.unlink(log)
