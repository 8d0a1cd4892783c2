import errno

import pytest

from darkroom import storage
from darkroom.dataset.rejects import REJECT_HINTS
from darkroom.errors import AccessError, CredentialsError, StorageError, TransientStorageError
from darkroom.images.access import check_access, check_not_all_denied, describe_failure


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file"), "missing"),
        (PermissionError(errno.EACCES, "Permission denied"), "permission_denied"),
        (AccessError("gs://b/a.jpg may not be read"), "permission_denied"),
        (IsADirectoryError(errno.EISDIR, "Is a directory"), "not_a_file"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory"), "not_a_file"),
        (storage.NotAFileError("a.jpg is not a regular file"), "not_a_file"),
        (OSError(errno.ENXIO, "No such device or address"), "not_a_file"),
        (OSError(errno.ELOOP, "Too many levels of symbolic links"), "link_loop"),
        (storage.FileTooLargeError("a.jpg has more than 64 bytes"), "too_large"),
        (OSError(errno.EIO, "Input/output error"), "unreadable"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), "unreadable"),
        (ValueError("embedded null byte"), "unreadable"),
    ],
)
def test_a_failure_to_read_has_a_reason_and_a_hint(error, reason):
    found = describe_failure(error)
    assert found.reason == reason
    assert 0 < len(found.detail) < 100
    assert reason in REJECT_HINTS


def test_files_that_cannot_be_read_for_other_reasons_do_not_stop_the_run(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"x")
    check_access([])
    check_access([str(tmp_path / "gone.jpg"), str(tmp_path)])
    check_access([str(tmp_path / "a.jpg")])


def test_trying_an_image_does_not_read_it(tmp_path, monkeypatch):
    read_bytes, limits = storage.read_bytes, []

    def read(path, limit_bytes=None):
        limits.append(limit_bytes)
        return read_bytes(path, limit_bytes)

    monkeypatch.setattr(storage, "read_bytes", read)
    (tmp_path / "a.jpg").write_bytes(b"x" * 1_000)
    check_access([str(tmp_path / "a.jpg")])
    assert limits == [0]


def test_a_store_that_denies_access_to_all_stops_the_run(monkeypatch):
    def read(path, limit_bytes=None):
        raise AccessError(f"{path} may not be read")

    monkeypatch.setattr(storage, "read_bytes", read)
    with pytest.raises(StorageError, match=r"None of the first 2 images may be read: gs://b/1"):
        check_access(["gs://b/1.jpg", "gs://b/2.jpg"])


@pytest.mark.parametrize("error", [CredentialsError("ExpiredToken"), TransientStorageError("503")])
def test_what_the_store_says_of_itself_stops_the_run(monkeypatch, error):
    def read(path, limit_bytes=None):
        raise error

    monkeypatch.setattr(storage, "read_bytes", read)
    with pytest.raises(type(error)):
        check_access(["s3://b/1.jpg"])


def test_records_that_are_missing_for_want_of_permission_alone_are_the_environments_fault():
    check_not_all_denied({"permission_denied": 9, "missing": 1}, "")
    with pytest.raises(StorageError, match=r"None of the images may be read. The first: row 1"):
        check_not_all_denied({"permission_denied": 9}, "The first: row 1")
