"""The TFRecord format: records framed by their length and two checksums.

A record is: length (uint64, little endian), masked CRC32C of those 8 bytes, data, masked CRC32C of
the data. The format has neither the number of records nor the length of the file, so a file cut
between two records looks complete. `dataset.json` has both.
"""

from __future__ import annotations

import ctypes
import gzip
import os
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import google_crc32c

from darkroom import storage
from darkroom.dataset.checksums import SummedFile
from darkroom.errors import DataError, StorageError

GZIP_SUFFIX = ".gz"
_HEADER = struct.Struct("<QI")
_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")
# A damaged header can have any length; records of images are far shorter than this.
_MAX_RECORD_BYTES = 1 << 31
# The disk begins to write after each part of this size, so that the final sync is short.
_WRITE_OUT_BYTES = 16 << 20
_SYNC_FILE_RANGE_WRITE = 2
_MAX_PIECES = min(1024, os.sysconf("SC_IOV_MAX"))


def check_crc_speed() -> None:
    """Checks that the checksum runs in C: Python would be a thousand times slower.

    Raises:
        StorageError: google-crc32c was installed without its C part.
    """
    if google_crc32c.implementation != "c":
        raise StorageError(
            "google-crc32c has no C part here, so writing records would take days.",
            "Install its wheel for this Python: pip install --force-reinstall google-crc32c",
        )


def _mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def frame_record(head: bytes, tail: bytes = b"") -> tuple[bytes, ...]:
    """Returns the pieces, in order, of the record whose data is `head` followed by `tail`.

    They are not joined: the image, which is the tail, is never copied.
    """
    length = _LENGTH.pack(len(head) + len(tail))
    crc = google_crc32c.extend(google_crc32c.value(head), tail)
    start = length + _CRC.pack(_mask(google_crc32c.value(length))) + head
    end = _CRC.pack(_mask(crc))
    return (start, tail, end) if tail else (start, end)


class RecordWriter:
    """Writes TFRecords to an open file, and counts and hashes them.

    Attributes:
        records: Number of records so far.
        size_bytes: Bytes in the file; complete once closed.
    """

    def __init__(self, file: BinaryIO, compressed: bool = False) -> None:
        self._sink = _HashingSink(file)
        # No name and no time in the gzip header, so that equal records make equal files.
        self._file: Any = (
            gzip.GzipFile("", "wb", fileobj=self._sink, mtime=0) if compressed else self._sink
        )
        self._compressed = compressed
        self.records = 0

    @property
    def size_bytes(self) -> int:
        """Bytes in the file so far."""
        return self._sink.size_bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the file so far, hexadecimal."""
        return self._sink.sum.sha256

    def write(self, head: bytes, tail: bytes = b"") -> None:
        """Writes one record whose data is `head` followed by `tail`."""
        self.write_framed(frame_record(head, tail), 1)

    def write_framed(self, pieces: Sequence[bytes], num_records: int) -> None:
        """Writes records as pieces from `frame_record`."""
        if self._compressed:
            for piece in pieces:
                self._file.write(piece)
        else:
            self._sink.write_all(pieces)
        self.records += num_records

    def close(self) -> None:
        """Ends the compressed stream, if there is one; the file stays open."""
        if self._compressed:
            self._file.close()


class _HashingSink(SummedFile):
    """Passes bytes on to a file, counting and hashing them."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        # None for remote files and those in memory.
        self._descriptor: int | None = None
        with suppress(AttributeError, OSError, NotImplementedError):
            self._descriptor = file.fileno()
        self._next_write_out = _WRITE_OUT_BYTES

    def write(self, data: Any) -> int:
        """Writes to the file."""
        self.write_all([data])
        return len(data)

    def write_all(self, pieces: Sequence[bytes]) -> None:
        """Writes pieces in order. On a local file it does so past the buffer of the file.

        So nothing else may write to that file.
        """
        if self._descriptor is None:
            for piece in pieces:
                self._file.write(piece)
        else:
            _write_vector(self._descriptor, pieces)
        for piece in pieces:
            self._digest.update(piece)
            self.size_bytes += len(piece)
        if self._descriptor is not None and self.size_bytes >= self._next_write_out:
            _start_write_out(self._descriptor)
            self._next_write_out = self.size_bytes + _WRITE_OUT_BYTES


