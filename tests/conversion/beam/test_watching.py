"""What the client shows of a job that runs elsewhere. No test waits: each looks by itself."""

from __future__ import annotations

import io
import json
import logging
import threading
from pathlib import Path

import pytest
from tests.pictures import write_label_folders

from darkroom import storage
from darkroom.conversion.beam import transforms, watching
from darkroom.conversion.beam.engine_log import EngineLog
from darkroom.conversion.beam.transforms import WriteDataset
from darkroom.conversion.beam.watching import Watch, watch_job
from darkroom.conversion.convert import convert
from darkroom.conversion.engines.flink import FlinkFailure, FlinkStatus
from darkroom.conversion.engines.waiting import describe_wait
from darkroom.errors import STORE_IS_DOWN, StorageError
from darkroom.options.conversion import ConversionOptions
from darkroom.runtime import progress
from darkroom.runtime.display import PlainProgress

LOG = "The log of the engine as this client saw it is in"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines(clock):
    """What somebody without a terminal reads."""
    stream = io.StringIO()
    with progress.use(PlainProgress(stream, clock=clock)), progress.step("Converting"):
        yield lambda: stream.getvalue().splitlines()


def _leave(write: WriteDataset, *names: str) -> None:
    for name in names:
        Path(write.tasks[0].work, name).touch()


def test_finished_shards_are_shown_with_their_rows_and_their_rate(write, clock, lines):
    _leave(write, "shard-00000.json")
    watch = Watch(write, state="RUNNING", clock=clock)
    clock.now = 5
    _leave(write, "shard-00001.begun", "shard-00001.part", "shard-00001.rejects.parquet")
    watch.look()
    clock.now = 10
    _leave(write, "shard-00001.json", ".darkroom-part-shard-00002.json", "journal.json")
    watch.look()
    assert lines() == [
        "Converting 10/60 rows, 1 of 3 shards",
        "Converting 30/60 rows 4.0/s, 2 of 3 shards",
    ]


def test_what_does_not_change_is_shown_each_30_seconds(write, clock, lines):
    watch = Watch(write, state="RUNNING", clock=clock)
    _leave(write, "shard-00000.begun")
    for now in range(5, 100, 5):
        clock.now = float(now)
        watch.look()
    assert lines() == ["Converting 0 of 3 shards"] * 4


def test_the_end_is_shown_though_the_commit_removes_the_reports(write, clock, lines):
    watch = Watch(write, state="RUNNING", clock=clock)
    clock.now = 5
    _leave(write, "shard-00000.begun", "shard-00000.json")
    watch.look()
    clock.now = 10
    for path in Path(write.tasks[0].work).iterdir():
        path.unlink()
    watch.look()
    assert lines() == ["Converting 10/60 rows 2.0/s, 1 of 3 shards"]
    clock.now = 20
    watch.finish()
    assert lines()[1:] == ["Converting 60/60 rows 3.0/s, 3 of 3 shards"]


def test_a_worker_in_this_process_shows_its_rows_alone(write, clock, lines, monkeypatch):
    watch = Watch(write, state="RUNNING", clock=clock)
    monkeypatch.setitem(transforms._done, write.run, 7)
    clock.now = 50
    _leave(write, "shard-00000.json")
    watch.look()
    watch.finish()
    assert lines() == []


def test_the_log_gets_a_line_each_30_seconds(write, clock, caplog):
    caplog.set_level(logging.INFO)
    watch = Watch(write, state="RUNNING", clock=clock)
    _leave(write, "shard-00000.begun", "shard-00000.json")
    for now in range(5, 70, 5):
        clock.now = float(now)
        watch.look()
    assert [record.getMessage() for record in caplog.records] == [
        "Converting: 1 of 3 shards, 10 of 60 rows, 0.3/s",
        "Converting: 1 of 3 shards, 10 of 60 rows, 0.2/s",
    ]


@pytest.mark.parametrize("error", [OSError, ValueError, RuntimeError])
def test_a_listing_that_fails_is_ignored(write, clock, lines, monkeypatch, error):
    watch = Watch(write, state="RUNNING", clock=clock)
    _leave(write, "shard-00000.begun", "shard-00000.json")
    watch.look()
    clock.now = 5

    def fail(path: str) -> list[str]:
        raise error("the store is slow")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "list_folder", fail)
        Watch(write, clock=clock)
        watch.look()
    _leave(write, "shard-00001.json")
    watch.look()
    assert lines() == ["Converting 30/60 rows 6.0/s, 2 of 3 shards"]


