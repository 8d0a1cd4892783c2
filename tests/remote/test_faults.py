"""Stores that fail for a while, for good, or slowly."""

from __future__ import annotations

import itertools
import os
import socket

import pytest

from darkroom import storage
from darkroom.errors import DataError, StorageError, TransientStorageError, UsageError
from darkroom.storage.requests import request
from darkroom.storage.stores import retries

# One status for all of them: see test_a_status_says_whether_to_try_again.
TRANSIENT = [503, "reset", "cut"]
LAST_MODIFIED = "last-modified"


@pytest.mark.parametrize("kind", TRANSIENT)
@pytest.mark.fault(35, "429, 5xx or a broken connection for a moment", "the request is made again")
@pytest.mark.fault(37, "an object that is shorter than announced", "the request is made again")
def test_a_failure_that_passes_is_tried_again(store, kind):
    proxy, root = store
    data = os.urandom(40_000)
    storage.write_bytes(f"{root}/a", data)
    proxy.fail("photos/", kind, times=2)
    assert storage.read_bytes(f"{root}/a") == data
    assert proxy.count("photos/") >= 3


def test_a_short_part_of_a_file_is_read_again(store):
    proxy, root = store
    data = os.urandom(40_000)
    storage.write_bytes(f"{root}/a", data)
    with storage.open_read(f"{root}/a") as file:
        proxy.fail("GET", "cut", times=2)
        file.seek(5)
        assert file.read(30_000) == data[5:30_005]
    with storage.open_read(f"{root}/a") as file:
        proxy.fail("GET", "cut")
        with pytest.raises(TransientStorageError, match=rf"Reading {root}/a failed 4 times"):
            file.read()


def damage_values(headers: dict, body: bytes) -> tuple[dict, bytes]:
    """Damages what has the form of a time or of a number."""
    for start in (b"<LastModified>", b'"generation": "', b'"timeCreated": "'):
        body = body.replace(start, start + b"\x3f")
    times = {name: f"?{value}" for name, value in headers.items() if name.lower() == LAST_MODIFIED}
    return headers | times, body


def damage_form(headers: dict, body: bytes) -> tuple[dict, bytes]:
    """Ends JSON and XML too early, and takes a header away."""
    body = body.rstrip(b"}>") if body[:1] in (b"{", b"<") else body
    return {n: value for n, value in headers.items() if n.lower() != LAST_MODIFIED}, body


@pytest.mark.parametrize("kind", [503, damage_values, damage_form])
@pytest.mark.fault(35, "a damaged answer, as a time that is not one", "the request is made again")
def test_every_kind_of_request_is_tried_again(store, kind):
    proxy, root = store

    def fail() -> None:
        proxy.faults.clear()
        proxy.fail("photos", kind, times=2)

    fail()
    storage.write_bytes(f"{root}/d/a", b"data")
    fail()
    assert storage.stat_file(f"{root}/d/a").size_bytes == 4
    fail()
    assert storage.list_folder(f"{root}/d") == ["a"]
    with storage.open_read(f"{root}/d/a") as file:
        fail()
        assert file.read() == b"data"
    fail()
    storage.rename(f"{root}/d/a", f"{root}/d/b")
    fail()
    storage.delete(f"{root}/d/b")
    assert storage.list_folder(f"{root}/d") == []


def test_an_answer_that_stays_damaged_is_an_error_of_the_store(store):
    proxy, root = store
    storage.write_bytes(f"{root}/d/a", b"data")
    proxy.fail("photos", damage_values)
    unread = r"failed 4 times .*: an answer that cannot be read \(ValueError: "
    with pytest.raises(TransientStorageError, match=f"Listing {root}/d {unread}"):
        storage.list_folder(f"{root}/d")
    with pytest.raises(TransientStorageError, match=f"Looking up {root}/d/a {unread}"):
        storage.stat_file(f"{root}/d/a")


def test_what_does_not_come_from_the_answer_is_not_tried_again(s3, gs):
    asked = []

    def use(store: object) -> None:
        asked.append(store)
        raise UsageError("an argument is wrong")

    with pytest.raises(UsageError, match="an argument is wrong"):
        request("s3://photos/a", "Reading", use)
    assert len(asked) == 1
    with pytest.raises(UsageError, match="gs://_a/b does not begin with the name of a bucket"):
        storage.read_bytes("gs://_a/b")


