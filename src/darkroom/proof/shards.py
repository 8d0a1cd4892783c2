"""Verifies one shard: its SHA-256, and whether its records match the index.

A sound shard is read once, in blocks. Hashing runs without the interpreter's lock. After each block
its records are compared with their rows of the index. Checksums of records are compared only if the
hash is wrong, to say which record is damaged.
"""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from darkroom import storage
from darkroom.dataset.commit import Shard
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError

TRUNCATED, TOO_LONG, DAMAGED, FOREIGN = "truncated", "too long", "damaged", "foreign"

_BLOCK_BYTES = 1 << 20
# Most bytes of an unfinished record that are kept. Only an image can come after them.
_KEPT_BYTES = 1 << 20
_LENGTH = struct.Struct("<Q")
_HEADER_BYTES, _FOOTER_BYTES = 12, 4

# The necessary content of a record, byte for byte: the features that its row of the index has.
IndexEntry = tuple[bytes, ...]


class ShardDigest(NamedTuple):
    """The result of reading a shard.

    Attributes:
        size_bytes: Its length.
        sha256: SHA-256 of its bytes, hexadecimal.
        misfits: Positions of the first records that do not match the index; they mean nothing if
            the hash is wrong.
    """

    size_bytes: int
    sha256: str
    misfits: tuple[int, ...] = ()


class Diagnosis(NamedTuple):
    """The problem with a damaged shard.

    Attributes:
        kind: `truncated`, `too long`, `damaged` or `foreign`.
        what: The same in words, with the position.
    """

    kind: str
    what: str


def digest_shard(
    path: str,
    entries: Sequence[IndexEntry] | None = None,
    tick: Callable[[int], None] = lambda num_bytes: None,
) -> ShardDigest:
    """Reads a shard once, in bounded memory.

    Args:
        path: The file.
        entries: The necessary content of each record, in order; None to compare no records.
        tick: Called with the bytes read since the last call.

    Raises:
        OSError: The file is missing or cannot be read.
    """
    # An empty file is not opened: it may be a FIFO, and opening one would wait for ever.
    if not storage.is_remote(path) and not storage.stat_file(path).size_bytes:
        return ShardDigest(0, hashlib.sha256().hexdigest())
    digest, size_bytes = hashlib.sha256(), 0
    buffer = bytearray(_BLOCK_BYTES + _KEPT_BYTES)
    view, kept = memoryview(buffer), 0
    walk = None if entries is None else _IndexWalk(entries)
    with storage.open_read(path) as binary:
        file = cast(io.BufferedIOBase, binary)
        while count := file.readinto(view[kept : kept + _BLOCK_BYTES]):
            digest.update(view[kept : kept + count])
            size_bytes += count
            if walk:
                kept = walk.feed(buffer, kept + count)
            tick(count)
    return ShardDigest(size_bytes, digest.hexdigest(), tuple(walk.misfits) if walk else ())


class _IndexWalk:
    """Compares the records of a file with the rows of an index while the file is read."""

    _MAX_MISFITS = 10

    def __init__(self, entries: Sequence[IndexEntry]) -> None:
        self._entries = entries
        self._skip = 0
        self._number = 0
        self.misfits: list[int] = []

    def feed(self, buffer: bytearray, end: int) -> int:
        """Compares `buffer[:end]`; moves an unfinished record to its start, returns its length."""
        place = self._skip
        while place + _HEADER_BYTES <= end:
            stop = place + _HEADER_BYTES + _LENGTH.unpack_from(buffer, place)[0]
            if stop > end and end - place < _KEPT_BYTES:
                break
            if stop <= end:
                self._check(buffer, place + _HEADER_BYTES, stop)
            self._number += 1
            place = stop + _FOOTER_BYTES
        if place >= end:
            self._skip = place - end
            return 0
        self._skip = 0
        buffer[: end - place] = buffer[place:end]
        return end - place

    def _check(self, buffer: bytearray, start: int, stop: int) -> None:
        # The index may be shorter: the hash proves the number of records, too.
        expected = self._entries[self._number] if self._number < len(self._entries) else ()
        for entry in expected:
            if buffer.find(entry, start, stop) < 0:
                if len(self.misfits) < self._MAX_MISFITS:
                    self.misfits.append(self._number)
                return


def diagnose_shard(path: str, shard: Shard, size_bytes: int) -> Diagnosis:
    """Returns the problem with a shard that does not have the hash of the commit.

    Args:
        path: The file.
        shard: The shard as the commit describes it.
        size_bytes: Actual length of the file.

    Raises:
        OSError: The file cannot be read.
    """
    if not size_bytes:
        return Diagnosis(TRUNCATED, f"is empty, expected {shard.bytes:,} bytes")
    whole, fault = _walk_checksums(path)
    counted = f"{whole} whole records of {shard.records}"
    sizes = f"{size_bytes:,} bytes of {shard.bytes:,}"
    if size_bytes < shard.bytes:
        where = fault or "it ends between two records"
        return Diagnosis(TRUNCATED, f"has {sizes}: after {counted}, {where}")
    if size_bytes > shard.bytes:
        where = fault or "there are more bytes"
        return Diagnosis(TOO_LONG, f"has {sizes}: after {counted}, {where}")
    if fault:
        return Diagnosis(DAMAGED, f"has the right length, but after {counted}, {fault}")
    return Diagnosis(
        FOREIGN,
        f"has {whole} whole records, but not those of the commit: they may be of another run",
    )


def _walk_checksums(path: str) -> tuple[int, str]:
    """Returns the number of whole records before the first fault, and the fault or empty text."""
    whole = 0
    try:
        for _ in read_records(path):
            whole += 1
    except DataError as error:
        where = error.message.partition(" is damaged: ")[2].rstrip(".")
        return whole, f"record {whole} is damaged: {where}"
    return whole, ""
