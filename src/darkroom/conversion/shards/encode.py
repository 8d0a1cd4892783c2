"""Encodes rows of a manifest and their images as records, index rows and rejects.

Threads read images and encode records, in order and in bounded memory. A thread takes rows by the
batch: handing over one image at a time would cost more than reading it. Reading, decoding and
hashing release the interpreter's lock, so threads fill all cores.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

from darkroom import storage
from darkroom.dataset import example
from darkroom.dataset.columns import make_column
from darkroom.dataset.index import IMAGE_COLUMNS, IndexRow
from darkroom.dataset.manifest import ManifestRow
from darkroom.dataset.rejects import CONVERT_STAGE, OBJECT_STAGE, Reject, format_target
from darkroom.dataset.tfrecord import frame_record
from darkroom.errors import NOT_THE_DATA, RejectError, StorageError
from darkroom.images.access import NOT_THE_IMAGE, describe_failure
from darkroom.images.decoders import ImagePreparer
from darkroom.images.memory import BUDGET, Budget, count_images_at_once
from darkroom.images.prepare import MAX_IMAGE_BYTES, PreparedImage
from darkroom.images.sandbox import DecoderProcessError
from darkroom.options.image import ImageOptions
from darkroom.runtime.ordered_work import Crew, OrderedWork
from darkroom.targets.geometry import Placement
from darkroom.targets.kind import Placed, TargetKind

_REMOTE_THREADS = 32
# A batch that is large enough to make handing it over cheap; remote images take far longer.
_BATCH_ROWS, _REMOTE_BATCH_ROWS = 8, 1
_BATCH_BYTES = 2 << 20
# Batches in flight for each thread, so that no thread waits for one slow image.
_BATCHES_PER_THREAD = 2
_MAX_BYTES_IN_FLIGHT = 64 << 20  # of each shard
_UNKNOWN_BYTES = 1 << 20
# A store that refuses so many images, and gives none between them, does not judge single images.
_MAX_REFUSALS = 20

_Batch = list[ManifestRow]


class ImageReaders:
    """Threads that read images and encode their records, kept from shard to shard.

    Args:
        options: How images are checked and stored.
        budget: Memory for all images at once.
        processes: Number of processes that read images at the same time, this one included.
    """

    def __init__(self, options: ImageOptions, budget: Budget = BUDGET, processes: int = 1) -> None:
        local, remote = (
            -(-all_ // processes) for all_ in (count_images_at_once(), _REMOTE_THREADS)
        )
        self._preparer = ImagePreparer(options, budget=budget, max_processes=local)
        self._local = Crew(local, "darkroom-reader"), local
        self._remote = Crew(remote, "darkroom-remote-reader"), remote
        self._stopped = threading.Event()
        self._refusals: deque[StorageError] = deque(maxlen=_MAX_REFUSALS)

    def encode(
        self,
        rows: Iterable[ManifestRow],
        kind: TargetKind,
        write: Callable[[EncodedRows], None],
        take: Callable[[ManifestRow], PreparedImage | bytes | None] | None = None,
    ) -> None:
        """Encodes rows in several threads at once, and calls `write` in the order of the rows.

        When something raises, the readers are closed, and none of their threads works any more.

        Args:
            rows: The rows.
            kind: What they are labelled with.
            write: Takes the next encoded rows; called in the threads, by one at a time.
            take: Returns the record or image of a row that need not be read; called in the threads.
        """

        def encode(batch: _Batch) -> EncodedRows:
            with storage.limit(stopped=self._stopped):
                # All before the first is encoded: each step finds its own code in the caches.
                images = [(take and take(row)) or self._read(row) for row in batch]
                return encode_rows(batch, kind, images)

        try:
            for is_remote, images in itertools.groupby(
                rows, lambda row: row.old is None and storage.is_remote(row.uri)
            ):
                num_rows = _REMOTE_BATCH_ROWS if is_remote else _BATCH_ROWS
                crew, threads = self._remote if is_remote else self._local
                crew.run(
                    OrderedWork(
                        cut_batches(images, num_rows),
                        encode,
                        write,
                        threads * _BATCHES_PER_THREAD,
                        _MAX_BYTES_IN_FLIGHT,
                    )
                )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stops the threads, in the middle of their work."""
        self._stopped.set()
        self._preparer.close()
        for crew, _ in (self._local, self._remote):
            crew.close()

    def _read(self, row: ManifestRow) -> PreparedImage | RejectError:
        """Returns the image of a row as its record stores it, or why the row is rejected.

        Whatever does not say something about this one image is raised, and ends the conversion.
        """
        if self._stopped.is_set():
            raise InterruptedError("reading was stopped")
        try:
            data = storage.read_bytes(row.uri, MAX_IMAGE_BYTES)
            for copy in row.copies or ():
                if storage.read_bytes(copy, MAX_IMAGE_BYTES) != data:
                    raise RejectError(
                        "conflict",
                        f"{copy} has the same name and size, but is another image: rename one",
                    )
            self._refusals.clear()
            return self._preparer.prepare(data)
        except RejectError as error:
            return error
        except (*NOT_THE_DATA, DecoderProcessError, InterruptedError):
            raise  # says nothing about the image, which must not be rejected for it
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) in NOT_THE_IMAGE:
                raise
            self._count_refusal(error)
            return describe_failure(error)

    def _count_refusal(self, error: OSError | ValueError) -> None:
        """Ends the work when a store refuses one image after the other.

        Raises:
            StorageError: It does.
        """
        if not isinstance(error, StorageError):
            return  # there is no such object, or the image is on a disk
        self._refusals.append(error)
        if len(self._refusals) == _MAX_REFUSALS:
            raise type(error)(
                f"The store refused {_MAX_REFUSALS} images and gave none between them. The last: "
                f"{error.message}",
                error.hint,
            ) from error


