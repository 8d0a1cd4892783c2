"""Shards that other processes write: the same bytes, clear errors, and no process that stays."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from darkroom.conversion import job
from darkroom.conversion.convert import convert
from darkroom.conversion.shards import shard, writer_process, writing
from darkroom.conversion.shards.writer_process import WriterProcess
from darkroom.dataset.index import read_index
from darkroom.errors import DataError, StorageError
from darkroom.runtime import child

from ..trees import read_files

pytestmark = pytest.mark.heavy

CORES = 2


@pytest.fixture
def starts(monkeypatch) -> list[int]:
    """Has another process write a part of the shards; returns the shards that it was given."""
    given: list[int] = []
    begun = threading.Event()
    write, write_here = WriterProcess.write, writing.write_shard

    def write_there(self, task, tick):
        given.append(task.range.number)
        begun.set()
        return write(self, task, tick)

    def wait_and_write(*arguments):
        assert begun.wait(60)
        return write_here(*arguments)

    for name in ("writing", "writer_process"):
        monkeypatch.setattr(
            f"darkroom.conversion.shards.{name}.count_images_at_once", lambda: CORES
        )
    monkeypatch.setattr(writer_process, "_MIN_PROCESS_ROWS", 1)
    monkeypatch.setattr(writer_process, "_ROWS_EACH", 1)
    monkeypatch.setattr(writing, "write_shard", wait_and_write)
    monkeypatch.setattr(WriterProcess, "write", write_there)
    return given


def do_instead(monkeypatch, fault: str) -> None:
    """Makes the other processes do something else with a shard."""
    program = (
        "import os, sys, time\n"
        "from darkroom.conversion.shards import writer_child\n"
        "from darkroom.errors import DataError\n"
        "from darkroom.images.memory import Need\n"
        f"def write_shard(task, readers, *_):\n    {fault}\n"
        "writer_child.write_shard = write_shard\n"
    )
    changed = child.PROGRAM.replace("importlib.im", f"{program}importlib.im")
    monkeypatch.setattr(child, "PROGRAM", changed)


def run(images, folder: Path) -> None:
    convert(images.csv, folder, num_shards=4, max_rejects=0.5)


def has_ended(pid: int) -> bool:
    """Waits for the end of a process."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_two_processes_write_what_one_writes(faulty_set, tmp_path, starts, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, tmp_path])  # which is not text
    run(faulty_set, tmp_path / "two")
    assert starts
    monkeypatch.undo()
    run(faulty_set, tmp_path / "one")
    one = read_files(tmp_path / "one")
    assert read_files(tmp_path / "two") == one
    assert any(name.startswith("Split-") for name in one)


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("raise OSError(28, 'No space left on device')", StorageError, "No space left"),
        ("os.kill(os.getpid(), 9)", StorageError, "A process that writes shards died of SIGKILL"),
        ("os._exit(3)", StorageError, "ended with exit code 3"),
        ("raise LookupError('a defect')", LookupError, "a defect"),
    ],
)
def test_the_end_of_another_process_ends_the_run(
    jpeg_set, tmp_path, starts, monkeypatch, fault, kind, words
):
    do_instead(monkeypatch, fault)
    with pytest.raises(kind, match=words) as error:
        run(jpeg_set, tmp_path / "out")
    assert starts
    if kind is LookupError:
        assert "write_shard" in str(error.value.__cause__)
    assert not (tmp_path / "out" / "dataset.json").exists()
    monkeypatch.undo()
    run(jpeg_set, tmp_path / "out")
    assert (tmp_path / "out" / "dataset.json").exists()


