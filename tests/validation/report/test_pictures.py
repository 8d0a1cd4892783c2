"""Pictures of a report: from records on a disk, and from a store without waiting for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import darkroom
from darkroom import storage
from darkroom.errors import AccessError, CredentialsError, MissingExtraError, TransientStorageError
from darkroom.images import source_images as sources
from darkroom.images.source_images import SourceImages
from darkroom.options.conversion import ConversionOptions
from darkroom.validation.report.write import write_report

from ...image_set import ImageSet
from ...pictures import encode, make_noise
from .test_write import make_report, side

PICTURE = encode(make_noise(1, 9, 7), "PNG")


@pytest.mark.heavy
@pytest.mark.parametrize(
    "options",
    [
        None,
        ConversionOptions(compression="gzip"),
        ConversionOptions(encoding="raw"),
    ],
)
def test_pictures_come_from_the_records_when_the_source_is_gone(
    jpeg_set: ImageSet, tmp_path: Path, options
):
    jpeg_set.add("VALIDATION", "copy.jpg", "cat", (jpeg_set.folder / "00.jpg").read_bytes())
    darkroom.convert(jpeg_set.csv, tmp_path / "out", num_shards={"train": 3}, options=options)
    judged = darkroom.validate(tmp_path / "out")
    write_report(judged.report, str(tmp_path / "of_source"))
    shutil.rmtree(jpeg_set.folder)
    darkroom.validate(tmp_path / "out", report_dir=tmp_path / "of_records")
    page = (tmp_path / "of_records/report.html").read_text()
    # A thumbnail of stored pixels differs by a level here and there.
    if options is None or options.encoding != "raw":
        # Each picture is of its own image.
        assert page == (tmp_path / "of_source/report.html").read_text()
    assert page.count("<img ") == 5
    assert "missing:" not in page


@pytest.mark.heavy
def test_a_source_is_not_read_where_the_records_are_on_a_disk(
    jpeg_set: ImageSet, tmp_path: Path, monkeypatch
):
    darkroom.convert(jpeg_set.csv, tmp_path / "out")
    read_bytes, read = storage.read_bytes, []

    def note(path: str, limit_bytes: int | None = None) -> bytes:
        read.append(path)
        return read_bytes(path, limit_bytes)

    monkeypatch.setattr(storage, "read_bytes", note)
    darkroom.validate(tmp_path / "out", report_dir=tmp_path / "report")
    assert [path for path in read if path.endswith(".jpg")] == []
    # Files of records that are damaged give no picture, and the source is read.
    for shard in (tmp_path / "out").glob("Split-*/*"):
        shard.write_bytes(b"\0" * shard.stat().st_size)
    darkroom.validate(tmp_path / "out", report_dir=tmp_path / "report")
    assert len([path for path in read if path.endswith(".jpg")]) == 3


@pytest.fixture(autouse=True)
def clients(monkeypatch):
    """Clients of stores, as if their extras were installed."""
    monkeypatch.setattr(sources, "load_store", lambda _: None)


class Store:
    """Gives pictures, each in some seconds, until one is refused.

    Attributes:
        asked: URIs that were asked for.
        now: The time of its clock.
    """

    def __init__(self, seconds: float, refused: str = "", error: Exception | None = None) -> None:
        self._seconds, self._refused, self._error = seconds, refused, error
        self.asked: list[str] = []
        self.now = 0.0

    def tell(self) -> float:
        return self.now

    def read(self, uri: str) -> bytes:
        self.asked.append(uri)
        self.now += self._seconds
        if uri == self._refused and self._error:
            raise self._error
        return PICTURE


def _report_of(root: str):
    samples = tuple(side(row, f"{root}/{row}.png", label=str(row)) for row in range(10))
    return make_report(findings=(), samples=samples)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            TransientStorageError("Reading failed once in 5.0 seconds"),
            "the store did not answer within 5",
        ),
        (AccessError("403"), "the store refused them"),
        (CredentialsError("ExpiredToken"), "the store refused them"),
    ],
)
def test_a_store_that_fails_once_is_not_asked_again(tmp_path, error, why):
    store = Store(0.1, "s3://b/3.png", error)
    images = SourceImages(store.read, store.tell)
    write_report(_report_of("s3://b"), str(tmp_path), sources=images)
    assert store.asked == [f"s3://b/{number}.png" for number in range(4)]
    page = (tmp_path / "report.html").read_text()
    assert f"7 of 10 pictures are missing: {why}" in page.replace("&#x27;", "'")
    assert page.count("<img ") == 3


def test_the_import_of_a_client_takes_no_time_from_the_pictures(tmp_path, monkeypatch):
    store = Store(0.1)

    def load(scheme: str) -> None:
        store.now += 60
        assert scheme == "s3"

    monkeypatch.setattr(sources, "load_store", load)
    write_report(_report_of("s3://b"), str(tmp_path), sources=SourceImages(store.read, store.tell))
    assert len(store.asked) == 10
    assert "pictures are missing" not in (tmp_path / "report.html").read_text()


def test_a_client_that_is_not_installed_is_named_once(tmp_path, monkeypatch):
    def load(scheme: str) -> None:
        raise MissingExtraError("Storage s3:// needs the extra 'aws'.")

    monkeypatch.setattr(sources, "load_store", load)
    store = Store(0.1)
    write_report(_report_of("s3://b"), str(tmp_path), sources=SourceImages(store.read, store.tell))
    page = (tmp_path / "report.html").read_text().replace("&#x27;", "'")
    assert "10 of 10 pictures are missing: Storage s3:// needs the extra 'aws'." in page
    assert store.asked == []


def test_a_store_has_five_seconds_for_all_pictures(tmp_path):
    store = Store(2.0)
    images = SourceImages(store.read, store.tell)
    write_report(_report_of("s3://b"), str(tmp_path), sources=images)
    assert len(store.asked) == 3
    page = (tmp_path / "report.html").read_text()
    assert "7 of 10 pictures are missing: the store took more than 5 seconds" in page


def test_an_object_that_is_not_there_ends_nothing(tmp_path):
    store = Store(0.1, "s3://b/3.png", FileNotFoundError("s3://b/3.png"))
    images = SourceImages(store.read, store.tell)
    write_report(_report_of("s3://b"), str(tmp_path), sources=images)
    assert len(store.asked) == 10
    page = (tmp_path / "report.html").read_text()
    assert "1 of 10 pictures is missing: their images cannot be read." in page


def test_a_disk_has_all_the_time_that_it_needs(tmp_path):
    store = Store(60.0, "/b/3.png", PermissionError("/b/3.png"))
    images = SourceImages(store.read, store.tell)
    write_report(_report_of("/b"), str(tmp_path), sources=images)
    assert len(store.asked) == 10
    assert (tmp_path / "report.html").read_text().count("<img ") == 9


def test_a_store_gets_one_attempt_within_the_time_that_is_left():
    from darkroom.storage.stores import retries

    store, limits = Store(2.0), []

    def read(uri: str) -> bytes:
        limits.append(retries._own.get()[:2])
        return store.read(uri)

    images = SourceImages(read, store.tell)
    with storage.be_patient(180):
        assert [images.read(f"s3://b/{number}") for number in range(4)] == [PICTURE] * 3 + [b""]
    assert limits == [(5.0, 1), (3.0, 1), (1.0, 1)]