def cut_batches(rows: Iterable[ManifestRow], num_rows: int) -> Iterator[tuple[_Batch, int]]:
    """Yields batches of rows, and the bytes of their images as far as they are known."""
    batch: _Batch = []
    size = 0
    for row in rows:
        batch.append(row)
        size += _UNKNOWN_BYTES if row.size is None and row.uri else row.size or 0
        if len(batch) >= num_rows or size >= _BATCH_BYTES:
            yield batch, size
            batch, size = [], 0
    if batch:
        yield batch, size


@dataclass
class EncodedRows:
    """Some rows of a manifest, encoded.

    Attributes:
        num_rows: Number of the rows.
        pieces: The bytes of their records, in order, not joined.
        index_rows: A row of the index for each record.
        rejects: The rows that became no record, and the objects that are in none.
        objects: The values of `ObjectCounts` for each row, where targets have objects.
    """

    num_rows: int = 0
    pieces: list[bytes] = field(default_factory=list)
    index_rows: list[IndexRow] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    objects: list[tuple[int, ...]] = field(default_factory=list)


def encode_rows(
    rows: Iterable[ManifestRow],
    kind: TargetKind,
    images: Iterable[PreparedImage | bytes | RejectError | None] = repeat(None),
) -> EncodedRows:
    """Returns the records of rows.

    Args:
        rows: The rows.
        kind: What they are labelled with.
        images: The image of each row, or why it cannot be used; None where rows have no images.
            Bytes are the whole record of a row, with its frame: nothing of it has changed.
    """
    encoded = EncodedRows()
    for row, image in zip(rows, images, strict=False):
        encoded.num_rows += 1
        if isinstance(image, bytes):
            encoded.pieces.append(image)
            encoded.index_rows.append(_keep_index_row(row, kind, len(image)))
            if kind.objects is not None:
                encoded.objects.append(_count_objects(len(row.label_id or ())))
            continue
        try:
            if isinstance(image, RejectError):
                raise image
            placed = _place(row, kind, image)
        except RejectError as error:
            label = make_column([row.label], kind.listed_type)[0].as_py()
            encoded.rejects.append(_make_reject(row, label, CONVERT_STAGE, error))
            if kind.objects is not None:
                encoded.objects.append(_count_objects(rejected=len(row.label_id or ())))
            continue
        for lost in placed.lost:
            encoded.rejects.append(_make_reject(row, lost.value, OBJECT_STAGE, lost.fault))
        if kind.objects is not None:
            counts = len(placed.numbers or ()), len(placed.lost), placed.merged, placed.cut
            encoded.objects.append(_count_objects(*counts))
        sha256 = hashlib.sha256(image.encoded).hexdigest() if image else None
        target = kind.encode(placed.value, placed.numbers)
        pieces = _frame_example(row, target, image, sha256)
        encoded.pieces += pieces
        length = sum(map(len, pieces))
        encoded.index_rows.append(_make_index_row(row, placed, image, sha256, length))
    return encoded


