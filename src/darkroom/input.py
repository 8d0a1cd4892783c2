"""Input of training and evaluation: datasets, TFX Examples or lists of images to batches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from darkroom import storage
from darkroom.augmentation_options import DEFAULT_AUGMENTATION
from darkroom.errors import UsageError
from darkroom.image_source import ImageSource
from darkroom.input_pipeline import count_batches, make_eval_dataset, make_train_dataset
from darkroom.manifest_options import ManifestOptions
from darkroom.manifest_source import is_converted, open_manifest
from darkroom.options import STRETCH, InputOptions
from darkroom.record_source import RecordSource, check_commits, list_files, open_dataset
from darkroom.sources import AnySource

__all__ = [
    "InputOptions",
    "input_fn",
    "list_files",
    "load",
    "make_eval_dataset",
    "make_train_dataset",
]


def load(
    source: AnySource,
    *,
    image_size: tuple[int, int],
    batch_size: int = 32,
    training: bool = False,
    augment: str = DEFAULT_AUGMENTATION,
    resize: str = STRETCH,
    shuffle_records: int = 2048,
    deterministic: bool = True,
    seed: int = 0,
    verify: bool = False,
    stage: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
    manifest: ManifestOptions | None = None,
    **options: Any,
) -> dict[str, tf.data.Dataset]:
    """Opens a converted dataset, or the images that a list or a folder names, where they lie.

    Every shard of a dataset must be there with the size that was committed.

    Args:
        source: A folder that `darkroom.convert` wrote, or what it takes: the path of a CSV, JSONL
            or Parquet file, a pattern of such, a folder of images, a DataFrame; see
            `darkroom.manifest_source`.
        image_size: (height, width) in pixels.
        batch_size: Images in a batch.
        training: Shuffle the train split, and augment it as `augment` says.
        augment: What training does to images, as "flip" or "crop,flip,color=0.4"; see
            `darkroom.augmentation_options.parse_augmentation`.
        resize: How whole images become `image_size`: "stretch" or "center_crop".
        shuffle_records: Records held in memory to shuffle the train split.
        deterministic: The same training batches in every run.
        seed: Seed of everything random.
        verify: Read every shard first and check its SHA-256, which finds damage of any kind.
        stage: Copy a remote dataset to a local cache and read that; else TensorFlow must be able to
            read the store.
        cache_dir: The cache; see `darkroom.dataset_cache`.
        manifest: How the rows of such a source are read; see `ManifestOptions.parse`.
        options: Further ones of `InputOptions`, by name. Splits that are not trained on may have
            few files, and are shared by record whatever `shard_by` says.

    Returns:
        A dataset for each split that has records (train, eval, test), whose number of batches is
        known, but for training by a tf.data service. Its batches are
        (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels, in all splits.

    Raises:
        DataError: There is no valid `dataset.json`, a shard is missing or has another size or hash,
            or the records hold no image or no label.
        UsageError: An option is wrong.
        OSError: There is nothing at the path, or it cannot be read.
    """
    converted = is_converted(source)
    if converted and manifest is not None:
        raise UsageError(f"{source} is converted: options of a manifest do not apply to it.")
    if not converted and verify:
        raise UsageError("verify is for converted datasets: files have no committed SHA-256.")
    sources: Mapping[str, ImageSource]
    if converted:
        labels, sources = open_dataset(storage.absolute(source), verify, stage, cache_dir)
    else:
        labels, sources = open_manifest(source, manifest)
    input_options = InputOptions(
        image_size,
        batch_size=batch_size,
        augment=augment,
        resize=resize,
        shuffle_records=shuffle_records,
        deterministic=deterministic,
        seed=seed,
        **{"num_classes": len(labels), **options},
    )
    loaded = {}
    for name, images in sources.items():
        trains = training and name == "train"
        own = input_options if trains else replace(input_options, shard_by="record")
        batches = (make_train_dataset if trains else make_eval_dataset)(images, own)
        loaded[name] = _set_length(batches, images, own, trains)
    return loaded


def input_fn(
    file_patterns: str | Sequence[str],
    options: InputOptions,
    training: bool,
    *,
    verify: bool = False,
    epoch: int | None = None,
    skip_batches: int = 0,
) -> tf.data.Dataset:
    """Opens the TFRecords of any TFX Examples artifact, for one's own `run_fn`.

    Those that darkroom made must be a finished dataset with the shards of its commit.

    Args:
        file_patterns: Paths or patterns, as in TFX's `fn_args.train_files`; gzip by suffix `.gz`.
        options: How records become batches.
        training: Shuffle, augment and repeat; else the whole images once, in a fixed order.
        verify: Read the files first and check their SHA-256; for what darkroom made only.
        epoch: For training, the number of the one epoch to make; see `make_train_dataset`.
        skip_batches: Batches of that epoch to leave out.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels. The number of batches is known for what
        darkroom made, but for training by a tf.data service.

    Raises:
        DataError: No file matches, the dataset was never finished or is damaged, or the records
            hold no image or no label.
    """
    files = list_files(file_patterns)
    commits = check_commits(files, verify)
    source = RecordSource(files, commits)
    if training:
        batches = make_train_dataset(source, options, epoch=epoch, skip_batches=skip_batches)
    else:
        batches = make_eval_dataset(source, options)
    # To count the records of others, all of them would have to be read.
    if None in commits.values():
        return batches
    return _set_length(batches, source, options, training, epoch, skip_batches)


def _set_length(
    batches: tf.data.Dataset,
    source: ImageSource,
    options: InputOptions,
    training: bool,
    epoch: int | None = None,
    skip_batches: int = 0,
) -> tf.data.Dataset:
    """Makes the number of batches known: Keras asks for it, and a shard that ends early is seen."""
    if training and options.service:
        return batches
    length = count_batches(source, options, training=training)
    if training:
        if not length:
            raise UsageError(
                f"There is no full batch of {options.batch_size} images for each of "
                f"{options.shard[1]} parts: there are {source.count_images()} images.",
                "Make the batches smaller, or keep the last one (drop_remainder, shard).",
            )
        length = max(0, length - skip_batches)
        passes = options.repeat if epoch is None else 1
        length = int(tf.data.INFINITE_CARDINALITY) if passes is None else length * passes
    return batches.apply(tf.data.experimental.assert_cardinality(length))
