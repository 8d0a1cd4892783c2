"""Attempts that left files in an output, as `darkroom attempts` lists and removes them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import darkroom
from darkroom import storage
from darkroom.cli import main
from darkroom.conversion import job
from darkroom.conversion.output.attempts import Record
from darkroom.conversion.shards.shard import write_shard
from darkroom.conversion.shards.writing import WriteJob
from darkroom.errors import OutputError
from darkroom.options.conversion import ConversionOptions
from darkroom.storage.locks import FolderLock
from darkroom.storage.parquet import KeptTables

EMBEDDED = ConversionOptions(beam_options={"job_endpoint": "embed"})
COLUMNS = {"split": "split", "label": "string_label", "x": "integer"}


@pytest.fixture
def source(tmp_path: Path) -> str:
    rows = "".join(f"TRAIN,{'ab'[n % 2]},{n}\n" for n in range(12))
    (tmp_path / "rows.csv").write_text(f"split,label,x\n{rows}")
    return str(tmp_path / "rows.csv")


def _interrupt(source: str, output: str, monkeypatch: pytest.MonkeyPatch, **options) -> None:
    """Converts until one shard of three is finished; then the client ends."""

    def write_one(write: WriteJob, *_: object) -> None:
        write_shard(write.tasks[0], None, KeptTables())
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job, "run_job", write_one)
        with pytest.raises(KeyboardInterrupt):
            darkroom.convert(source, output, num_shards=3, columns=COLUMNS, **options)


def _end_process(output: str) -> None:
    """Makes the record of an attempt that of a process that has ended."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (path,) = Path(output).glob(".attempt/*/attempt.json")
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "process": ended.pid}))


def _list(output: str, capsys: pytest.CaptureFixture, *more: str) -> str:
    assert main(["attempts", output, *more]) == 0
    return capsys.readouterr().out


def test_an_output_without_attempts(source, tmp_path, capsys):
    darkroom.convert(source, f"{tmp_path}/out", columns=COLUMNS)
    assert _list(f"{tmp_path}/out", capsys) == f"No run has left anything in {tmp_path}/out.\n"
    assert main(["attempts", f"{tmp_path}/nothing"]) == 2
    assert f"There is no folder {tmp_path}/nothing." in capsys.readouterr().err


def test_a_client_that_runs_and_one_that_has_ended(source, tmp_path, monkeypatch, capsys):
    out = f"{tmp_path}/out"
    _interrupt(source, out, monkeypatch)
    (token,) = os.listdir(f"{out}/.attempt")
    said = _list(out, capsys, "--remove")
    assert said.splitlines()[0].startswith(f"{token}  running     1 finished shard; process ")
    assert "Removed: 0 attempts, because none is known to have ended." in said
    assert os.path.exists(f"{out}/Split-train")

    _end_process(out)
    said = _list(out, capsys)
    assert said.splitlines()[0].startswith(f"{token}  ended       1 finished shard; process ")
    assert said.splitlines()[1:] == [
        "To resume, run the same command again: 1 finished shard is kept.",
        f"Or delete ended attempts: darkroom attempts {out} --remove",
    ]
    mine = Path(out, "Split-train/notes.txt")
    mine.write_text("mine")
    assert "Removed: 1 attempt." in _list(out, capsys, "--remove")
    assert [path for path in Path(out).rglob("*") if path.is_file()] == [mine]


def test_the_files_of_a_committed_dataset_stay(source, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    _interrupt(source, str(out), monkeypatch)
    shutil.copytree(out / ".attempt", tmp_path / "attempt")
    darkroom.convert(source, out, num_shards=3, columns=COLUMNS)
    # As if the run had been killed after its commit.
    shutil.copytree(tmp_path / "attempt", out / ".attempt")
    assert "ended       1 finished shard; its dataset is that of the output" in _list(
        str(out), capsys, "--remove"
    )
    assert not (out / ".attempt").exists()
    assert darkroom.verify(out).findings == ()


def test_a_lock_is_told_from_one_that_locks_nothing(source, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    _interrupt(source, str(out), monkeypatch)
    with FolderLock(str(out)):
        assert f"{out} is locked by process {os.getpid()} on " in _list(str(out), capsys)
        assert main(["attempts", str(out), "--remove"]) == OutputError.exit_code
        assert f"{out} is being written by process" in capsys.readouterr().err
    (out / ".darkroom.lock").write_text("process 1 on another")
    said = _list(str(out), capsys)
    assert f"{out} has a lock that process 1 on another left behind; it locks nothing." in said


@pytest.mark.parametrize(("client", "state"), [("another", "running"), ("this one", "unknown")])
def test_a_job_elsewhere_may_outlive_its_client(
    source, tmp_path, monkeypatch, capsys, client, state
):
    out = f"{tmp_path}/out"
    _interrupt(source, out, monkeypatch, runner="PortableRunner", options=EMBEDDED)
    (token,) = os.listdir(f"{out}/.attempt")
    if client == "another":
        path = Path(out, ".attempt", token, "attempt.json")
        # As 0.2 wrote it, too.
        record = {**json.loads(path.read_text()), "process": os.getppid(), "engine": ""}
        path.write_text(json.dumps(record))
    (found,) = json.loads(_list(out, capsys, "--json", "--remove"))["attempts"]
    assert (found["token"], found["state"], found["shards"]) == (token, state, 1)
    assert found["job_name"] == f"darkroom-{token}"
    assert found["why"].startswith(f"job darkroom-{token} on PortableRunner ")
    assert not found["resumes"]
    # Nothing was removed, and a run that takes the output resumes.
    assert main(["convert", source, "--output-dir", out, "--columns", json.dumps(COLUMNS)]) == 0
    assert darkroom.verify(out).findings == ()


def test_a_record_that_is_not_ours_says_nothing(source, tmp_path, monkeypatch, capsys):
    out = f"{tmp_path}/out"
    _interrupt(source, out, monkeypatch)
    (path,) = Path(out).glob(".attempt/*/attempt.json")
    for data in (b"{", b'{"darkroom_attempt": 2}', Record("../../x").to_bytes()):
        path.write_bytes(data)
        said = _list(out, capsys, "--remove")
        assert "unknown     1 finished shard; it has no record of its client" in said
        assert "Removed: 0 attempts, because none is known to have ended." in said
        assert storage.exists(f"{out}/Split-train")


def test_a_run_whose_output_was_taken_fails(source, tmp_path, monkeypatch):
    def lose_output(write: WriteJob, *_: object) -> None:
        monkeypatch.undo()
        shutil.move(f"{tmp_path}/out/.attempt", tmp_path / "taken")
        write_shard(write.tasks[0], None, KeptTables())

    monkeypatch.setattr(job, "run_job", lose_output)
    with pytest.raises(OutputError, match=f"A later run has taken {tmp_path}/out, so attempt"):
        darkroom.convert(source, tmp_path / "out", columns=COLUMNS)
