"""TFRecords of images as a source of input: darkroom's datasets, and any TFX Examples artifact."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.audit.verify import check_hashes
from darkroom.dataset import commit as datasets
from darkroom.dataset import layout
from darkroom.dataset.example import (
    IMAGE_CHANNELS,
    IMAGE_ENCODED,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    LABEL_NUMBER,
)
from darkroom.errors import DataError, StorageError, UsageError
from darkroom.input.cache import stage_dataset
from darkroom.input.reading import (
    count_records,
    interleave_records,
    measure_records,
    read_records,
)
from darkroom.input.source import EpochOrder, LabeledImage
from darkroom.options.image import RAW_ENCODING
from darkroom.options.input import MEMORY_CACHE, NO_CACHE, InputOptions

IMAGE_FEATURES = {
    IMAGE_ENCODED: tf.io.FixedLenFeature([], tf.string),
    LABEL_NUMBER: tf.io.FixedLenFeature([], tf.int64),
}
_SHAPE_FEATURES = {
    IMAGE_HEIGHT: tf.io.FixedLenFeature([], tf.int64),
    IMAGE_WIDTH: tf.io.FixedLenFeature([], tf.int64),
}
_RAW_FEATURES = {**_SHAPE_FEATURES, IMAGE_CHANNELS: tf.io.FixedLenFeature([], tf.int64)}

# The commits of datasets by their folders; None for what another tool than darkroom wrote.
Commits = Mapping[str, datasets.Dataset | None]


class RecordSource:
    """TFRecord files; see `darkroom.input.source.ImageSource`.

    Attributes:
        files: Paths of TFRecord files in order, gzip-compressed when they end in `.gz`.
        element_bytes: Mean size of a record.
    """

    def __init__(self, files: Sequence[str], commits: Commits | None = None) -> None:
        """Opens files whose datasets were checked.

        Args:
            files: Paths of TFRecord files, gzip-compressed when they end in `.gz`.
            commits: What `check_commits` returned for them; None: it is read.

        Raises:
            DataError: There is no record, or the first one has no image or no label; or pixels are
                stored raw in some of the files only.
        """
        self.files = sorted(files)
        first = _check_first_record(self.files)
        self._cached: tf.data.Dataset | None = None
        self._counts: list[int] | None = None
        self._features = dict(IMAGE_FEATURES)
        self._commits = _read_commits(self.files) if commits is None else commits
        self._shards = shards = _find_shards(self.files, self._commits)
        if shards.keys() == set(self.files):
            self._counts = [shards[file][0].records for file in self.files]
            # What darkroom writes is upright.
            if all(set(_SHAPE_FEATURES) <= set(features) for _, features in shards.values()):
                self._features |= _SHAPE_FEATURES
        if _check_raw(self.files, self._commits):
            self._features |= _RAW_FEATURES
        self.element_bytes = measure_records(first)

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of records in a part; files of others than darkroom's are read."""
        if self._counts is None:
            self._counts = [count_records(file) for file in self.files]
        return sum(self._counts[part[0] :: part[1]])

    def identify(self) -> str:
        """Returns a hash of the files' hashes; of their names and sizes where no commit tells."""
        parts: list[Any] = []
        for file in self.files:
            if file in self._shards:
                parts.append(self._shards[file][0].sha256)
            else:
                parts.append([os.path.basename(file), tf.io.gfile.stat(file).length])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def select(self, part: tuple[int, int]) -> RecordSource:
        """Returns the source of a part: (index, count) is every `count`-th file from `index`."""
        index, count = part
        if count > len(self.files):
            raise UsageError(
                f"shard is {part!r}, but there are only {len(self.files)} files.",
                'Use shard_by="record".',
            )
        return self if count == 1 else RecordSource(self.files[index::count], self._commits)

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns the serialised records, string [] each."""
        if self._is_cached(options):
            # What comes out of a cache has the order in which it went in.
            if self._cached is None:
                name = self._name_cache(options.cache)
                self._cached = self._interleave(options, None).cache(name)
            return self._cached
        return self._interleave(options, order)

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Returns the image of a record."""
        parsed = tf.io.parse_single_example(element, self._features)
        shape = None
        if IMAGE_HEIGHT in self._features:
            shape = tf.cast(tf.stack((parsed[IMAGE_HEIGHT], parsed[IMAGE_WIDTH])), tf.int32)
        channels = parsed.get(IMAGE_CHANNELS)
        return LabeledImage(parsed[IMAGE_ENCODED], parsed[LABEL_NUMBER], shape, channels)

    def _interleave(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        paths = tf.data.Dataset.from_tensor_slices(self.files)
        if order is not None:
            paths = order.shuffle_files(self.files)
        return interleave_records(paths, options, self.element_bytes)

    def _name_cache(self, cache: str) -> str:
        """Returns what TensorFlow puts before the names of a cache's files; "": in memory.

        It takes files that it finds there for its own. Those of other records have other names.
        """
        if cache == MEMORY_CACHE:
            return ""
        make_cache_folder(cache)
        return os.path.join(cache, self.identify())

    def _is_cached(self, options: InputOptions) -> bool:
        if options.cache == MEMORY_CACHE:
            return self.count_images() * self.element_bytes <= options.ram_budget_bytes / 2
        return options.cache != NO_CACHE


def open_dataset(
    root: str, verify: bool, stage: bool, cache_dir: str | os.PathLike[str] | None
) -> tuple[tuple[str, ...], dict[str, RecordSource]]:
    """Opens a converted dataset, every shard of which must be there with its committed size.

    Args:
        root: Its folder.
        verify: Read every shard first and check its SHA-256.
        stage: Copy a remote dataset to a local cache and read that.
        cache_dir: The cache; see `darkroom.input.cache`.

    Returns:
        Its label map, and the records of each split that has some.

    Raises:
        DataError: There is no valid `dataset.json`, a shard is missing or has another size or hash,
            or the records hold no image or no label.
    """
    dataset = datasets.read_dataset(root)
    if stage:
        root = stage_dataset(root, dataset, cache_dir)
    datasets.check_files(root, dataset)
    if verify:
        check_hashes(root, dataset)
    sources = {
        name: RecordSource(
            [storage.join(root, shard.file) for shard in split.shards], {root: dataset}
        )
        for name, split in dataset.splits.items()
        if split.records
    }
    return dataset.labels, sources


def list_files(file_patterns: str | Sequence[str]) -> list[str]:
    """Returns the sorted files that paths or patterns name.

    Raises:
        DataError: No file matches.
    """
    patterns = [file_patterns] if isinstance(file_patterns, str) else list(file_patterns)
    files = sorted({file for pattern in patterns for file in tf.io.gfile.glob(pattern)})
    if not files:
        raise DataError(
            f"No file matches {', '.join(patterns) or 'an empty list of patterns'}.",
            "Check the path, and that the split has rows.",
        )
    return files


def make_cache_folder(path: str) -> None:
    """Makes the folder of a cache's files.

    Raises:
        StorageError: That does not work.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"The cache cannot be kept in {path}: {error.strerror or error}.",
            "Give another folder on local disk, memory, or none (cache).",
        ) from error


def check_commits(files: Sequence[str], verify: bool) -> Commits:
    """Checks the datasets of darkroom's that files belong to; what others made has no commit.

    Args:
        files: Paths of TFRecord files.
        verify: Read them, too, and check their SHA-256.

    Returns:
        The commits, for `RecordSource`.

    Raises:
        DataError: A dataset was never finished or is damaged, or there is nothing to verify by.
    """
    commits = _read_commits(files)
    for root, dataset in commits.items():
        if dataset is not None:
            datasets.check_files(root, dataset)
            if verify:
                places = map(_split_path, files)
                check_hashes(root, dataset, [name for folder, name in places if folder == root])
        elif verify:
            raise DataError(
                f"{root} cannot be verified: it has no {layout.DATASET_FILE}.",
                "Only what darkroom made has one; read the rest without verify.",
            )
    return commits


def _read_commits(files: Sequence[str]) -> Commits:
    roots = dict.fromkeys(_split_path(file)[0] for file in files)
    return {root: datasets.find_dataset(root) for root in roots}


def _split_path(file: str) -> tuple[str, str]:
    """Returns the dataset that a shard lies in, and the shard's path below it."""
    folder, name = os.path.split(file)
    root, split = os.path.split(folder)
    return root or ".", f"{split}/{name}"


def _find_shards(
    files: Sequence[str], commits: Commits
) -> dict[str, tuple[datasets.Shard, Sequence[str]]]:
    """Returns by file what commits say, where they do: the shard, and its records' features."""
    known: dict[tuple[str, str], tuple[datasets.Shard, Sequence[str]]] = {}
    for root, dataset in commits.items():
        if dataset is not None:
            for split in dataset.splits.values():
                known |= {(root, s.file): (s, tuple(dataset.features)) for s in split.shards}
    return {file: known[place] for file in files if (place := _split_path(file)) in known}


def _check_raw(files: Sequence[str], commits: Commits) -> bool:
    """Tells whether the datasets of files store pixels instead of encoded images."""
    found = {root: commits[root] for root in dict.fromkeys(_split_path(f)[0] for f in files)}
    raw = [root for root, dataset in found.items() if dataset and _is_raw(dataset)]
    if raw and len(raw) < len(found):
        other = next(root for root in found if root not in raw)
        raise DataError(
            f"{raw[0]} stores raw pixels, {other} does not.",
            "Read them one after the other, or convert them with the same --encoding.",
        )
    return bool(raw)


def _is_raw(dataset: datasets.Dataset) -> bool:
    return dataset.options.get("encoding") == RAW_ENCODING


def _check_first_record(files: Sequence[str]) -> str:
    """Checks the first record, so that a wrong kind of data is named before training starts.

    Returns:
        The file that has it.
    """
    for file in files:
        for record in islice(read_records(tf.constant(file)).as_numpy_iterator(), 1):
            features = tf.train.Example.FromString(record).features.feature
            missing = [key for key in IMAGE_FEATURES if key not in features]
            if missing:
                raise DataError(
                    f"The first record of {file} has no {' and no '.join(missing)}; "
                    f"it has {', '.join(sorted(features))}.",
                    "Training needs records with an image and a label.",
                )
            return file
    raise DataError(f"There is no record in {len(files)} files: {', '.join(files[:3])}.")