def test_each_look_is_one_listing(write, clock, monkeypatch):
    listed = []
    watch = Watch(write, clock=clock)
    monkeypatch.setattr(storage, "list_folder", lambda path: listed.append(path) or [])
    watch.look()
    assert listed == [write.tasks[0].work]


def test_only_slow_listings_make_looks_rarer(write, clock, monkeypatch):
    """An engine that answers slowly does not: a short job would be over before the next look."""
    monkeypatch.setattr(watching.time, "monotonic", clock)
    pauses, slow = [], {"listing": 0.0, "engine": 2.0}

    class Stop:
        def wait(self, pause: float) -> bool:
            pauses.append(pause)
            slow["listing"] = 2.0 if len(pauses) == 2 else 0.0
            return len(pauses) == 4

    def answer(what: str) -> list[str]:
        clock.now += slow[what]
        return []

    monkeypatch.setattr(storage, "list_folder", lambda path: answer("listing"))
    watch = Watch(write, clock=clock, list_failures=lambda: answer("engine"))
    watch.follow(Stop())
    assert pauses == [5, 5, 20, 5]


def test_a_wait_says_for_what_after_half_a_minute_and_then_less_often(write, clock, lines):
    watch = Watch(write, clock=clock)
    for now in range(5, 300, 5):
        clock.now = float(now)
        watch.look()
    assert lines() == [
        f"For {seconds} s the engine has not taken the job." for seconds in (30, 60, 120, 240)
    ]


def _fail(*texts: str) -> list[FlinkFailure]:
    return [FlinkFailure(time, text) for time, text in enumerate(texts, 1)]


def test_what_an_engine_survives_is_told_once(write, clock, lines, tmp_path):
    failures, log = [], tmp_path / "engine.log"
    log.write_text("")
    watch = Watch(
        write,
        EngineLog(str(log)),
        "RUNNING",
        lambda: pytest.fail("ended"),
        clock,
        lambda: failures,
    )
    _leave(write, "shard-00000.begun")
    lost = "JobMasterException: TaskManager with id 10.0.0.{}:1-abc is no longer reachable."
    failures += _fail(lost.format(1))
    watch.look()
    watch.look()
    failures += [FlinkFailure(2, lost.format(2))]
    watch.look()
    failures += [FlinkFailure(3, "java.lang.OutOfMemoryError: Java heap space")]
    watch.look()
    said = [line for line in lines() if line.startswith("Failure")]
    assert said[0].startswith(
        "Failure 1 of the job: The engine lost a worker: JobMasterException: TaskManager with id "
        "10.0.0.1:1-abc is no longer reachable. With a restart strategy it goes on by itself."
    )
    assert said[0].endswith(f"{LOG} {log}.")
    assert said[1] == "Failure 2 of the job: the same again."
    assert said[2].startswith("Failure 3 of the job: A process of the engine had too little mem")
    assert len(said) == 3


OURS = "darkroom.errors.{}: s3://a is {}. Do this. [while running 'WriteShards']"
CREDENTIALS = (
    "Workers take a store's address and credentials from their own environment: check these first. "
    "If they are right, run again when the store is back."
)


@pytest.mark.parametrize(
    ("said", "ended"),
    [
        (["ModuleNotFoundError: No module named 'darkroom'"], [1]),
        (["java.io.IOException: error=2, No such file or directory"], [1]),
        ([OURS.format("DataError", "lost"), OURS.format("DataError", "lost")], [2]),
        ([OURS.format("DataError", "lost"), OURS.format("DataError", "other")], []),
        ([OURS.format("TransientStorageError", "down")] * 5, []),
        (["java.lang.OutOfMemoryError: Java heap space"] * 5, []),
        (["somebody pulled the plug"] * 5, []),
    ],
)
def test_a_job_that_would_only_fail_again_is_ended(write, clock, said, ended):
    failures, ends = [], []
    cancel = lambda: ends.append(len(failures))  # noqa: E731
    watch = Watch(write, None, "RUNNING", cancel, clock, lambda: failures)
    for each in _fail(*said):
        failures.append(each)
        watch.look()
    assert ends == ended


def test_a_failure_between_finished_shards_is_not_one_that_returns(write, clock):
    failures = _fail(OURS.format("DataError", "lost"))
    watch = Watch(write, None, "RUNNING", lambda: pytest.fail("ended"), clock, lambda: failures)
    watch.look()
    _leave(write, "shard-00001.json")
    watch.look()
    failures += [FlinkFailure(9, OURS.format("DataError", "lost"))]
    watch.look()