@pytest.mark.parametrize(
    ("step", "asked", "error", "said"),
    [
        (0, 3, DataError, "is damaged in its store"),
        (1, 4, TransientStorageError, "failed 4 times"),
    ],
)
def test_a_checksum_that_is_wrong_in_the_same_way_is_damage_in_the_store(
    store, step, asked, error, said
):
    proxy, root = store
    storage.write_bytes(f"{root}/a", b"data of an object")
    places = itertools.count(0, step)

    def damage(headers: dict, body: bytes) -> tuple[dict, bytes]:
        body = bytearray(body)
        body[next(places)] ^= 1
        return headers, bytes(body)

    proxy.requests.clear()
    proxy.fail("GET", damage)
    with pytest.raises(error, match=f"{root}/a {said}") as caught:
        storage.read_bytes(f"{root}/a")
    assert isinstance(caught.value, OSError)
    assert proxy.count("GET") == asked
    proxy.faults.clear()
    proxy.fail("GET", damage, times=2)
    assert storage.read_bytes(f"{root}/a") == b"data of an object"


@pytest.mark.parametrize("kind", TRANSIENT)
@pytest.mark.fault(
    35,
    "429, 5xx or broken connections that do not end",
    "refused, exit code 3: the attempts are named; no row is rejected for it",
    hint="This is the store or the network, not the data: run again when it is back.",
)
def test_a_failure_that_lasts_ends_with_the_number_of_attempts(store, kind):
    proxy, root = store
    storage.write_bytes(f"{root}/a", b"x" * 40_000)
    proxy.requests.clear()
    proxy.fail("GET", kind)
    with pytest.raises(TransientStorageError, match=rf"Reading {root}/a failed 4 times in ") as e:
        storage.read_bytes(f"{root}/a")
    assert "run again when it is back" in e.value.hint
    assert e.value.exit_code == 3
    # The libraries' own retries are off: no more requests than attempts.
    assert proxy.count("GET") == 4


def test_an_upload_that_the_store_found_damaged_is_made_again(s3):
    s3.fail("PUT", "400 BadDigest", times=2)
    storage.write_bytes("s3://photos/a", b"data")
    assert storage.read_bytes("s3://photos/a") == b"data"


def test_writing_that_fails_leaves_no_object(store, tmp_path):
    proxy, root = store
    proxy.fail("photos/", 503)
    with pytest.raises(TransientStorageError, match=rf"Writing {root}/a failed 4 times"):
        storage.write_bytes(f"{root}/a", b"data")
    proxy.reset()
    assert storage.list_folder(root) == []
    assert os.listdir(tmp_path / "temporary") == []


@pytest.mark.parametrize("kind", ["drip", "stall"])
@pytest.mark.fault(
    36, "an object that arrives very slowly or stalls", "ended at its deadline, then as row 35"
)
def test_slow_objects_end_at_the_deadline(store, kind, monkeypatch):
    proxy, root = store
    storage.write_bytes(f"{root}/a", b"x" * 40_000)
    monkeypatch.setattr(retries, "ATTEMPT_SECONDS", 0.2)
    monkeypatch.setattr(retries, "_shared", retries.Limits(0.5, 4))
    proxy.fail("GET", kind)
    # The first attempt ends at its own deadline, and the deadline of all leaves no fourth one.
    with pytest.raises(TransientStorageError, match=r"failed [1-3] times? in .*no end after 0 sec"):
        storage.read_bytes(f"{root}/a")


@pytest.mark.fault(38, "an object that is replaced while it is read", "one version, whole")
def test_a_replaced_object_is_read_in_one_version(store):
    proxy, root = store
    old, new = b"o" * 40_000, b"n" * 50_000
    storage.write_bytes(f"{root}/a", old)

    def replace(line: str) -> None:
        if line.startswith("GET") and proxy.count("GET") == 2:
            proxy.on_request = lambda line: None
            storage.write_bytes(f"{root}/a", new)

    proxy.fail("GET", "cut", times=1)
    proxy.on_request = replace
    assert storage.read_bytes(f"{root}/a") == new


def test_a_closed_port_is_named(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(TransientStorageError, match=r"4 times.*127\.0\.0\.1:9"):
        storage.read_bytes("s3://photos/a")


@pytest.mark.parametrize(
    ("number", "times"), [(socket.EAI_NONAME, "6 times"), (socket.EAI_AGAIN, "9 times")]
)
def test_a_wrong_address_ends_a_conversion_soon(store, monkeypatch, number, times):
    def fail(*_: object, **__: object) -> None:
        raise socket.gaierror(number, "made up")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    monkeypatch.setattr(retries, "_shared", retries.Limits(10.0, 9))
    monkeypatch.setattr(retries, "MAX_PAUSE_SECONDS", 0.002)
    for variable in ("AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST"):
        monkeypatch.setenv(variable, "http://not-there.invalid:9000")
    with storage.be_patient(180), pytest.raises(TransientStorageError, match=times):
        storage.read_bytes(f"{store[1]}/a")


def test_other_statuses_are_not_tried_again(store):
    proxy, root = store
    proxy.fail("GET", 400)
    with pytest.raises(StorageError, match=f"Reading {root}/a failed: ") as caught:
        storage.read_bytes(f"{root}/a")
    assert not isinstance(caught.value, TransientStorageError)
    assert len(proxy.requests) == 1
