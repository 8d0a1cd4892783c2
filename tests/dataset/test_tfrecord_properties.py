"""TFRecord framing: records are read as written, and the reader or the commit finds damage."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from darkroom.dataset.commit import (
    Dataset,
    Shard,
    Split,
    read_dataset,
    write_dataset,
)
from darkroom.dataset.opening import check_files
from darkroom.dataset.tfrecord import RecordWriter, read_records
from darkroom.errors import DataError

pytestmark = pytest.mark.slow

_RECORDS = st.lists(st.binary(max_size=200), max_size=6)
_FILE = "Split-train/data_tfrecord-00000-of-00001"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tfrecords")
    (folder / "Split-train").mkdir()
    return folder


def write(path, records, cut=0):
    """Writes records, each in two pieces, and returns the file's bytes."""
    with path.open("wb") as file:
        writer = RecordWriter(file, path.suffix == ".gz")
        for record in records:
            writer.write(record[:cut], record[cut:])
        writer.close()
    data = path.read_bytes()
    assert writer.records == len(records)
    assert writer.size_bytes == len(data)
    assert writer.sha256 == hashlib.sha256(data).hexdigest()
    return data


def read(path, data):
    path.write_bytes(data)
    return list(read_records(str(path)))


@given(_RECORDS, st.integers(0, 250))
def test_written_records_are_read(folder, records, cut):
    plain, packed = folder / "plain", folder / "packed.gz"
    data = write(plain, records, cut)
    assert list(read_records(str(plain))) == records
    assert gzip.decompress(write(packed, records, cut)) == data
    assert list(read_records(str(packed))) == records
    assert len(data) == sum(16 + len(record) for record in records)


@given(_RECORDS.filter(bool), st.data(), st.integers(1, 255))
def test_every_wrong_byte_is_found(folder, records, data, flip):
    good = bytearray(write(folder / "plain", records))
    place = data.draw(st.integers(0, len(good) - 1))
    good[place] ^= flip
    with pytest.raises(DataError, match=r"record \d is damaged"):
        read(folder / "plain", good)


@settings(max_examples=settings().max_examples // 2)
@given(_RECORDS.filter(bool), st.data())
def test_every_end_is_found_by_the_reader_or_by_the_commit(folder, records, data):
    path = folder / _FILE
    good = write(path, records)
    shard = Shard(_FILE, len(records), len(good), hashlib.sha256(good).hexdigest())
    commit(folder, len(records), shard)
    dataset = read_dataset(str(folder))
    check_files(str(folder), dataset)

    length = data.draw(st.integers(0, len(good) - 1))

    ends = [sum(16 + len(record) for record in records[:n]) for n in range(len(records))]
    if length in ends:
        assert read(path, good[:length]) == records[: ends.index(length)]
    else:
        with pytest.raises(DataError, match="the file ends"):
            read(path, good[:length])
    with pytest.raises(DataError, match=f"{length} bytes, expected {len(good)}"):
        check_files(str(folder), dataset)


def commit(folder, records, shard):
    splits = {"train": Split(records, (shard,))}
    plain = Dataset(2, "", {}, "full", {}, (), records, records, 0, 0, splits)
    write_dataset(str(folder), plain.with_files())
    (folder / "labels.txt").touch()


@given(_RECORDS.filter(bool), st.data(), st.integers(1, 255))
def test_a_wrong_byte_in_gzip_never_changes_a_record(folder, records, data, flip):
    path = folder / "packed.gz"
    good = bytearray(write(path, records))
    good[data.draw(st.integers(0, len(good) - 1))] ^= flip
    with contextlib.suppress(DataError):
        assert read(path, good) == records


@given(_RECORDS.filter(bool), st.data())
def test_every_end_within_gzip_is_found(folder, records, data):
    path = folder / "packed.gz"
    good = write(path, records)
    with pytest.raises(DataError, match=r"record \d is damaged"):
        read(path, good[: data.draw(st.integers(1, len(good) - 1))])
