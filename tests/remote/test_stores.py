"""Reading, writing, listing and deleting, in both stores."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest

from darkroom import storage
from darkroom.errors import AccessError, CredentialsError, StorageError, UsageError
from darkroom.storage import FileTooLargeError, copies
from darkroom.storage.stores import Problem, judge_status


def test_written_files_are_read(store):
    _, root = store
    for data in (b"", b"x", os.urandom(300_000)):
        storage.write_bytes(f"{root}/a/b", data)
        assert storage.read_bytes(f"{root}/a/b") == data
        assert storage.stat_file(f"{root}/a/b").size_bytes == len(data)
        # In hours, because the store's clock is in another time zone.
        assert round((storage.find_modified(f"{root}/a/b") - time.time()) / 3600) == 0
        with storage.open_read(f"{root}/a/b") as file:
            assert file.read() == data


def test_names_with_odd_letters_are_taken_as_written(store):
    _, root = store
    for name in ("a b", "a#1?x=2", "50%41", "*[1]", "größe/日本.jpg", "d//e"):
        storage.write_bytes(f"{root}/{name}", name.encode())
        assert storage.read_bytes(f"{root}/{name}") == name.encode()
        assert storage.stat_file(f"{root}/{name}").size_bytes == len(name.encode())
    assert len(list(storage.walk_files(root))) == 6


def test_names_are_listed_by_folder_by_tree_and_by_pattern(store):
    _, root = store
    for name in ("d/1.csv", "d/2.csv", "d/e/3.csv", "d/.hidden", "dd"):
        storage.write_bytes(f"{root}/{name}", b"x")
    assert storage.list_folder(f"{root}/d") == [".hidden", "1.csv", "2.csv", "e"]
    assert storage.list_folder(root) == ["d", "dd"]
    assert storage.list_folder(f"{root}/none") == []
    assert list(storage.walk_files(f"{root}/d")) == ["1.csv", "2.csv", "e/3.csv"]
    assert storage.match_pattern(f"{root}/d/*.csv") == [f"{root}/d/1.csv", f"{root}/d/2.csv"]
    assert storage.match_pattern(f"{root}/**3.csv") == [f"{root}/d/e/3.csv"]
    assert storage.match_pattern(f"{root}/d/[!2-9].cs?") == [f"{root}/d/1.csv"]
    storage.write_bytes(f"{root}/d[e]/3.csv", b"x")
    assert storage.match_pattern(f"{root}/d[e]/*.csv") == [f"{root}/d[e]/3.csv"]
    assert storage.match_pattern(f"{root}/d[e]/3.csv") == [f"{root}/d[e]/3.csv"]
    assert not storage.is_pattern(f"{root}/d[e]")
    assert storage.is_folder(f"{root}/d")
    assert not storage.is_folder(f"{root}/dd")
    assert storage.exists(f"{root}/d")
    assert storage.exists(f"{root}/dd")
    assert not storage.exists(f"{root}/d/1")


def test_a_path_has_files_if_it_is_a_file_or_has_one_below(store, tmp_path):
    proxy, root = store
    for name in ("d/e/f", "marker/", "marker/inside/"):
        storage.write_bytes(f"{root}/{name}", b"")
    places = ("d", "d/e", "d/e/f", "", "marker", "marker/inside", "d/e/", "d/", "dd", "d/e/fg")
    found = {place: storage.has_files(f"{root}/{place}") for place in places}
    assert [place for place in places if found[place]] == ["d", "d/e", "d/e/f", "", "d/e/", "d/"]
    proxy.fail("photos", 403)
    with pytest.raises(AccessError):
        storage.has_files(f"{root}/d")


def test_long_listings_come_in_pages(s3, monkeypatch):
    monkeypatch.setattr("darkroom.storage.remote.MAX_DELETED", 10)
    from darkroom.storage.requests import open_store

    client = open_store("s3://photos/")._client  # type: ignore[attr-defined]
    plain = client.list_objects_v2
    monkeypatch.setattr(client, "list_objects_v2", lambda **given: plain(**given, MaxKeys=7))
    for number in range(25):
        client.put_object(Bucket="photos", Key=f"d/{number:02d}", Body=b"x")
    assert storage.list_folder("s3://photos/d") == [f"{number:02d}" for number in range(25)]
    storage.delete("s3://photos/d")
    assert storage.list_folder("s3://photos/d") == []
    assert s3.count("POST /photos?delete") == 3


def test_files_and_folders_are_renamed_and_deleted(store):
    _, root = store
    for name in ("d/1", "d/e/2", "dd"):
        storage.write_bytes(f"{root}/{name}", name.encode())
    storage.rename(f"{root}/dd", f"{root}/d/3")
    assert storage.read_bytes(f"{root}/d/3") == b"dd"
    assert storage.list_folder(root) == ["d"]
    storage.delete(f"{root}/d/1")
    storage.delete(f"{root}/d/1")
    assert list(storage.walk_files(root)) == ["d/3", "d/e/2"]
    storage.delete(f"{root}/d")
    storage.delete(f"{root}/d")
    assert list(storage.walk_files(root)) == []


def test_a_folder_moves_between_stores(store, tmp_path):
    _, root = store
    names = [".hidden", "checkpoint", "train/events"]
    for name in names:
        storage.write_bytes(f"{root}/run/{name}", name.encode())
    copies.move_folder(f"{root}/run", f"{root}/model_run")
    moved = storage.look_up_files(root)
    assert sorted(moved) == [f"model_run/{name}" for name in names]
    assert [moved[f"model_run/{name}"].size_bytes for name in names] == [len(n) for n in names]
    copies.move_folder(f"{root}/model_run", str(tmp_path / "here"))
    assert storage.look_up_files(root) == {}
    assert (tmp_path / "here/train/events").read_bytes() == b"train/events"
    copies.move_folder(str(tmp_path / "here"), f"{root}/back")
    assert not (tmp_path / "here").exists()
    assert storage.read_bytes(f"{root}/back/checkpoint") == b"checkpoint"


def test_a_file_is_read_from_any_place_in_one_version(store, monkeypatch):
    proxy, root = store
    monkeypatch.setattr("darkroom.storage.remote_files.BUFFER_BYTES", 1000)
    data = os.urandom(10_000)
    storage.write_bytes(f"{root}/a", data)
    with storage.open_read(f"{root}/a") as file:
        file.seek(-10, os.SEEK_END)
        assert file.read() == data[-10:]
        file.seek(5)
        assert file.read(3000) == data[5:3005]
        assert file.read() == data[3005:]
        storage.write_bytes(f"{root}/a", os.urandom(10_000))
        file.seek(0)
        # The emulator ignores the condition; Google's store answers it as S3 does.
        if root.startswith("gs"):
            file.read()
            assert proxy.count("ifGenerationMatch=") == proxy.count("GET") - 1
        else:
            with pytest.raises(StorageError, match=r"photos/a was replaced while it was read"):
                file.read()


def test_an_unfinished_file_does_not_appear(store, tmp_path):
    _, root = store
    with contextlib.suppress(ZeroDivisionError), storage.open_write(f"{root}/a") as file:
        file.write(b"half of it")
        assert 1 / 0
    file = storage.open_write(f"{root}/b")
    file.write(b"nobody closes it")
    del file
    assert storage.list_folder(root) == []
    assert os.listdir(tmp_path / "temporary") == []


def test_large_files_are_uploaded_in_parts(s3, monkeypatch):
    monkeypatch.setattr("darkroom.storage.stores.s3._PART_BYTES", 5 << 20)
    data = os.urandom(6 << 20)
    storage.write_bytes("s3://photos/a", data)
    assert s3.count("partNumber=2") == 1
    assert storage.read_bytes("s3://photos/a") == data


@pytest.mark.fault(34, "an image that gs:// or s3:// does not have", "rejected", code="`missing`")
def test_a_missing_object_is_reported_at_once(store):
    proxy, root = store
    for read in (storage.read_bytes, storage.stat_file, storage.open_read):
        proxy.requests.clear()
        with pytest.raises(FileNotFoundError, match=f"{root}/a/b does not exist"):
            read(f"{root}/a/b")
        assert len(proxy.requests) == 1


def test_a_missing_bucket_is_not_an_empty_folder(store):
    proxy, root = store
    other = root.replace("photos", "phobos")
    with pytest.raises(StorageError, match=rf"there is no bucket {other}. Create it"):
        storage.exists(f"{other}/a")
    with pytest.raises(FileNotFoundError, match="phobos"):
        storage.read_bytes(f"{other}/a")
    with pytest.raises(FileNotFoundError, match="phobos"):
        storage.write_bytes(f"{other}/a", b"x")
    assert len(proxy.requests) == 4


def test_denied_access_is_reported_at_once_and_names_credentials(store):
    proxy, root = store
    proxy.fail("photos", 403)
    for use in (storage.read_bytes, storage.stat_file, storage.list_folder, storage.delete):
        proxy.requests.clear()
        with pytest.raises(AccessError, match=r"may not be read or written.*redentials"):
            use(f"{root}/a")
        assert len(proxy.requests) == 1
    with pytest.raises(PermissionError):
        storage.write_bytes(f"{root}/a", b"x")


@pytest.mark.fault(
    40, "a huge object in gs:// or s3://", "rejected by its announced size, not read"
)
def test_an_object_that_is_too_large_is_not_read(store):
    proxy, root = store
    storage.write_bytes(f"{root}/a", b"x" * 5000)
    assert storage.read_bytes(f"{root}/a", 5000) == b"x" * 5000
    proxy.requests.clear()
    if root.startswith("s3"):
        proxy.fail("GET", "stall")  # its length comes first
    with pytest.raises(FileTooLargeError, match=f"{root}/a has more than 4999 bytes"):
        storage.read_bytes(f"{root}/a", 4999)
    assert len(proxy.requests) == 1


def test_without_credentials_requests_are_anonymous_and_the_hint_says_so(s3, monkeypatch):
    import boto3

    storage.write_bytes("s3://photos/a", b"public")
    boto3.resource("s3").ObjectAcl("photos", "a").put(ACL="public-read")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert storage.read_bytes("s3://photos/a") == b"public"
    s3.fail("GET", 403)
    with pytest.raises(AccessError, match=r"No AWS credentials were found: set AWS_ACCESS_KEY_ID"):
        storage.read_bytes("s3://photos/a")


def test_google_storage_is_asked_once_without_credentials(gs, monkeypatch):
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    from darkroom.storage.stores import gcs

    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    found = gcs._find_credentials()
    assert type(found).__name__ == "AnonymousCredentials"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", gs.url)
    gs.fail("GET", 401)
    with pytest.raises(CredentialsError, match=r"No Google credentials were found: run"):
        storage.read_bytes("gs://photos/a")
    assert len(gs.requests) == 1


def test_settings_that_cannot_be_used_are_named(s3, gs, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(StorageError, match=r"s3:// cannot be used: .*nobody.*Check AWS_PROFILE"):
        storage.exists("s3://photos/a")
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "no-url")
    with pytest.raises(StorageError, match=r"s3:// cannot be used: .*no-url"):
        storage.exists("s3://photos/a")
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none.json")
    with pytest.raises(CredentialsError, match=r"CREDENTIALS names \(/none.json\)"):
        storage.exists("gs://photos/a")


def test_a_forked_process_reads_and_its_parent_goes_on(store):
    # The workers of a DataLoader of PyTorch are forked from a process that has read from the store.
    _, root = store
    storage.write_bytes(f"{root}/a", b"data")
    assert storage.read_bytes(f"{root}/a") == b"data"
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that hangs
        os._exit(0 if storage.read_bytes(f"{root}/a") == b"data" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert storage.read_bytes(f"{root}/a") == b"data"


def test_a_bucket_in_another_region_is_read(s3, monkeypatch):
    storage.write_bytes("s3://photos/a", b"data")
    ask = s3.ask

    def answer(method, path, headers, body):
        if "eu-west-3" in headers["Authorization"]:
            return ask(method, path, headers, body)
        error = b"<Error><Code>PermanentRedirect</Code></Error>"
        return 301, {"x-amz-bucket-region": "eu-west-3"}, error

    monkeypatch.setattr(s3, "ask", answer)
    assert storage.read_bytes("s3://photos/a") == b"data"
    assert s3.count("GET") == 2


def test_a_client_serves_all_calls_until_its_settings_change(s3, monkeypatch):
    from darkroom.storage.requests import open_store

    first = open_store("s3://photos/a")
    assert open_store("s3://other/b") is first
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "another")
    assert open_store("s3://photos/a") is not first


def test_no_message_contains_secrets(s3):
    s3.fail("GET", 403)
    s3.fail("HEAD", 503)
    for read in (storage.read_bytes, storage.stat_file):
        with pytest.raises(StorageError) as caught:
            read("s3://photos/a")
        assert "secret-of-the-test" not in str(caught.value)


@pytest.mark.parametrize("path", ["gs://bucket", "s3://bucket/"])
def test_a_bucket_is_not_a_file(path: str):
    for call in (storage.read_bytes, storage.open_write):
        with pytest.raises(storage.NotAFileError, match="is a bucket, not a file in one"):
            call(path)
    with pytest.raises(FileNotFoundError, match="is a bucket, not a file in one"):
        storage.open_read(path)


@pytest.mark.parametrize("path", ["hdfs://a/b", "s3://", "gs:///a"])
def test_unknown_stores_and_missing_buckets_are_usage_errors(path: str):
    with pytest.raises(UsageError, match=r"there is no store hdfs://|names no bucket"):
        storage.read_bytes(path)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((status, Problem.TRANSIENT) for status in (408, 429, 500, 502, 503, 504)),
        (401, Problem.CREDENTIALS),
        (403, Problem.DENIED),
        (404, Problem.MISSING),
        (412, Problem.CHANGED),
        *((status, Problem.OTHER) for status in (400, 409, 416, 501, None)),
    ],
)
def test_a_status_says_whether_to_try_again(status, expected):
    assert judge_status(status) is expected
