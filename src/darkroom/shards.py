"""One shard: its worker reads its own images, checks them, and writes the file.

Threads read and decode (both release the interpreter's lock) while this one writes in the
manifest's order, so a shard's bytes do not depend on how many threads there are.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple, TypeVar

from darkroom import examples, index, storage
from darkroom.images import MAX_IMAGE_BYTES, ImageError, ImageOptions, PreparedImage, prepare_image
from darkroom.manifest import read_manifest_rows
from darkroom.rejects import CONVERT_STAGE, Reject, RejectsWriter
from darkroom.sharding import ShardRange, index_file, shard_file
from darkroom.storage import FileTooLargeError, NotAFileError
from darkroom.tfrecords import GZIP_SUFFIX, RecordWriter

_REMOTE_THREADS = 32
# Images in flight for each thread: enough to hide one slow image, few enough for large ones.
_WINDOW_PER_THREAD = 4

ManifestRow = Mapping[str, Any]
_In = TypeVar("_In")
_Out = TypeVar("_Out")


@dataclass(frozen=True)
class ShardTask:
    """All that a worker needs to write one shard; a few hundred bytes.

    Attributes:
        range: Its rows in the manifest.
        manifest: Folder of the manifest.
        examples: Folder of the dataset.
        index: Folder of the index.
        work: Folder for what is not finished, and for the shard's rejects.
        inputs: Kind of every input column by name.
        has_images: Whether rows name images.
        image: How images are checked and stored.
        compressed: Whether the file is gzip.
        total: Rows of the whole manifest, for progress.
        source: Fingerprint of the source, kept with the index so that a rerun knows it again.
    """

    range: ShardRange
    manifest: str
    examples: str
    index: str
    work: str
    inputs: Mapping[str, str]
    has_images: bool
    image: ImageOptions
    compressed: bool
    total: int
    source: str

    @property
    def file(self) -> str:
        """Path of the shard below the dataset."""
        suffix = GZIP_SUFFIX if self.compressed else ""
        return shard_file(self.range.split, self.range.shard, self.range.num_shards, suffix)

    @property
    def rejects(self) -> str:
        """Path of the shard's rejects."""
        return storage.join(self.work, f"rejects-{self.range.number:05d}.parquet")


class ShardReport(NamedTuple):
    """What became of a shard.

    Attributes:
        number: Its number within the dataset.
        split: Its split.
        file: Its path below the dataset.
        records: Number of its records.
        size_bytes: Length of the file.
        sha256: SHA-256 of the file, hexadecimal.
        rejects: Path of its rejects.
        rejected: Number of its rejects.
    """

    number: int
    split: str
    file: str
    records: int
    size_bytes: int
    sha256: str
    rejects: str
    rejected: int


def write_shard(
    task: ShardTask, tick: Callable[[int], None] = lambda num_rows: None
) -> ShardReport:
    """Writes a shard, its index and its rejects.

    Args:
        task: What to write.
        tick: Called with the number of rows done since the last call.
    """
    rows = read_manifest_rows(task.manifest, task.range.first_row, task.range.num_rows)
    index_rows: list[Mapping[str, Any]] = []
    with _shard_file(task) as file, RejectsWriter(task.rejects) as rejects:
        writer = RecordWriter(file, task.compressed)
        for row, outcome in _prepare_rows(task, rows):
            if isinstance(outcome, ImageError):
                rejects.add(_make_reject(row, outcome))
            else:
                sha256 = write_example(writer, row, outcome)
                place = {"shard": task.range.shard, "position": writer.records - 1}
                index_rows.append({**_index_row(row, outcome, sha256), **place})
            tick(1)
        writer.close()
    path = storage.join(task.index, index_file(task.range.number, task.range.total))
    index.write_index(path, index_rows, task.inputs, task.source)
    return ShardReport(
        task.range.number,
        task.range.split,
        task.file,
        writer.records,
        writer.size_bytes,
        writer.sha256,
        task.rejects,
        rejects.count,
    )


