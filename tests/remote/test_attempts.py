"""Attempts at an output in a store: each has a folder, and one write makes it the output's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping

import pytest

import darkroom
from darkroom import storage
from darkroom.conversion.beam import run
from darkroom.conversion.output.attempts import Attempt
from darkroom.conversion.shards.shard import write_shard
from darkroom.conversion.shards.writing import WriteJob
from darkroom.dataset.commit import read_dataset
from darkroom.errors import ChangedError, DataError, OutputError, StorageError
from darkroom.storage.parquet import KeptTables

from .conftest import BUCKET, Answer

pytestmark = pytest.mark.heavy

OUTPUT = "s3://photos/out"
TABLE = {"columns": {"split": "split", "label": "string_label", "x": "integer"}, "num_shards": 2}


@pytest.fixture
def source(s3) -> str:
    rows = "".join(f"TRAIN,{'ab'[n % 2]},{n}\n" for n in range(6))
    storage.write_bytes("s3://photos/rows.csv", f"split,label,x\n{rows}".encode())
    return "s3://photos/rows.csv"


@pytest.fixture(scope="module")
def made() -> dict[str, bytes]:
    """The objects of a dataset, once a test has converted it."""
    return {}


@pytest.fixture
def fingerprint(source, made) -> str:
    """Puts a dataset into the output, and returns its fingerprint."""
    if not made:
        darkroom.convert(source, OUTPUT, **TABLE)
        made.update({n: storage.read_bytes(f"{OUTPUT}/{n}") for n in storage.look_up_files(OUTPUT)})
    for name, data in made.items():
        storage.write_bytes(f"{OUTPUT}/{name}", data)
    return read_dataset(OUTPUT).fingerprint


def _write(write: WriteJob) -> None:
    write.commit([write_shard(task, None, KeptTables()) for task in write.tasks])


def _interrupt(
    source: str, monkeypatch: pytest.MonkeyPatch, shards: int, **options: object
) -> Callable[[], None]:
    """Begins a conversion, and ends its client after some shards; returns the rest of its job."""
    begun: list[WriteJob] = []

    def run_job(write: WriteJob, *_: object) -> None:
        begun.append(write)
        for task in write.tasks[:shards]:
            write_shard(task, None, KeptTables())
        raise KeyboardInterrupt

    # The job reads the manifest where the client's runner has it.
    options = {**TABLE, "runner": "PrismRunner", **options}
    with monkeypatch.context() as patch:
        patch.setattr(run, "run_job", run_job)
        patch.setattr(WriteJob, "run_here", run_job)
        with pytest.raises(KeyboardInterrupt):
            darkroom.convert(source, OUTPUT, **options)
    return lambda: _write(begun[0])


@pytest.mark.long
@pytest.mark.parametrize("client", ["another", "this one", "ended"])
def test_a_run_says_that_the_client_of_an_earlier_one_is_there(source, monkeypatch, client):
    """Only a process that goes on can still write, and this one's earlier run has ended."""
    _interrupt(source, monkeypatch, 1, runner="FnApiRunner")  # no job that may outlive its client
    (path,) = (path for path in storage.list_everything(OUTPUT) if path.endswith("/attempt.json"))
    path = path if storage.is_remote(path) else f"{OUTPUT}/{path}"
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    process = {"another": os.getppid(), "this one": os.getpid(), "ended": ended.pid}[client]
    record = {**json.loads(storage.read_bytes(path)), "process": process}
    storage.write_bytes(path, json.dumps(record).encode())
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    darkroom.convert(source, OUTPUT, **TABLE)
    told = [True] if client == "another" else []
    said = f"{OUTPUT} from attempt {record['token']} (process {process} on {record['host']})"
    assert [said in note for note in notes if note.startswith("Warning")] == told


def _list_data() -> list[str]:
    return [name for name in storage.list_folder(OUTPUT) if name.startswith("data-")]


