"""Computes the features of a dataset, of each image once: those that a cache has are not computed.

Images are read from the records. In the cache they have the keys of a training, so that each of
both finds what the other one has computed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from darkroom import storage
from darkroom.dataset.commit import Dataset
from darkroom.dataset.example import (
    IMAGE_CHANNELS,
    IMAGE_ENCODED,
    IMAGE_FORMAT,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    decode_example,
)
from darkroom.dataset.index import read_index_batches
from darkroom.dataset.layout import Folders
from darkroom.dataset.tfrecord import read_some_records
from darkroom.errors import DarkroomError, UsageError
from darkroom.features.cache import FeatureCache, find_cached, make_cache_key
from darkroom.features.networks.network import Network
from darkroom.features.table import Features, write_features
from darkroom.features.values import make_values
from darkroom.images.views import RAW_FORM, STORED_FORMATS, choose_part, decode_view, load_opencv
from darkroom.options.input import STRETCH
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.machine import count_cores
from darkroom.runtime.ordered_work import look_ahead
from darkroom.runtime.text import format_count
from darkroom.storage.parquet import BATCH_ROWS

# Images that a network sees at once, and those of which a run that is killed loses the features.
_BATCH_IMAGES, _KEPT_IMAGES = 32, 256
# Batches that are decoded while one is computed.
_BATCHES_AHEAD = 2


class Counts(NamedTuple):
    """What was computed.

    Attributes:
        images: Images that have features.
        computed: Those whose features were not known.
        undecodable: Images that no decoder reads; they have none.
    """

    images: int
    computed: int
    undecodable: int


def write_dataset_features(
    file: BinaryIO,
    dataset: Dataset,
    folders: Folders,
    network: Network,
    earlier: Features | None = None,
) -> Counts:
    """Writes the table of features of a dataset.

    Args:
        file: Gets the table.
        dataset: The commit.
        folders: Where its records and its index are.
        network: Computes the features.
        earlier: Those of another dataset, which are taken for the same images.

    Raises:
        DataError: The index or a record is damaged.
        MissingExtraError: OpenCV is not installed.
        UsageError: The network gives numbers that are not finite, or too large for float16.
        OSError: A file cannot be read.
    """
    load_opencv()
    files = [storage.join(folders.index, file) for file in dataset.index_files]
    rows = number_contents(files)
    values = make_values((dataset.written, network.width), np.float16)
    kept = find_cached(f"{network.identity}-{STRETCH}")
    cache = FeatureCache(kept)
    known = cache.load(rows, values)
    if known:
        progress.note(f"The features of {format_count(len(known), 'image')} are known from {kept}.")
    if earlier and earlier.model == network.model:
        for sha256, each in zip(earlier.contents.to_pylist(), earlier.values, strict=True):
            # Raw pixels have other keys.
            if (key := bytes.fromhex(sha256)) in rows and key not in known:
                values[rows[key]] = each
                known.add(key)
    missing = {own[0]: key for key, own in rows.items() if key not in known}
    with progress.step("Features") if missing else nullcontext():
        done = 0
        records = _read_records(dataset, folders, missing)
        for group, features in _compute(records, network, len(missing)):
            keys = [missing[row] for row in group]
            cache.add(keys, features)
            known.update(keys)
            with np.errstate(over="ignore"):  # judged below
                for key, each in zip(keys, features, strict=True):
                    values[rows[key]] = each
            done += len(keys)
    has = np.zeros(dataset.written, bool)
    for key in known:
        has[rows[key]] = True

    def read_rows() -> Iterator[tuple[pa.Table, Array]]:
        start = 0
        for table in _read_index(files, ("key", "sha256")):
            chosen = np.flatnonzero(has[start : start + len(table)])
            found = values[start + chosen]
            _check_finite(found, network)
            start += len(table)
            yield table.take(pa.array(chosen)), found

    write_features(file, network.model, network.width, read_rows())
    images, undecodable = int(has.sum()), len(missing) - done
    if undecodable:
        progress.note(f"{format_count(undecodable, 'image')} cannot be decoded: no features.")
    return Counts(images, done, undecodable)


def _check_finite(features: Array, network: Network) -> None:
    if not np.isfinite(features).all():
        raise UsageError(
            f"The model {network.name} gives numbers that are not finite, or larger than 65,504.",
            "Give a model that ends in features of a smaller scale.",
        )


def _read_index(files: Iterable[str], names: Sequence[str]) -> Iterator[pa.Table]:
    for file in files:
        yield from read_index_batches(file, names, BATCH_ROWS)


def number_contents(files: Iterable[str]) -> dict[bytes, list[int]]:
    """Returns the places in the files of an index where each image is, by its key in the cache."""
    names = ("sha256", "format", "height", "width", "channels")
    found: dict[bytes, list[int]] = {}
    place = -1
    for table in _read_index(files, names):
        for sha256, form, *shape in zip(*table.select(names).to_pydict().values(), strict=True):
            place += 1
            if sha256 is not None:
                key = make_cache_key(
                    bytes.fromhex(sha256), shape if form == STORED_FORMATS[RAW_FORM] else None
                )
                found.setdefault(key, []).append(place)
    return found


def _read_records(
    dataset: Dataset, folders: Folders, rows: Collection[int]
) -> Iterator[tuple[int, bytes]]:
    """Yields some rows of the index in order, with their records."""
    wanted, start = np.sort(np.fromiter(rows, np.int64, len(rows))), 0
    for shard in dataset.shards:
        first, stop = np.searchsorted(wanted, (start, start + shard.records))
        chosen = set((wanted[first:stop] - start).tolist())
        if chosen:
            path = storage.join(folders.examples, shard.file)
            for number, record in read_some_records(path, chosen):
                yield start + number, record
        start += shard.records


def _compute(
    records: Iterator[tuple[int, bytes]], network: Network, total: int
) -> Iterator[tuple[list[int], Array]]:
    """Yields rows and their features [n, D], in the groups of the cache, without undecodable ones.

    Threads decode the next images while the network computes.
    """
    done = 0
    rows: list[int] = []
    computed: list[Array] = []
    with ThreadPoolExecutor(count_cores()) as pool:

        def begin() -> Iterator[tuple[list[int], Iterator[Array | None]]]:
            while batch := [*islice(records, _BATCH_IMAGES)]:
                views = pool.map(partial(_decode, network.image_size), [each for _, each in batch])
                yield [row for row, _ in batch], views

        for numbers, views in look_ahead(begin(), _BATCHES_AHEAD):
            pairs = zip(numbers, views, strict=True)
            decoded = {row: view for row, view in pairs if view is not None}
            if decoded:
                rows += decoded
                computed.append(network.compute(np.stack([*decoded.values()])))
            done += len(numbers)
            progress.advance(done, total, "images")
            if len(rows) >= _KEPT_IMAGES:
                yield rows, np.concatenate(computed).astype(np.float32, copy=False)
                rows, computed = [], []
    if rows:
        yield rows, np.concatenate(computed).astype(np.float32, copy=False)


def _decode(image_size: tuple[int, int], record: bytes) -> Array | None:
    """Returns the view of a record, uint8 [height, width, 3]; None if no decoder reads it."""
    found: dict[str, Any] = decode_example(record)
    view = np.empty((*image_size, 3), np.uint8)
    try:
        form = STORED_FORMATS.index(found[IMAGE_FORMAT][0].decode())
        shape = [found[name][0] for name in (IMAGE_HEIGHT, IMAGE_WIDTH, IMAGE_CHANNELS)]
        part = choose_part(form, shape, None, image_size)
        decode_view(found[IMAGE_ENCODED][0], form, shape, part, view)
    except (DarkroomError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  decoders raise whatever they meet
        return None
    return view