@contextmanager
def _shard_file(task: ShardTask) -> Iterator[BinaryIO]:
    """Yields the file to write to; it takes its final name only when the block ends well."""
    final = storage.join(task.examples, task.file)
    if storage.is_remote(final):
        with storage.open_write(final) as file:
            yield file
        return
    part = storage.join(task.work, os.path.basename(f"{task.range.number:05d}.part"))
    with storage.open_write(part) as file:
        yield file
        storage.sync_file(file)
    storage.rename(part, final)


def _prepare_rows(
    task: ShardTask, rows: Iterable[ManifestRow]
) -> Iterator[tuple[ManifestRow, PreparedImage | ImageError | None]]:
    if not task.has_images:
        for row in rows:
            yield row, None
        return
    threads = _REMOTE_THREADS if storage.is_remote(task.examples) else os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:

        def prepare(row: ManifestRow) -> tuple[ManifestRow, PreparedImage | ImageError]:
            return row, _read_image(row["uri"], task.image)

        yield from _map_ordered(pool, prepare, rows, threads * _WINDOW_PER_THREAD)


def _map_ordered(
    pool: ThreadPoolExecutor, function: Callable[[_In], _Out], items: Iterable[_In], window: int
) -> Iterator[_Out]:
    """Maps in threads and in order, with at most `window` results waiting."""
    waiting: deque[Future[_Out]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= window:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _read_image(uri: str, options: ImageOptions) -> PreparedImage | ImageError:
    try:
        return prepare_image(storage.read_bytes(uri, MAX_IMAGE_BYTES), options)
    except ImageError as error:
        return error
    except FileNotFoundError:
        return ImageError("missing", "there is no such file")
    except (NotAFileError, IsADirectoryError):
        return ImageError("not_a_file", "it is a folder or a device")
    except FileTooLargeError:
        return ImageError("too_large", f"it has more than {MAX_IMAGE_BYTES:,} bytes")
    except (OSError, ValueError) as error:
        return ImageError("unreadable", str(error))


def write_example(
    writer: RecordWriter, row: ManifestRow, image: PreparedImage | None
) -> str | None:
    """Writes the record of a row; returns the SHA-256 of its image, hexadecimal."""
    features = _input_features(row)
    if row["label_id"] is not None:
        features[examples.LABEL_NUMBER] = row["label_id"]
        features[examples.LABEL_TEXT] = row["label"].encode()
    if image is None:
        writer.write(examples.encode_example(features))
        return None
    sha256 = hashlib.sha256(image.encoded).hexdigest()
    features |= {
        examples.IMAGE_FORMAT: image.format.encode(),
        examples.IMAGE_HEIGHT: image.height,
        examples.IMAGE_WIDTH: image.width,
        examples.IMAGE_CHANNELS: image.channels,
        examples.IMAGE_FILENAME: row["id"].encode(),
        examples.IMAGE_SOURCE_ID: row["key"].encode(),
        examples.IMAGE_SHA256: sha256.encode(),
    }
    writer.write(examples.encode_example(features, image.encoded), image.encoded)
    return sha256


def _input_features(row: ManifestRow) -> dict[str, examples.FeatureValue]:
    """Returns the features of the input columns; an empty cell has none."""
    return {
        name: value.encode() if isinstance(value, str) else value
        for name, value in (row.get("extra") or {}).items()
        if value is not None
    }


def _index_row(row: ManifestRow, image: PreparedImage | None, sha256: str | None) -> dict[str, Any]:
    found = {name: row.get(name) for name in ("key", "row", "uri", "split", "label", "extra")}
    if image is None:
        return found
    return found | {
        "sha256": sha256,
        "pixel_hash": image.pixel_hash,
        "height": image.height,
        "width": image.width,
        "channels": image.channels,
        "format": image.format,
        "size_bytes": len(image.encoded),
        "luminance": image.luminance,
        "changes": ",".join(image.changes),
        "source_format": image.source_format,
        "source_height": image.source_height,
        "source_width": image.source_width,
    }


def _make_reject(row: ManifestRow, error: ImageError) -> Reject:
    return Reject(
        row["row"],
        row["uri"],
        row["split"],
        row["label"],
        CONVERT_STAGE,
        error.reason,
        error.detail,
        row["id"],
        row.get("extra") or {},
    )