def damage(path: str) -> None:
    """Flips a bit of an object in the store, which keeps the checksum."""
    from moto.s3.models import s3_backends

    [buckets] = (each["aws"].buckets for each in s3_backends.values() if each["aws"].buckets)
    key = buckets[BUCKET].keys[path.removeprefix(f"s3://{BUCKET}/")]
    data = bytearray(key.value)
    data[len(data) // 2] ^= 1
    key.value = bytes(data)


def test_what_a_store_has_damaged_is_made_again(source, monkeypatch):
    _interrupt(source, monkeypatch, shards=2)
    names = [*storage.look_up_files(OUTPUT)]
    for part in ("/index/index-00000", "/shard-00001.json"):
        [path] = (f"{OUTPUT}/{name}" for name in names if part in name)
        damage(path)
        with pytest.raises(DataError, match=f"{path} is damaged in its store"):
            storage.read_bytes(path)
    result = darkroom.convert(source, OUTPUT, **TABLE)
    assert darkroom.verify(OUTPUT).findings == ()
    # Of a finished dataset, it is found.
    path = storage.join(result.data_dir, read_dataset(OUTPUT).shards[0].file)
    damage(path)
    [found] = darkroom.verify(OUTPUT).findings
    assert (found.path, found.kind) == (path.removeprefix(f"{result.data_dir}/"), "damaged")


@pytest.mark.parametrize(
    "part", ["/index/index-00000", pytest.param("/read-as.json", marks=pytest.mark.long)]
)
def test_a_file_that_the_store_writes_wrongly_is_not_committed(source, s3, monkeypatch, part):
    ask, left = s3.ask, [1]

    def write(method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if method == "PUT" and part in path and left:
            left.clear()
            body = body[:-1] + bytes([body[-1] ^ 1])
        return ask(method, path, headers, body)

    monkeypatch.setattr(s3, "ask", write)
    with pytest.raises(StorageError, match=f"Nothing was committed, .*{part}.* SHA256SUMS") as e:
        darkroom.convert(source, OUTPUT, **TABLE)
    assert "Run this again" in e.value.hint
    darkroom.convert(source, OUTPUT, **TABLE)
    assert darkroom.verify(OUTPUT).findings == ()


def test_the_record_of_the_newest_attempt_may_be_damaged(source, monkeypatch):
    finish = _interrupt(source, monkeypatch, shards=1)
    damage(f"{OUTPUT}/.attempt/current.json")
    with pytest.raises(StorageError, match=r"current.json is damaged, so nobody knows which run"):
        finish()
    darkroom.convert(source, OUTPUT, **TABLE)
    assert darkroom.verify(OUTPUT).findings == ()


def test_finished_shards_are_copied_within_the_store_but_for_damaged_ones(source, s3, monkeypatch):
    _interrupt(source, monkeypatch, shards=2)
    (old,) = _list_data()
    damaged, whole = (f"Split-train/data_tfrecord-0000{n}-of-00002" for n in range(2))
    data = storage.read_bytes(f"{OUTPUT}/{old}/{damaged}")
    storage.write_bytes(f"{OUTPUT}/{old}/{damaged}", bytes(len(data)))
    s3.requests.clear()
    result = darkroom.convert(source, OUTPUT, **TABLE)
    new = result.data_dir.rpartition("/")[2]
    # Both are read for their hashes.
    assert [s3.count(f"GET /photos/out/{old}/{name}") for name in (damaged, whole)] == [1, 1]
    assert storage.read_bytes(f"{result.data_dir}/{damaged}") == data
    assert darkroom.verify(OUTPUT).fingerprint == result.fingerprint
    assert new in _list_data()
    # What the job may still write is proven by its journal.
    left = {n for n in storage.look_up_files(OUTPUT) if n.startswith(old)}
    work = f"{old}/.attempt/{old[-8:]}"
    assert left == {f"{work}/journal.json", f"{work}/attempt.json"}


def test_a_job_ends_after_another_run(source, s3, monkeypatch):
    finish = _interrupt(source, monkeypatch, shards=1)
    (old,) = _list_data()
    result = darkroom.convert(source, OUTPUT, **TABLE, seed=5)
    later = rf"attempt {result.data_dir[-8:]} \(process {os.getpid()} on .*\) has taken {OUTPUT}\."
    with pytest.raises(OutputError, match=rf"Attempt {old[-8:]} ends, because {later}"):
        finish()
    assert darkroom.verify(OUTPUT).fingerprint == result.fingerprint
    # The next run that writes removes what the job has left.
    darkroom.convert(source, OUTPUT, **TABLE, seed=6, overwrite=True)
    assert old not in _list_data()


def test_of_two_commits_at_once_the_store_lets_one_write(source, s3, monkeypatch):
    """The first has looked at the token, and the second commits before it writes."""
    finish = _interrupt(source, monkeypatch, shards=1)
    write, other = storage.write_if_unchanged, b'{"dataset": "data-01234567"}'

    def write_later(*arguments: str) -> None:
        storage.write_bytes(f"{OUTPUT}/dataset.json", other)
        write(*arguments)

    monkeypatch.setattr(storage, "write_if_unchanged", write_later)
    with pytest.raises(OutputError, match=f"has written a dataset into {OUTPUT} since"):
        finish()
    assert storage.read_bytes(f"{OUTPUT}/dataset.json") == other


def test_a_lost_answer_to_the_last_write_does_not_fail(source, s3, monkeypatch):
    write = storage.write_if_unchanged

    def lose_answer(*arguments: str) -> None:
        write(*arguments)
        raise ChangedError("the first try was written")

    monkeypatch.setattr(storage, "write_if_unchanged", lose_answer)
    result = darkroom.convert(source, OUTPUT, **TABLE)
    assert darkroom.verify(OUTPUT).fingerprint == result.fingerprint


def test_a_shard_that_changed_before_the_commit_stops_it(source, s3, monkeypatch):
    finish = _interrupt(source, monkeypatch, shards=2)
    (name,) = _list_data()

    def change(attempt: Attempt) -> None:
        path = f"{OUTPUT}/{name}/Split-train/data_tfrecord-00001-of-00002"
        storage.write_bytes(path, bytes(len(storage.read_bytes(path))))

    monkeypatch.setattr(Attempt, "check_current", change)
    with pytest.raises(OSError, match=r"00001-of-00002 is not as its worker wrote it"):
        finish()
    assert not storage.exists(f"{OUTPUT}/dataset.json")


def test_readers_keep_the_old_dataset_until_the_new_one_is_complete(
    source, fingerprint, monkeypatch
):
    (old,) = _list_data()
    _interrupt(source, monkeypatch, shards=1, seed=5, overwrite=True)
    assert darkroom.verify(OUTPUT).fingerprint == fingerprint
    new = darkroom.convert(source, OUTPUT, **TABLE, seed=5, overwrite=True)
    assert darkroom.verify(OUTPUT).fingerprint == new.fingerprint
    assert not storage.exists(f"{OUTPUT}/{old}")


_CHANGES = (
    ({"dataset": "data-0123abcd"}, "it names data-0123abcd, which does not exist"),
    ({"fingerprint": "0" * 64}, "its fingerprint is not that of the dataset in data-"),
    ({"dataset": "../rows.csv"}, "it does not name the folder of a dataset"),
    ({"dataset": 1}, "it does not name the folder of a dataset"),
    ({"format_version": 5}, "it does not name the folder of a dataset"),
    ({"more": 1}, "has format 4, expected 3"),
)


def test_a_commit_that_names_no_dataset_is_damaged(fingerprint):
    path = f"{OUTPUT}/dataset.json"
    fields = json.loads(storage.read_bytes(path))
    for change, what in _CHANGES:
        storage.write_bytes(path, json.dumps({**fields, **change}).encode())
        with pytest.raises(DataError, match=rf"{path} .*{re.escape(what)}"):
            read_dataset(OUTPUT)
    (found,) = darkroom.verify(OUTPUT).findings
    assert (found.path, what in found.what) == ("dataset.json", True)


def test_a_copy_on_a_disk_is_read_and_replaced(source, fingerprint, made, tmp_path):
    for name, data in made.items():
        path = tmp_path / "copy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert darkroom.verify(tmp_path / "copy").fingerprint == fingerprint
    darkroom.convert(source, tmp_path / "copy", **TABLE, overwrite=True)
    assert darkroom.verify(tmp_path / "copy").fingerprint == fingerprint
    assert not [*(tmp_path / "copy").glob("data-*")]


def test_a_store_that_knows_no_conditions_is_written(s3, monkeypatch):
    """Some stores answer that they do not implement them."""
    from botocore.exceptions import ClientError

    from darkroom.storage.requests import open_store

    client = open_store(OUTPUT)._client
    put, seen = client.put_object, []

    def put_object(**arguments):
        seen.append("IfNoneMatch" in arguments)
        if {"IfMatch", "IfNoneMatch"} & arguments.keys():
            raise ClientError({"Error": {"Code": "NotImplemented"}}, "PutObject")
        return put(**arguments)

    monkeypatch.setattr(client, "put_object", put_object)
    storage.write_if_unchanged(f"{OUTPUT}/dataset.json", b"1", "")
    assert seen == [True, False]
    assert storage.read_bytes(f"{OUTPUT}/dataset.json") == b"1"
