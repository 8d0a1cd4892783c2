"""Attempts that left files in an output, or whose job still runs."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import pytest

import darkroom
from darkroom.cli import main
from darkroom.conversion.beam import run
from darkroom.conversion.output.attempts import Record
from darkroom.conversion.shards.shard import write_shard
from darkroom.conversion.shards.writing import WriteJob
from darkroom.errors import OutputError
from darkroom.options.conversion import ConversionOptions
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
        patch.setattr(run, "run_job", write_one)
        patch.setattr(WriteJob, "run_here", write_one)
        with pytest.raises(KeyboardInterrupt):
            darkroom.convert(source, output, num_shards=3, columns=COLUMNS, **options)


@pytest.mark.parametrize("who", ["a job", "a process", "a record of others"])
def test_a_run_names_the_job_that_it_takes_an_output_from(
    source, tmp_path, monkeypatch, capsys, who
):
    """A job may outlive its client. On a disk the lock tells whether a process is there."""
    out = f"{tmp_path}/out"
    job_options = {"runner": "PortableRunner", "options": EMBEDDED} if who == "a job" else {}
    _interrupt(source, out, monkeypatch, **job_options)
    (token,) = os.listdir(f"{out}/.attempt")
    path = Path(out, ".attempt", token, "attempt.json")
    # As 0.2 wrote it, too.
    path.write_text(json.dumps({**json.loads(path.read_text()), "engine": ""}))
    if who == "a record of others":
        path.write_bytes(Record("../../x", job="x").to_bytes())
    columns = json.dumps(COLUMNS)
    assert main(["convert", source, "--output-dir", out, "--columns", columns]) == 0
    said = capsys.readouterr().err
    told = (
        f"this run takes {out} from attempt {token} (process {os.getpid()} on "
        f"{socket.gethostname()}, job darkroom-{token} of PortableRunner), which fails"
    )
    assert (told in said) == ("this run takes" in said) == (who == "a job")
    assert darkroom.verify(out).findings == ()


def test_a_run_whose_output_was_taken_fails(source, tmp_path, monkeypatch):
    def lose_output(write: WriteJob, *_: object) -> None:
        monkeypatch.undo()
        shutil.move(f"{tmp_path}/out/.attempt", tmp_path / "taken")
        write_shard(write.tasks[0], None, KeptTables())

    monkeypatch.setattr(WriteJob, "run_here", lose_output)
    with pytest.raises(OutputError, match=f"ends, because a later run has taken {tmp_path}/out"):
        darkroom.convert(source, tmp_path / "out", columns=COLUMNS)