def test_a_worker_that_cannot_start_ends_no_job_that_others_work_for(write, clock):
    failures = _fail("java.io.IOException: error=2, No such file or directory")
    watch = Watch(write, None, "RUNNING", lambda: pytest.fail("ended"), clock, lambda: failures)
    _leave(write, "shard-00001.begun")
    watch.look()


def test_a_store_that_fails_for_workers_alone_has_a_hint(write, clock, lines):
    said = OURS.format("TransientStorageError", "down").replace(
        "Do this.", f"Do this. {STORE_IS_DOWN}"
    )
    failures = _fail(said)
    Watch(write, clock=clock, list_failures=lambda: failures).look()
    assert lines() == [f"Failure 1 of the job: s3://a is down. Do this. {CREDENTIALS}"]


def test_workers_that_see_no_attempt_do_not_see_the_output(write, clock, lines, tmp_path):
    """A later run would have taken the attempt away from the client, too."""
    token = write.tasks[0].folders.token
    said = f"darkroom.errors.OutputError: A later run has taken /out, so attempt {token} ends. See"
    failures = _fail(said)
    watch = Watch(write, clock=clock, list_failures=lambda: failures)
    watch.look()
    (tmp_path / ".attempt" / token).rename(tmp_path / "taken")
    failures += [FlinkFailure(2, said)]
    watch.look()
    assert lines()[0].startswith("Failure 1 of the job: The engine's workers do not see the outp")
    assert lines()[1].startswith("Failure 2 of the job: A later run has taken /out, so attempt ")


def test_an_engine_that_cannot_be_asked_does_not_stop_the_watch(write, clock, lines):
    def fail() -> list[FlinkFailure]:
        raise StorageError("Flink is down.")

    _leave(write, "shard-00000.begun")
    Watch(write, clock=clock, list_failures=fail).look()
    clock.now = 5
    Watch(write, clock=clock, list_failures=fail).look()
    assert lines() == ["Converting 0 of 3 shards"]


def test_the_wait_after_a_failure_is_not_one_for_the_first_worker(write, clock, lines):
    failures = _fail("java.net.ConnectException: Connection refused")
    watch = Watch(write, state="RUNNING", clock=clock, list_failures=lambda: failures)
    clock.now = 29
    watch.look()
    clock.now = 60
    watch.look()
    assert lines()[0].startswith("Failure 1 of the job: The engine, its job server or its work")
    assert lines()[1] == "For 31 s the engine has not started the job again."


GOOD = FlinkStatus("RUNNING", 8, 4, 4, 0, 2)
LOST = GOOD._replace(state="RESTARTING", running=0, slots=2, free=2, task_managers=1)
FEW = (
    "The job needs 4 slots, and 1 task manager of Flink has 2. Start another one, or run this "
    "again with parallelism=2."
)


def _watch(write: WriteDataset, clock: Clock, failures: list[FlinkFailure]) -> tuple[Watch, list]:
    """A job that has begun to run, and what Flink says of it, which the test changes."""
    said = [GOOD]
    watch = Watch(
        write,
        state="RUNNING",
        clock=clock,
        list_failures=lambda: failures,
        read_status=lambda: said[0],
    )
    _leave(write, "shard-00000.begun")
    watch.look()
    return watch, said


def test_slots_that_a_failure_took_are_told_at_once(write, clock, lines):
    failures: list[FlinkFailure] = []
    watch, said = _watch(write, clock, failures)
    failures += _fail("FlinkExpectedException: The TaskExecutor is shutting down.")
    said[0] = LOST
    clock.now = 5
    watch.look()
    watch.look()
    clock.now = 40
    watch.look()
    assert lines()[-3].startswith("Failure 1 of the job: The engine lost a worker: FlinkExpected")
    assert lines()[-2:] == [FEW, f"For 35 s the job waits for slots. {FEW}"]
    said[0] = GOOD
    clock.now = 45
    watch.look()
    clock.now = 80
    watch.look()
    assert lines()[-1] == "Converting 0 of 3 shards"


def test_a_job_that_stops_without_a_failure_says_for_what_it_waits(write, clock, lines):
    watch, said = _watch(write, clock, [])
    clock.now = 31
    watch.look()
    said[0] = LOST
    clock.now = 62
    watch.look()
    assert lines() == [
        *["Converting 0 of 3 shards"] * 2,
        f"For 62 s the job waits for slots. {FEW}",
    ]


