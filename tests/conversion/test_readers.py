from __future__ import annotations

import errno

import pytest

from darkroom import storage
from darkroom.conversion.shards import encode
from darkroom.conversion.shards.encode import ImageReaders, cut_batches
from darkroom.dataset.manifest import ManifestRow
from darkroom.errors import AccessError, CredentialsError, MissingExtraError
from darkroom.images.access import check_access
from darkroom.options.image import ImageOptions
from darkroom.targets.kind import find_kind


def _rows(count, uri, size):
    return [ManifestRow("k", "i", uri, "train", None, None, n, 0, size, None) for n in range(count)]


@pytest.mark.parametrize(
    ("uri", "size", "lengths"),
    [
        ("/a.jpg", 1000, [8, 8, 4]),
        ("/a.jpg", 1 << 20, [2] * 10),  # 2 MiB are enough for a batch
        ("/a.jpg", None, [2] * 10),  # of unknown length, so it counts as 1 MiB
        ("", None, [8, 8, 4]),  # there is no image
    ],
)
def test_batches_are_cut_by_rows_and_bytes(uri, size, lengths):
    rows = _rows(20, uri, size)
    batches = list(cut_batches(rows, 8))
    assert [len(batch) for batch, _ in batches] == lengths
    assert [row for batch, _ in batches for row in batch] == rows
    assert sum(num_bytes for _, num_bytes in batches) == (20 * (size or 1 << 20) if uri else 0)


def test_a_missing_extra_is_not_the_fault_of_an_image(monkeypatch):
    """Or a list with one image in a store would lose that image, and say that all is well."""

    def read_bytes(uri: str, limit_bytes: int | None = None) -> bytes:
        raise MissingExtraError("Storage s3:// needs the extra 'aws', which is not installed.")

    monkeypatch.setattr(storage, "read_bytes", read_bytes)
    with pytest.raises(MissingExtraError, match="'aws'"):
        check_access(["s3://photos/1.jpg"])
    made = ImageReaders(ImageOptions())
    with pytest.raises(MissingExtraError, match="'aws'"):
        made.encode(_rows(1, "s3://photos/1.jpg", 9), find_kind("label"), lambda _: None)
    made.close()


def _encode(monkeypatch, read_bytes, count):
    """Encodes images of a store, one after the other; returns the reasons of the rejects."""
    monkeypatch.setattr(encode, "_REMOTE_THREADS", 1)
    monkeypatch.setattr(storage, "read_bytes", read_bytes)
    found, made = [], ImageReaders(ImageOptions())
    rows = _rows(count, "s3://photos/1.jpg", 9)
    made.encode(
        rows,
        find_kind("label"),
        lambda encoded: found.extend(each.reason for each in encoded.rejects),
    )
    made.close()
    return found


@pytest.mark.parametrize(
    "error",
    [
        CredentialsError("ExpiredToken"),
        OSError(errno.EMFILE, "Too many open files", "/1.jpg"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError(errno.ETIMEDOUT, "Connection timed out", "/nfs/1.jpg"),
        OSError(errno.ENOTCONN, "Transport endpoint is not connected", "/mounted/1.jpg"),
    ],
)
def test_the_user_and_the_machine_are_not_the_fault_of_an_image(monkeypatch, error):
    def read_bytes(uri: str, limit_bytes: int | None = None) -> bytes:
        raise error

    with pytest.raises(type(error)) as caught:
        _encode(monkeypatch, read_bytes, 1)
    assert caught.value is error


def test_a_store_that_refuses_20_images_and_gives_none_between_them_ends_the_run(monkeypatch):
    asked = 0

    def read_bytes(uri: str, limit_bytes: int | None = None) -> bytes:
        nonlocal asked
        asked += 1
        if asked == 20:
            return b"no image, but an answer"
        raise AccessError(f"{uri} may not be read: AccessDenied", "Ask for the right to list.")

    found = _encode(monkeypatch, read_bytes, 39)
    assert found == ["permission_denied"] * 19 + ["not_an_image"] + ["permission_denied"] * 19
    asked = 0
    with pytest.raises(AccessError, match=r"refused 20 images and gave none between them.*right"):
        _encode(monkeypatch, read_bytes, 40)
