"""The TFRecord format: records framed by their length and two checksums.

A record is: length (uint64, little endian), masked CRC32C of those 8 bytes, data, masked CRC32C of
the data. The format knows neither the number of records nor the length of the file, so a file cut
between two records looks whole: `dataset.json` is what tells.
"""

from __future__ import annotations

import gzip
import hashlib
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import google_crc32c

from darkroom import storage
from darkroom.errors import DataError, StorageError

GZIP_SUFFIX = ".gz"
_HEADER = struct.Struct("<QI")
_CRC = struct.Struct("<I")
# A length that a damaged header could claim; TFRecords of images are far below it.
_MAX_RECORD_BYTES = 1 << 31


def check_crc_speed() -> None:
    """Checks that the checksum runs in C: in Python it would be a thousand times slower.

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


class RecordWriter:
    """Writes TFRecords to an open file and counts what it wrote.

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
        """Bytes that went into the file."""
        return self._sink.size_bytes

    @property
    def sha256(self) -> str:
        """SHA-256 of the file so far, hexadecimal."""
        return self._sink.digest.hexdigest()

    def write(self, head: bytes, tail: bytes = b"") -> None:
        """Writes one record whose data is `head` followed by `tail`."""
        length = _HEADER.pack(len(head) + len(tail), 0)[:8]
        crc = google_crc32c.extend(google_crc32c.value(head), tail)
        header = length + _CRC.pack(_mask(google_crc32c.value(length)))
        self._file.write(header + head)
        if tail:
            self._file.write(tail)
        self._file.write(_CRC.pack(_mask(crc)))
        self.records += 1

    def close(self) -> None:
        """Ends the compressed stream, if there is one; the file stays open."""
        if self._compressed:
            self._file.close()


class _HashingSink:
    """Passes bytes on to a file, counting and hashing them."""

    def __init__(self, file: BinaryIO) -> None:
        self._target = file
        self.digest = hashlib.sha256()
        self.size_bytes = 0

    def write(self, data: bytes) -> int:
        self._target.write(data)
        self.digest.update(data)
        self.size_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        self._target.flush()


def read_records(path: str) -> Iterator[bytes]:
    """Yields the records of a file, gzip if it ends in `.gz`, checking every checksum.

    Raises:
        DataError: A checksum is wrong, or the file ends within a record.
    """
    with storage.open_read(path) as binary:
        file: Any = gzip.GzipFile(fileobj=binary) if path.endswith(GZIP_SUFFIX) else binary
        number = 0
        while header := file.read(_HEADER.size):
            yield _read_record(path, number, header, file)
            number += 1


def _read_record(path: str, number: int, header: bytes, file: Any) -> bytes:
    if len(header) < _HEADER.size:
        raise _damaged(path, number, "the file ends within its header")
    length, crc = _HEADER.unpack(header)
    if crc != _mask(google_crc32c.value(header[:8])) or length > _MAX_RECORD_BYTES:
        raise _damaged(path, number, "the checksum of its length is wrong")
    data: bytes = file.read(length)
    footer: bytes = file.read(_CRC.size)
    if len(data) + len(footer) < length + _CRC.size:
        raise _damaged(path, number, "the file ends within it")
    if _CRC.unpack(footer)[0] != _mask(google_crc32c.value(data)):
        raise _damaged(path, number, "the checksum of its data is wrong")
    return data


def _damaged(path: str, number: int, what: str) -> DataError:
    return DataError(f"{path}: record {number} is damaged: {what}.", "Convert the dataset again.")