def test_a_job_whose_tasks_run_is_not_said_to_wait(write, clock, lines):
    watch, _ = _watch(write, clock, [])
    for now in range(5, 300, 5):
        clock.now = float(now)
        watch.look()
    assert set(lines()) == {"Converting 0 of 3 shards"}


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (LOST._replace(slots=4, free=4), "the engine has not started the job again: it is RESTART"),
        (
            LOST._replace(slots=4, others=("a", "b")),
            "the job waits for slots. It needs 4, and 2 of "
            "the 4 slots of Flink are free. Other jobs run there: a, b.",
        ),
        (
            LOST._replace(slots=0, task_managers=0),
            "the job waits for slots. The job needs 4 slots, "
            "and Flink has no task manager. Start one.",
        ),
        (GOOD, "the tasks run again, and no worker has begun a shard."),
        (None, "the engine has not started the job again."),
    ],
)
def test_a_wait_after_a_failure_says_what_flink_says(status, said):
    told = describe_wait("60 s", "RUNNING", status, has_failed=True)
    assert told.startswith(f"For 60 s {said}")


def test_failures_of_tasks_that_run_are_not_broken_by_a_wait(write, clock, lines):
    failures: list[FlinkFailure] = []
    watch = Watch(
        write, None, "RUNNING", lambda: None, clock, lambda: failures, read_status=lambda: GOOD
    )
    for now in range(5, 176, 5):
        clock.now = float(now)
        if now % 35 == 0:
            failures.append(FlinkFailure(now, "java.io.IOException: the store is down"))
        watch.look()
    (wait,) = (line for line in lines() if not line.startswith("Failure"))
    assert wait.startswith("For 30 s no worker of the engine has begun.")


def test_at_first_the_engine_is_waited_for_and_kept_shards_are_told(write, clock, lines):
    _leave(write, "shard-00001.json")
    clock.now = 5
    Watch(write, clock=clock).begin()
    assert lines() == [
        "Converting 20/60 rows, waits for the engine",
        "An earlier run has finished 1 of 3 shards: they are kept.",
    ]


def test_each_state_of_the_job_is_a_wait_of_its_own(write, clock, lines):
    watch = Watch(write, clock=clock)
    clock.now = 29
    watch.look()
    watch.note_state("STARTING")
    clock.now = 60
    watch.look()
    watch.note_state("RUNNING")
    clock.now = 89
    watch.look()
    clock.now = 91
    watch.look()
    said = lines()
    assert said[0] == "For 31 s the engine has not started the job: it is STARTING."
    assert said[1].startswith("For 31 s no worker of the engine has begun. Check that it has free ")
    assert "task managers, worker pools" in said[1]
    assert len(said) == 2


@pytest.mark.parametrize("sign", ["shard-00001.begun", "shard-00001.json"])
def test_a_worker_that_has_begun_is_not_waited_for(write, clock, lines, sign):
    _leave(write, "shard-00000.json")
    watch = Watch(write, state="RUNNING", clock=clock)
    clock.now = 20
    _leave(write, sign)
    watch.look()
    clock.now = 90
    watch.look()
    assert not [line for line in lines() if "no worker" in line]


def test_shards_of_an_earlier_run_say_nothing_of_a_worker(write, clock, lines):
    _leave(write, "shard-00000.json")
    watch = Watch(write, state="RUNNING", clock=clock)
    clock.now = 60
    watch.look()
    assert lines()[0].startswith("For 60 s no worker of the engine has begun.")


def test_the_wait_for_a_worker_tells_what_the_engine_says(write, clock, lines, tmp_path):
    log = tmp_path / "engine.log"
    watch = Watch(write, EngineLog(str(log)), state="RUNNING", clock=clock)
    clock.now = 30
    watch.look()  # there is no file
    log.write_text("ModuleNotFoundError: No module named 'darkroom'\n")
    clock.now = 60
    watch.look()
    assert lines()[0].endswith(f"environment_config names. {LOG} {log}.")
    assert (
        " A worker of the engine does not have darkroom: ModuleNotFoundError: No module named "
        in lines()[1]
    )


