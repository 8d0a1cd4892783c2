"""TFRecords of images as a source of input: darkroom's datasets, and any TFX Examples artifact."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import tensorflow as tf

from darkroom import storage
from darkroom.data.splits import RecordSplit, stores_pixels
from darkroom.dataset.example import (
    IMAGE_CHANNELS,
    IMAGE_ENCODED,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    decode_example,
    name_image,
)
from darkroom.dataset.opening import build_missing_shards_error, check_unchanged, identify_commit
from darkroom.dataset.tfrecord import GZIP_SUFFIX, read_records
from darkroom.errors import DataError, StorageError, UsageError
from darkroom.input.lanes import READ_BUFFER_BYTES, read_lanes
from darkroom.input.source import EpochOrder, LabeledImage, spread
from darkroom.input.undecodable import find_undecodable
from darkroom.options.image import CHECK_FULL
from darkroom.options.input import MEMORY_CACHE, NO_CACHE, InputOptions
from darkroom.runtime.text import format_count, list_first
from darkroom.targets.kind import find_kind
from darkroom.targets.learning import find_learning

_IMAGE_FEATURES = {IMAGE_ENCODED: tf.io.FixedLenFeature([], tf.string)}
_SHAPE_FEATURES = {
    IMAGE_HEIGHT: tf.io.FixedLenFeature([], tf.int64),
    IMAGE_WIDTH: tf.io.FixedLenFeature([], tf.int64),
}
_RAW_FEATURES = {**_SHAPE_FEATURES, IMAGE_CHANNELS: tf.io.FixedLenFeature([], tf.int64)}

# The type of a column, and the default for records that lack it.
_COLUMNS = {"bytes": (tf.string, ""), "int64": (tf.int64, 0), "float": (tf.float32, math.nan)}
# Share of the memory budget for files that are read at the same time.
_READ_SHARE = 0.25
# Files that TensorFlow holds open for each file of a cycle.
_OPEN_FILES = 3
# Records that are read to measure their mean size.
_SAMPLED_RECORDS = 64
# Values of a feature that a message has.
_SHOWN_VALUES = 3
# Files of a sample that are read at the same time.
_SAMPLED_FILES = 8


class RecordSource:
    """TFRecord files; see `darkroom.input.source.ImageSource`.

    Attributes:
        files: Their paths in order, gzip-compressed when they end in `.gz`.
        split: The split that they are.
        element_bytes: Mean size of a record.
    """

    def __init__(
        self,
        split: RecordSplit,
        folders: Mapping[str, str] = MappingProxyType({}),
        columns: Sequence[str] = (),
    ) -> None:
        """Opens the files of a split, which were checked. `open_splits` does that.

        Args:
            split: The split.
            folders: Where to read the files of each of its datasets; see `fetch_datasets`.
            columns: Features that batches have beside image and label.

        Raises:
            DataError: There is no record, one of the first ones is damaged, the first one has no
                image or no label, or only some of the files store raw pixels.
            UsageError: The records do not have a column.
        """
        self.split, self._folders = split, folders
        self._listed = sorted(split.list_files(folders), key=lambda each: each.path)
        self.files = [each.path for each in self._listed]
        # Of a copy in the cache, the copy is what is read.
        self._commits = {folders.get(root, root): each for root, each in split.commits.items()}
        self._states = {folder: identify_commit(folder) for folder in self._commits}
        shards = [each.shard for each in self._listed if each.shard]
        self._counts: list[int] | None = None
        if len(shards) == len(self.files):
            self._counts = [shard.records for shard in shards]
        # Counted later, the files of other tools would come in another order.
        self._weights = self._counts or [1] * len(self.files)
        try:
            file, first, self.element_bytes = _sample_records(self.files)
            if self._counts and any(file.endswith(GZIP_SUFFIX) for file in self.files):
                sizes = map(len, self.make_sample(_SAMPLED_RECORDS).as_numpy_iterator())
                self.element_bytes = statistics.fmean(sizes)
            elif self._counts:
                total_bytes = sum(shard.bytes for shard in shards)
                self.element_bytes = total_bytes / sum(self._counts)
        except tf.errors.DataLossError:
            self.check_records()
            raise
        self._learning = find_learning(self.split.target.kind)
        self._size = self.split.target_size
        self._labels = self._learning.describe(self._size)
        _check_features(file, first, self._learning.required)
        self._cached: tf.data.Dataset | None = None
        self._features = {**_IMAGE_FEATURES, **self._labels}
        # darkroom writes upright images, so their shape is that of the records.
        if self._counts and all(
            commit and set(_SHAPE_FEATURES) <= set(commit.features)
            for commit in split.commits.values()
        ):
            self._features |= _SHAPE_FEATURES
        if stores_pixels(split.commits):
            self._features |= _RAW_FEATURES
        self._columns = tuple(columns)
        types = self.split.find_columns(self._columns) if columns else {}
        for name, kind in types.items():
            self._features[name] = tf.io.FixedLenFeature([], *_COLUMNS[kind])

    @property
    def is_counted(self) -> bool:
        """Whether the number of records is known without reading the files."""
        return self._counts is not None

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of records in a part. Files of other tools are read for it."""
        return sum(self._list_counts()[part[0] :: part[1]])

    def identify(self) -> str:
        """Returns a hash of the files' hashes; without a commit, of their names and sizes."""
        parts: list[Any] = []
        for path, _, _, shard in self._listed:
            if shard:
                parts.append(shard.sha256)
            else:
                parts.append([os.path.basename(path), tf.io.gfile.stat(path).length])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def select(self, part: tuple[int, int]) -> RecordSource:
        """Returns the source of a part: (index, count) is every `count`-th file from `index`."""
        index, count = part
        if count > len(self.files):
            raise UsageError(
                f"shard is {part!r}, but the number of files is only {len(self.files)}.",
                'Use shard_by="record".',
            )
        if count == 1:
            return self
        files: dict[str, list[str]] = {}
        for each in self._listed[index::count]:
            files.setdefault(each.root, []).append(each.name)
        return RecordSource(replace(self.split, files=files), self._folders, self._columns)

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns the serialised records, string [] each."""
        is_cached = options.record_cache != NO_CACHE
        if options.record_cache == MEMORY_CACHE:
            total_bytes = self.count_images() * self.element_bytes
            is_cached = total_bytes <= options.ram_budget_bytes / 2
        if not is_cached:
            return self._interleave(options, order)
        if self._cached is None:
            # TensorFlow puts this before the names of a cache's files; "" means in memory. It takes
            # existing files for its own, so other records need other names.
            name = ""
            if options.record_cache != MEMORY_CACHE:
                make_cache_folder(options.record_cache)
                name = os.path.join(options.record_cache, self.identify())
            # A cache gives its records in the order in which it got them.
            self._cached = self._interleave(options, None).cache(name)
        return self._cached

    def make_sample(self, count: int) -> tf.data.Dataset:
        """Returns serialised records, string [] each: the first ones of each file.

        A shard of darkroom is in the order of a hash. Files of other tools are read to count them.
        """
        ends = np.cumsum(self._list_counts(), dtype=np.int64)
        found = np.searchsorted(ends, spread(count, int(ends[-1])), side="right")
        numbers, most = np.unique(found, return_counts=True)
        files = tf.data.Dataset.from_tensor_slices(([self.files[n] for n in numbers], most))
        return files.interleave(
            tf.autograph.experimental.do_not_convert(
                lambda file, most: _read_file(file).take(most)
            ),
            cycle_length=_SAMPLED_FILES,
            num_parallel_calls=_SAMPLED_FILES,
            deterministic=True,
        )

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Returns the image of a record."""
        parsed = tf.io.parse_single_example(element, self._features)
        shape = None
        if IMAGE_HEIGHT in self._features:
            shape = tf.cast(tf.stack((parsed[IMAGE_HEIGHT], parsed[IMAGE_WIDTH])), tf.int32)
        channels = parsed.get(IMAGE_CHANNELS)
        label = self._learning.parse(parsed, self._size)
        columns = {name: parsed[name] for name in self._columns}
        return LabeledImage(parsed[IMAGE_ENCODED], label, shape, channels, columns)

    def parse_label(self, element: tf.Tensor) -> Any:
        """Returns the label of a record, and leaves its image alone."""
        parsed = tf.io.parse_single_example(element, self._labels)
        return self._learning.parse(parsed, self._size)

    def check_not_replaced(self) -> None:
        """Checks that the datasets are still those that were opened.

        Raises:
            DataError: One was replaced, or is gone.
        """
        check_unchanged(self._commits, self._states)

    def check_records(self) -> None:
        """Reads all records, to name those that TensorFlow could not read.

        TensorFlow's own error names neither the file nor the record.

        Raises:
            DataError: A shard is missing, a record is damaged, or a dataset is not the one that was
                opened.
            MissingPathError: A file of another tool is missing.
        """
        check_unchanged(self._commits)
        missing = [each for each in self._listed if not storage.exists(each.path)]
        if missing and not missing[0].shard:
            raise storage.build_missing_error(missing[0].path, "The file")
        if missing:
            folder = os.path.dirname(missing[0].path)
            paths = [each.path for each in missing]
            names = [os.path.basename(path) for path in paths if os.path.dirname(path) == folder]
            raise build_missing_shards_error(os.path.dirname(folder) or ".", folder, names)
        try:
            for each in self._listed:
                for _ in read_records(each.path):
                    pass
        except DataError as error:
            root = self._folders.get(each.root, each.root)
            hint = f"See all that is wrong with: darkroom verify {root}."
            raise DataError(error.message, hint if each.shard else error.hint) from None

    def check_targets(self) -> None:
        """Reads what all records are labelled with, to name one that TensorFlow refuses.

        Raises:
            DataError: A record lacks a feature, or what it is labelled with cannot be right.
        """
        kind = find_kind(self.split.target.kind)
        for file in self.files:
            for number, record in enumerate(read_records(file)):
                try:
                    label = self.parse(tf.constant(record)).label
                    batch = tf.nest.map_structure(lambda each: each[None], label)
                    self._learning.check(batch, len(self.split.labels) or None)
                except tf.errors.InvalidArgumentError as error:  # noqa: PERF203  ends the loop
                    features = decode_example(record)
                    said = {name: features.get(name, [])[:_SHOWN_VALUES] for name in kind.features}
                    raise DataError(
                        f"{file}: what record {number} ({name_image(features)}) is labelled with "
                        f"cannot be right. It has {said!r:.800}.",
                        "Convert the source again.",
                    ) from error

    def check_images(self) -> None:
        """Decodes the images of all records, to name those that cannot be decoded.

        Nothing is read where a conversion has decoded them all.

        Raises:
            DataError: Some cannot be decoded. The first ten are named.
        """
        commits = self.split.commits.values()
        if all(commit and commit.checks == CHECK_FULL for commit in commits):
            return
        damaged: list[str] = []
        for file, count in zip(self.files, self._list_counts(), strict=True):
            numbers = find_undecodable(_read_file(tf.constant(file)), count, self.parse)
            for number, record in enumerate(read_records(file) if numbers else ()):
                if number in numbers:
                    name = name_image(decode_example(record))
                    damaged.append(f"record {number} of {file} ({name})")
        if damaged:
            raise DataError(
                f"{len(damaged):,} of {format_count(self.count_images(), 'image')} cannot be "
                f"decoded: {list_first(damaged)}.",
                "Convert the source again with --image-check full, which rejects such images.",
            )

    def _list_counts(self) -> list[int]:
        """Returns the number of records of each file."""
        if self._counts is None:
            self._counts = [
                int(_read_file(tf.constant(file)).reduce(0, lambda count, _: count + 1))
                for file in self.files
            ]
        return self._counts

    def _interleave(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns the records of the files, several of which are read at a time, string [] each."""
        cycle_length, block_length = bound_reading(options, self.element_bytes)
        if order is None or not order.by_service:
            return read_lanes(self.files, self._weights, order, cycle_length, block_length)
        return order.shuffle_files(self.files).interleave(
            tf.autograph.experimental.do_not_convert(_read_file),
            cycle_length=cycle_length,
            block_length=block_length,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=options.deterministic,
        )


def make_cache_folder(path: str) -> None:
    """Makes the folder for the files of a cache.

    Raises:
        StorageError: The folder cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The cache cannot be kept in {path}: {error.strerror or error}.",
            "Set cache to another folder on a local disk, to memory or to none.",
        ) from error


