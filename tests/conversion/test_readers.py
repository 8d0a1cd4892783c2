from __future__ import annotations

import pytest

from darkroom import storage
from darkroom.conversion.readers import ImageReaders, cut_batches
from darkroom.errors import MissingExtraError
from darkroom.images.access import check_access
from darkroom.manifest.table import ManifestRow
from darkroom.options.image import ImageOptions


def _rows(count, uri, size):
    return [ManifestRow("k", "i", uri, "train", None, None, n, size, None) for n in range(count)]


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
    readers = ImageReaders(ImageOptions())
    with pytest.raises(MissingExtraError, match="'aws'"):
        readers.encode(_rows(1, "s3://photos/1.jpg", 9), lambda _: None)
    readers.close()