SAID = {
    "ModuleNotFoundError: No module named 'darkroom'": True,
    "/usr/bin/python: No module named apache_beam": True,
    "java.lang.IllegalStateException: Process died with exit code 1": True,
    '{"level":"ERROR","msg":"process failed while running","error":"exit status 1"}': True,
    "panic: unable to start sdk worker localhost:1": True,
    "Initial job has not accepted any resources; check your cluster UI": False,
    "java.net.ConnectException: Connection refused": False,
    "java.lang.OutOfMemoryError: Java heap space": False,
    "Starting the job.": False,
}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("state", ["STARTING", "RUNNING"])
def test_only_a_job_whose_workers_cannot_begin_is_ended(write, clock, tmp_path, said, state):
    log, ended = tmp_path / "engine.log", []
    log.write_text(f"2026-01-02 03:04:05,678 INFO {said}\n")
    watch = Watch(write, EngineLog(str(log)), state, lambda: ended.append(clock.now), clock)
    for now in range(0, 60, 5):
        clock.now = float(now)
        watch.look()
    assert bool(ended) == (SAID[said] and state == "RUNNING")
    assert ended in ([], [30.0])


def _refuse(write: WriteDataset, data: object) -> None:
    Path(write.tasks[0].work, "refused.json").write_text(json.dumps(data))


def test_a_worker_that_refuses_ends_the_job(write, clock):
    ended = []
    watch = Watch(write, cancel=lambda: ended.append(1), clock=clock)
    _refuse(write, {"run": write.run, "message": "A worker has others.", "hint": "Install them."})
    watch.look()
    watch.look()
    assert str(watch.refusal) == "A worker has others. Install them."
    assert ended == [1]


@pytest.mark.parametrize("data", [{"run": "of an earlier client", "message": ""}, {}, [], 5, "no"])
def test_what_another_client_is_told_ends_nothing(write, clock, data):
    watch = Watch(write, cancel=lambda: pytest.fail("ended"), clock=clock)
    _refuse(write, data)
    watch.look()
    assert watch.refusal is None


def test_an_engine_that_does_not_end_the_job_does_not_stop_the_watch(write, clock):
    def fail() -> None:
        raise RuntimeError("not supported")

    watch = Watch(write, cancel=fail, clock=clock)
    _refuse(write, {"run": write.run, "message": "A worker has others.", "hint": ""})
    watch.look()
    assert watch.refusal


def test_what_beam_logs_of_a_job_is_its_state(write, clock, monkeypatch, caplog):
    states = []
    monkeypatch.setattr(Watch, "note_state", lambda self, state: states.append(state))
    logger = logging.getLogger("apache_beam.runners.portability.portable_runner")
    caplog.set_level(logging.INFO, logger.name)
    handlers = list(logger.handlers)
    with watch_job(write):
        logger.warning("Job state changed to %s", "RUNNING")
        logger.warning("Waiting for grpc channel to be ready")
        assert "darkroom-watch" in [thread.name for thread in threading.enumerate()]
    assert states == ["RUNNING"]
    assert logger.handlers == handlers
    assert "darkroom-watch" not in [thread.name for thread in threading.enumerate()]


def test_nothing_is_shown_as_done_of_a_job_that_failed(write, lines):
    with pytest.raises(RuntimeError, match="lost"), watch_job(write):
        raise RuntimeError("lost")
    assert lines() == []


def _interrupt(write: WriteDataset) -> None:
    with progress.step("Converting"), watch_job(write):
        _leave(write, "shard-00001.json")
        raise KeyboardInterrupt


def test_a_job_that_is_interrupted_shows_what_it_has_finished(write):
    stream = io.StringIO()
    with progress.use(PlainProgress(stream)), pytest.raises(KeyboardInterrupt):
        _interrupt(write)
    assert "20/60 rows" in stream.getvalue().splitlines()[-1]


@pytest.mark.slow
def test_workers_of_an_engine_leave_a_sign_and_local_ones_none(tmp_path, monkeypatch):
    write_label_folders(tmp_path / "src", 3)
    signs = {}
    real = storage.write_bytes

    def write_bytes(path: str, data: bytes, part: str | None = None) -> None:
        if path.endswith(".begun"):
            signs[path] = json.loads(data)
        real(path, data, part)

    monkeypatch.setattr(storage, "write_bytes", write_bytes)
    convert(tmp_path / "src", tmp_path / "local")
    assert signs == {}
    options = {"job_endpoint": "embed", "environment_type": "LOOPBACK"}
    convert(
        tmp_path / "src",
        tmp_path / "out",
        runner="PortableRunner",
        options=ConversionOptions(beam_options=options),
    )
    assert len(signs) >= 1
    for path, sign in signs.items():
        assert path.startswith(f"{tmp_path}/out/.attempt/")
        assert {"host", "process", "darkroom", "Python", "Beam", "pyarrow"} <= sign.keys()
    files = [
        sorted(each.name for each in (tmp_path / name).rglob("*")) for name in ("local", "out")
    ]
    assert files[0] == files[1]
