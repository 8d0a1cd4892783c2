from __future__ import annotations

import gzip
import hashlib
import io
import struct
from pathlib import Path

import google_crc32c
import pytest

from darkroom.dataset.tfrecord import RecordWriter, read_records, read_some_records
from darkroom.errors import DataError

RECORDS = [b"first", b"", b"x" * 1000]


def _write(path: Path, compressed: bool = False) -> RecordWriter:
    with path.open("wb") as file:
        writer = RecordWriter(file, compressed)
        for record in RECORDS:
            writer.write(record[:3], record[3:])
        writer.close()
    return writer


def _masked(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def test_the_bytes_are_those_of_the_format():
    file = io.BytesIO()
    RecordWriter(file).write(b"abc", b"def")
    length = struct.pack("<Q", 6)
    assert file.getvalue() == length + _masked(length) + b"abcdef" + _masked(b"abcdef")


@pytest.mark.parametrize("name", ["plain", "packed.gz"])
def test_written_records_are_read_and_counted(tmp_path: Path, name: str):
    path = tmp_path / name
    writer = _write(path, name.endswith(".gz"))
    assert list(read_records(str(path))) == RECORDS
    assert writer.records == 3
    assert writer.size_bytes == path.stat().st_size
    assert writer.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_equal_records_make_equal_gzip_files(tmp_path: Path):
    _write(tmp_path / "a.gz", compressed=True)
    _write(tmp_path / "b.gz", compressed=True)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert b"".join(RECORDS[:1]) in gzip.decompress((tmp_path / "a.gz").read_bytes())


def test_every_flipped_bit_is_found(tmp_path: Path):
    path = tmp_path / "records"
    with path.open("wb") as file:
        RecordWriter(file).write(b"abcd")
    good = path.read_bytes()
    for place in range(len(good) * 8):
        data = bytearray(good)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        with pytest.raises(DataError, match="record 0 is damaged"):
            list(read_records(str(path)))


def test_every_end_within_a_record_is_found(tmp_path: Path):
    path = tmp_path / "records"
    with path.open("wb") as file:
        RecordWriter(file).write(b"abcd")
    good = path.read_bytes()
    for length in range(1, len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(DataError, match="record 0 is damaged: the"):
            list(read_records(str(path)))


def _pack(path: Path) -> bytes:
    with path.open("wb") as file:
        writer = RecordWriter(file, compressed=True)
        writer.write(b"abcd" * 9)
        writer.close()
    return path.read_bytes()


def test_every_flipped_bit_of_a_gzip_file_is_found_or_harmless(tmp_path: Path):
    path = tmp_path / "records.gz"
    good = _pack(path)
    found = 0
    for place in range(len(good) * 8):
        data = bytearray(good)
        data[place // 8] ^= 1 << place % 8
        path.write_bytes(data)
        try:
            assert list(read_records(str(path))) == [b"abcd" * 9]
        except DataError:
            found += 1
    # The header of gzip has a few bits that say nothing of the data.
    assert found > 0.8 * len(good) * 8


def test_every_end_of_a_gzip_file_is_found(tmp_path: Path):
    path = tmp_path / "records.gz"
    good = _pack(path)
    for length in range(1, len(good)):
        path.write_bytes(good[:length])
        with pytest.raises(DataError, match=r"record \d is damaged: "):
            list(read_records(str(path)))


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_some_records_are_read_and_the_others_are_skipped(tmp_path: Path, name: str):
    records = [bytes([number]) * (100 * number) for number in range(9)]
    path = tmp_path / name
    with path.open("wb") as file:
        writer = RecordWriter(file, compressed=name.endswith(".gz"))
        for record in records:
            writer.write(record)
        writer.close()
    found = list(read_some_records(str(path), {7, 0, 3}))
    assert found == [(number, records[number]) for number in (0, 3, 7)]
    assert list(read_some_records(str(path), {8, 20})) == [(8, records[8])]
    assert list(read_some_records(str(path), set())) == []


def test_damage_before_a_record_is_found_where_its_place_depends_on_it(tmp_path: Path):
    path = tmp_path / "a"
    with path.open("wb") as file:
        writer = RecordWriter(file)
        for _ in range(3):
            writer.write(b"x" * 50)
    data = bytearray(path.read_bytes())
    data[66 + 2] ^= 1  # in the length of the second record
    path.write_bytes(data)
    assert [number for number, _ in read_some_records(str(path), {0})] == [0]
    with pytest.raises(DataError, match="record 1 is damaged: the checksum of its length"):
        list(read_some_records(str(path), {2}))
