"""The splits of a training: checked, opened once for all of its epochs, and their caches."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import tensorflow as tf

from darkroom.errors import DataError
from darkroom.input.files import ManifestSource, check_images
from darkroom.input.pipeline import count_batches, make_eval_dataset
from darkroom.input.records import RecordSource, check_commits, list_files, make_cache_folder
from darkroom.input.source import ImageSource
from darkroom.options.input import MEMORY_CACHE, NO_CACHE, InputOptions
from darkroom.runtime import progress


def open_split(
    split: str, paths: str | Sequence[str] | ImageSource, *, verify: bool
) -> ImageSource:
    """Opens the images of a split.

    Args:
        split: Its name: train or eval.
        paths: Paths or patterns of TFRecords; or a source that is open already.
        verify: Read the files and check their SHA-256.

    Raises:
        DataError: No file matches, or they cannot be used.
    """
    if not isinstance(paths, Sequence):
        return paths
    try:
        files = list_files(paths)
        return RecordSource(files, check_commits(files, verify))
    except DataError as error:
        raise _describe_unusable(split, error) from error


@contextmanager
def explain_damage(**splits: ImageSource) -> Iterator[None]:
    """Names the files of a list that cannot be decoded, where that may be what ended the block.

    Looking for them costs nothing before.

    Args:
        splits: What the block reads, by the names of the splits.

    Raises:
        DataError: The block ended with an error of TensorFlow, and there are such files.
    """
    try:
        yield
    except (tf.errors.InvalidArgumentError, tf.errors.NotFoundError):
        lists = {k: source for k, source in splits.items() if isinstance(source, ManifestSource)}
        if lists:
            with progress.step(f"Check the images of {' and '.join(lists)}"):
                check_images([*lists.values()])
        raise


def _describe_unusable(split: str, error: DataError) -> DataError:
    return DataError(f"The {split} split cannot be used: {error.message}", error.hint)


@contextmanager
def use_cache_folder(options: InputOptions) -> Iterator[InputOptions]:
    """Makes a folder for the files of a cache below the one named, and removes it in the end.

    TensorFlow refuses the files of a process that was killed, or that writes beside this one.

    Yields:
        Options with that folder; as they are where the cache has no files.
    """
    if options.cache in (NO_CACHE, MEMORY_CACHE):
        yield options
        return
    make_cache_folder(options.cache)
    with tempfile.TemporaryDirectory(
        prefix="darkroom-", dir=options.cache, ignore_cleanup_errors=True
    ) as folder:
        yield replace(options, cache=folder)


def make_evaluation_part(source: ImageSource, options: InputOptions) -> tf.data.Dataset:
    """Returns the batches that one process evaluates, as many as each of the others has.

    Args:
        source: The images of all.
        options: How they become batches; `shard` says which process of how many this is.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): every image in one process, once. The last
        batch may be smaller, or hold no image where another process has one left.
    """
    batches = make_eval_dataset(source, options)
    index, count = options.shard
    if count == 1:
        return batches
    parts = (replace(options, shard=(part, count)) for part in range(count))
    lengths = [count_batches(source, part, training=False) for part in parts]
    if lengths[index] < max(lengths):
        empty = (tf.zeros((0, *spec.shape[1:]), spec.dtype) for spec in batches.element_spec)
        batches = batches.concatenate(tf.data.Dataset.from_tensors(tuple(empty)))
    return batches