def _check_features(file: str, record: bytes, labels: Sequence[str]) -> None:
    """Checks the first record, so that wrong data is an error before training starts."""
    features = tf.train.Example.FromString(record).features.feature
    missing = [key for key in (IMAGE_ENCODED, *labels) if key not in features]
    if missing:
        raise DataError(
            f"The first record of {file} has no {' and no '.join(missing)}; "
            f"it has {', '.join(sorted(features))}.",
            "Training needs records with an image and a label.",
        )


def bound_reading(options: InputOptions, record_bytes: float) -> tuple[int, int]:
    """Returns the cycle and the block length that keep read-ahead within its share of the budget.

    For a tf.data service, TensorFlow opens three times as many files as the cycle has, and holds
    two blocks and a record of each. Its own memory budget does not count them. A lane holds less.
    """
    most_bytes = options.ram_budget_bytes * _READ_SHARE / _OPEN_FILES
    file_bytes = most_bytes / options.cycle_length - READ_BUFFER_BYTES
    block_length = max(1, min(options.block_length, int(file_bytes / record_bytes - 1) // 2))
    file_bytes = READ_BUFFER_BYTES + (2 * block_length + 1) * record_bytes
    return max(1, min(options.cycle_length, int(most_bytes / file_bytes))), block_length


def _sample_records(files: Sequence[str]) -> tuple[str, bytes, float]:
    """Reads the first records of the first file that has any.

    Returns:
        The file, its first record, and the mean size of its first records in bytes.

    Raises:
        DataError: There is no record.
    """
    for file in files:
        records = _read_file(tf.constant(file)).take(_SAMPLED_RECORDS).as_numpy_iterator()
        for first in records:
            sizes = [len(first), *map(len, records)]
            return file, first, statistics.fmean(sizes)
    raise DataError(
        f"There is no record in {format_count(len(files), 'file')}: {', '.join(files[:3])}."
    )


def _read_file(file: tf.Tensor) -> tf.data.Dataset:
    """Returns the records of a file, string [] each. A path that ends in `.gz` means gzip."""
    is_gzip = tf.strings.regex_full_match(file, r".*\.gz")
    compression = tf.where(is_gzip, "GZIP", "")
    return tf.data.TFRecordDataset(file, compression, buffer_size=READ_BUFFER_BYTES)