def test_the_memory_of_a_killed_process_is_not_waited_for(jpeg_set, tmp_path, starts, monkeypatch):
    hold = "readers._preparer._budget.reserve(Need(1 << 30, 1 << 30))"
    do_instead(monkeypatch, f"with {hold}: os.kill(os.getpid(), 9)")
    killed = threading.Event()
    write_there, write_here = WriterProcess.write, writing.write_shard

    def note_end(*arguments):
        try:
            return write_there(*arguments)
        finally:
            killed.set()

    def wait_and_write(*arguments):
        assert killed.wait(60)
        return write_here(*arguments)

    monkeypatch.setattr(WriterProcess, "write", note_end)
    monkeypatch.setattr(writing, "write_shard", wait_and_write)
    with pytest.raises(StorageError, match="SIGKILL"):
        run(jpeg_set, tmp_path / "out")
    # Python 3.12.1 ends here if the error has a view of what was sent.
    gc.collect()


def test_shards_that_wait_when_one_fails_are_not_written_without_images(
    jpeg_set, tmp_path, monkeypatch
):
    begun: list[int] = []

    def fail_first(task, readers, *arguments):
        begun.append(task.range.number)
        if len(begun) == 1:
            raise OSError(28, "No space left on device")
        assert readers is None or readers._stopped.wait(60)
        return shard.write_shard(task, readers, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(writing, "count_images_at_once", lambda: CORES)
        patch.setattr(writing, "write_shard", fail_first)
        with pytest.raises(StorageError, match="No space left"):
            run(jpeg_set, tmp_path / "out")
    assert len(begun) > CORES + 1
    run(jpeg_set, tmp_path / "out")
    hashes = read_index(str(tmp_path / "out" / "index"))["sha256"]
    assert (len(hashes), hashes.null_count) == (len(jpeg_set.rows), 0)


@pytest.fixture
def children(starts, monkeypatch) -> list[subprocess.Popen]:
    """Returns the other processes that have started."""
    started: list[subprocess.Popen] = []
    start = writer_process.start_child

    def start_and_note(*arguments, **options):
        process, connection = start(*arguments, **options)
        started.append(process)
        return process, connection

    monkeypatch.setattr(writer_process, "start_child", start_and_note)
    return started


def test_processes_start_while_the_source_is_read(jpeg_set, tmp_path, children, monkeypatch):
    running: list[int | None] = []
    write_manifest = job.writer.write_manifest

    def write_and_look(*arguments, **options):
        manifest = write_manifest(*arguments, **options)
        running.extend(child.poll() for child in children)
        return manifest

    monkeypatch.setattr(job.writer, "write_manifest", write_and_look)
    run(jpeg_set, tmp_path / "out")
    assert running == [None]
    # The dataset is there, so that nothing is written.
    run(jpeg_set, tmp_path / "out")
    assert len(children) == 1
    assert children[0].poll() is not None


def test_a_source_that_cannot_be_used_leaves_no_process(jpeg_set, tmp_path, children, monkeypatch):
    for name in ("rows.BLOCK_ROWS", "chunks.CHUNK_ROWS"):
        monkeypatch.setattr(f"darkroom.manifest.{name}", 4)
    jpeg_set.add("NO_SPLIT", "00.jpg", "cat", None)
    with pytest.raises(DataError, match="NO_SPLIT"):
        run(jpeg_set, tmp_path / "out")
    assert [child.poll() is not None for child in children] == [True]


def test_a_program_that_python_cannot_start_again_needs_one_process(jpeg_set, tmp_path, starts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", "")
        patch.setattr(writing, "write_shard", shard.write_shard)
        run(jpeg_set, tmp_path / "out")
    assert not starts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_run(jpeg_set, tmp_path, number):
    script = f"""
from pathlib import Path
import pytest
from tests.conversion import test_writer_processes as tests
from darkroom.conversion.convert import convert
with pytest.MonkeyPatch.context() as patch:
    tests.starts.__wrapped__(patch)
    tests.do_instead(patch, "print(os.getpid(), file=sys.stderr, flush=True) or time.sleep(600)")
    convert({str(jpeg_set.csv)!r}, {str(tmp_path / "out")!r}, num_shards=4)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    with process:
        pid = int(process.stderr.readline())
        os.killpg(process.pid, number) if number == signal.SIGINT else process.kill()
        process.wait(60)
        assert has_ended(pid)
        assert ("KeyboardInterrupt" in process.stderr.read()) == (number == signal.SIGINT)