def _place(row: ManifestRow, kind: TargetKind, image: PreparedImage | None) -> Placed:
    """Returns the target of a record: the list says places in the file's pixels.

    Raises:
        RejectError: It cannot be that of the image.
    """
    if image is None:
        return Placed(row.label, row.label_id)
    sizes = (image.height, image.width), (image.source_height, image.source_width)
    return kind.place(row.label, row.label_id, Placement(image.matrix, *sizes))


def _make_reject(row: ManifestRow, label: Any, stage: str, fault: RejectError) -> Reject:
    """Returns the reject of a row, or of an object of it."""
    why = format_target(label), stage, fault.reason, fault.detail
    details = row.id, row.extra or {}, row.span, row.size
    return Reject(row.row, row.uri, row.split, *why, *details)


def _count_objects(
    written: int = 0, alone: int = 0, merged: int = 0, cut: int = 0, rejected: int = 0
) -> tuple[int, ...]:
    """Returns the values of `ObjectCounts` for a row, which may be `rejected` as a whole."""
    return written, alone + rejected, 0, merged, alone, cut, written


def _frame_example(
    row: ManifestRow,
    target: dict[str, example.FeatureValue],
    image: PreparedImage | None,
    sha256: str | None,
) -> tuple[bytes, ...]:
    """Returns the pieces of a record with its frame; `target` has the features of its label.

    The image is the end of the record's data: `reader.records` finds it there, by its length
    alone.
    """
    # An empty cell of an input column has no feature.
    features: dict[str, example.FeatureValue] = {
        name: value.encode() if isinstance(value, str) else value
        for name, value in (row.extra or {}).items()
        if value is not None
    }
    features |= target
    if image is None or sha256 is None:
        return frame_record(example.encode_example(features))
    features |= {
        example.IMAGE_FORMAT: image.format.encode(),
        example.IMAGE_HEIGHT: image.height,
        example.IMAGE_WIDTH: image.width,
        example.IMAGE_CHANNELS: image.channels,
        example.IMAGE_FILENAME: row.id.encode(),
        example.IMAGE_SOURCE_ID: example.encode_source_id(row.key, row.source_id),
        example.IMAGE_SHA256: sha256.encode(),
    }
    return frame_record(example.encode_example(features, image.encoded), image.encoded)


def _make_index_row(
    row: ManifestRow,
    placed: Placed,
    image: PreparedImage | None,
    sha256: str | None,
    length: int,
) -> IndexRow:
    """Returns the index row of a record that was made from its source.

    Args:
        row: Its row in the manifest.
        placed: The label of the record.
        image: Its image; None where rows have no images.
        sha256: SHA-256 of the image as stored, hexadecimal.
        length: Bytes of the record with its frame.
    """
    if image is None:
        return IndexRow(*_list_columns(row, placed), length=length)
    return IndexRow(
        *_list_columns(row, placed),
        sha256,
        image.pixel_hash,
        image.decoded_hash,
        image.perceptual_hash,
        image.private,
        image.height,
        image.width,
        image.channels,
        image.format,
        len(image.encoded),
        image.luminance,
        ",".join(image.changes),
        image.source_format,
        image.source_height,
        image.source_width,
        row.size,
        row.mtime,
        length,
    )


def _list_columns(
    row: ManifestRow, placed: Placed
) -> tuple[str, str, int, str, str, int, Any, Any, str | None, str | None, int | None, Any]:
    """Returns the columns of the index that the list says; the label is that of the record."""
    names = row.key, row.id, row.row, row.uri, row.split, row.span
    optional = row.group, row.ignored, row.source_id
    return *names, placed.value, row.extra, *optional, placed.listed


def _keep_index_row(row: ManifestRow, kind: TargetKind, length: int) -> IndexRow:
    """Returns the index row of a record of the old dataset."""
    old = row.old or {}
    placed = Placed(row.label, row.label_id)
    if kind.listed is not None:
        placed = Placed(old["label"], row.label_id, row.label)
    facts: dict[str, Any] = {name: old[name] for name in IMAGE_COLUMNS}
    facts |= {"source_size": row.size, "source_version": row.mtime, "length": length}
    return IndexRow(*_list_columns(row, placed), **facts)
