"""Opens the splits of data as sources of images, and makes batches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import tensorflow as tf

from darkroom.data.open import list_examples, resolve_patterns
from darkroom.data.splits import ImageSplit, Split, fetch_datasets, group_by_folder
from darkroom.dataset.opening import read_unchanged
from darkroom.dataset.splits import TRAIN
from darkroom.errors import UsageError
from darkroom.input.damage import GuardedBatches
from darkroom.input.files import FileSource
from darkroom.input.pipeline import count_batches, make_eval_dataset, make_train_dataset
from darkroom.input.records import RecordSource
from darkroom.input.source import ImageSource
from darkroom.options.input import InputOptions


def open_splits(
    splits: Mapping[str, Split],
    *,
    verify: bool = False,
    stage: bool = True,
) -> dict[str, ImageSource]:
    """Returns the images of splits.

    Args:
        splits: The splits.
        verify: See `fetch_datasets`, also for `stage`.
        stage: See there.

    Raises:
        DataError: A file is missing or damaged, or records have no image or no label.
        UsageError: Images are in a store that TensorFlow cannot read.
        StorageError: The cache cannot be written, or the store fails.
    """
    folders = fetch_datasets(splits.values(), verify=verify, stage=stage)
    return {name: _open_split(each, folders) for name, each in splits.items()}


def open_datasets(
    splits: Mapping[str, Split],
    folders: Mapping[str, str],
    options: InputOptions,
    *,
    training: bool,
    columns: Sequence[str] = (),
) -> dict[str, tf.data.Dataset]:
    """Returns the batches of each split, by name; see `darkroom.load`.

    Args:
        splits: The splits.
        folders: Where to read the files of each dataset; see `fetch_datasets`.
        options: How images become batches.
        training: Shuffle and augment the train split.
        columns: Features of the records that batches have, too.

    Raises:
        DataError: Records have no image or no label.
        UsageError: An option does not fit the images, or there is no such column.
    """
    batches = {}
    for name, split in splits.items():
        trains = training and name == TRAIN
        own = options if trains else replace(options, shard_by="record")
        batches[name] = input_fn(_open_split(split, folders, columns), own, trains)
    return batches


def _open_split(
    split: Split, folders: Mapping[str, str], columns: Sequence[str] = ()
) -> ImageSource:
    if isinstance(split, ImageSplit):
        return FileSource(split)
    return RecordSource(split, folders, columns)


def open_files(file_patterns: str | Sequence[str], verify: bool = False) -> ImageSource:
    """Opens the TFRecord files that paths or patterns name, where they are.

    Raises:
        DataError: No file matches, a dataset was never finished or is damaged, there is nothing to
            verify by, or the records have no image or no label.
    """
    given = resolve_patterns(file_patterns)
    folders = [*group_by_folder(given)]

    def open_now() -> ImageSource:
        [source] = open_splits(list_examples({"": given}), verify=verify, stage=False).values()
        return source

    return read_unchanged(folders, open_now)


def input_fn(
    source: str | Sequence[str] | ImageSource,
    options: InputOptions,
    training: bool,
    *,
    verify: bool = False,
    epoch: int | None = None,
    skip_batches: int = 0,
) -> tf.data.Dataset:
    """Makes batches from TFRecords or images, for example in your own `run_fn`.

    TFRecords may be those of any TFX Examples artifact. If darkroom made them, they must be a
    finished dataset with the shards of its commit.

    Args:
        source: Paths or patterns, as in TFX's `fn_args.train_files`, gzip-compressed if they end in
            `.gz`; or an open source, for example a split that `open_images` returned.
        options: How images become batches.
        training: True: shuffle, augment and repeat. False: all images once, in a fixed order.
        verify: Read the files first and check their SHA-256. Only darkroom's datasets have one.
        epoch: For training, the number of the epoch to make; see `make_train_dataset`.
        skip_batches: Number of batches of that epoch to leave out.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels; of other kinds of targets, as boxes, what
        `darkroom.targets.KIND.learning` says. The number of batches is known if the number
        of images is, as in darkroom's datasets; not for training by a tf.data service.

    Raises:
        DataError: No file matches, the dataset was never finished or is damaged, or the records
            have no image or no label.
        UsageError: There is no full batch for each part of an epoch, or `verify` is set for an open
            source.
    """
    if isinstance(source, Sequence):
        source = open_files(source, verify)
    elif verify:
        raise UsageError(
            "verify is for paths of TFRecords, and this source is open already.",
            "Leave out verify.",
        )
    if training:
        batches = make_train_dataset(source, options, epoch=epoch, skip_batches=skip_batches)
    else:
        batches = make_eval_dataset(source, options)
    # Counting the records of other tools would mean reading them all. The number of batches that a
    # service makes depends on its workers.
    if not source.is_counted or (training and options.service):
        return GuardedBatches(batches, source)
    length = count_batches(source, options, training=training)
    if training:
        if not length:
            raise UsageError(
                f"There is no full batch of {options.batch_size} images for each of "
                f"{options.shard[1]} parts: there are {source.count_images()} images.",
                "Use a smaller batch_size, or keep the last batch (drop_remainder, shard).",
            )
        length = max(0, length - skip_batches)
        passes = options.repeat if epoch is None else 1
        length = int(tf.data.INFINITE_CARDINALITY) if passes is None else length * passes
    # Keras uses it, and a shard that ends early is noticed.
    counted = batches.apply(tf.data.experimental.assert_cardinality(length))
    return GuardedBatches(counted, source)