def _write_vector(descriptor: int, pieces: Sequence[bytes]) -> None:
    """Writes pieces to a descriptor in a few calls, without joining them."""
    for start in range(0, len(pieces), _MAX_PIECES):
        some = pieces[start : start + _MAX_PIECES]
        left = sum(map(len, some)) - os.writev(descriptor, some)
        if left:  # The disk is full, or the call was interrupted: the next write tells which.
            rest = memoryview(b"".join(some))[-left:]
            while rest:
                rest = rest[os.write(descriptor, rest) :]


def _start_write_out(descriptor: int) -> None:
    """Makes the disk begin to write a local file, so that the final sync takes less time.

    Does nothing where the system does not offer the call.
    """
    with suppress(AttributeError):
        whole = ctypes.c_int64(0)
        ctypes.CDLL(None).sync_file_range(descriptor, whole, whole, _SYNC_FILE_RANGE_WRITE)


def read_records(path: str) -> Iterator[bytes]:
    """Yields the records of a file, gzip if it ends in `.gz`, checking every checksum.

    Raises:
        DataError: A checksum is wrong, or the file ends within a record.
    """
    with _open_records(path) as file:
        number = 0
        while (record := _read_record(path, number, file)) is not None:
            yield record
            number += 1


def read_some_records(path: str, numbers: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yields some records of a file with their numbers, from 0; the others are skipped.

    Raises:
        DataError: A checksum is wrong, or the file ends within a record.
    """
    with _open_records(path) as file:
        for number in range(max(numbers, default=-1) + 1):
            if number not in numbers:
                length = _parse_header(path, number, file.read(_HEADER.size)) or 0
                file.seek(length + _CRC.size, os.SEEK_CUR)
            elif (record := _read_record(path, number, file)) is not None:
                yield number, record


def read_place(file: BinaryIO, offset: int, length: int) -> bytes:
    """Returns the bytes at the place where an index says a record is; none where it cannot be."""
    if offset < 0 or not 0 < length <= _MAX_RECORD_BYTES:
        return b""
    file.seek(offset)
    return file.read(length)


def read_record_at(path: str, data: bytes, number: int) -> bytes:
    """Returns the record that the bytes at its place in a file hold.

    Raises:
        DataError: They are not a record.
    """
    record = data[_HEADER.size : -_CRC.size]
    if _parse_header(path, number, data[: _HEADER.size]) != len(record):
        raise _damaged(path, number, "its length is not the one that the index says")
    _check_data(path, number, record, data[-_CRC.size :])
    return record


@contextmanager
def _open_records(path: str) -> Iterator[Any]:
    with storage.open_read(path) as binary:
        yield gzip.GzipFile(fileobj=binary) if path.endswith(GZIP_SUFFIX) else binary


def _parse_header(path: str, number: int, header: bytes) -> int | None:
    """Returns the length of the record that follows a header, or None at the end of the file."""
    if not header:
        return None
    if len(header) < _HEADER.size:
        raise _damaged(path, number, "the file ends within its header")
    length, crc = _HEADER.unpack(header)
    if crc != _mask(google_crc32c.value(header[:8])) or length > _MAX_RECORD_BYTES:
        raise _damaged(path, number, "the checksum of its length is wrong")
    return int(length)


def _read_record(path: str, number: int, file: Any) -> bytes | None:
    """Returns the next record, or None at the end of the file."""
    try:
        length = _parse_header(path, number, file.read(_HEADER.size))
        if length is None:
            return None
        data: bytes = file.read(length)
        footer: bytes = file.read(_CRC.size)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise _damaged(path, number, f"it cannot be unpacked ({error})") from error
    if len(data) + len(footer) < length + _CRC.size:
        raise _damaged(path, number, "the file ends within it")
    _check_data(path, number, data, footer)
    return data


def _check_data(path: str, number: int, data: bytes, footer: bytes) -> None:
    if _CRC.unpack(footer)[0] != _mask(google_crc32c.value(data)):
        raise _damaged(path, number, "the checksum of its data is wrong")


def _damaged(path: str, number: int, what: str) -> DataError:
    return DataError(
        f"{path}: record {number} is damaged: {what}.",
        "Convert the source again, with overwrite (--overwrite) into the same folder.",
    )
