"""Input of training and evaluation: datasets, TFX Examples or lists of images to batches."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.input.pipeline import count_batches, make_eval_dataset, make_train_dataset
from darkroom.input.records import open_records
from darkroom.input.source import ImageSource
from darkroom.options.input import InputOptions


def input_fn(
    source: str | Sequence[str] | ImageSource,
    options: InputOptions,
    training: bool,
    *,
    verify: bool = False,
    epoch: int | None = None,
    skip_batches: int = 0,
) -> tf.data.Dataset:
    """Makes batches of the TFRecords of any TFX Examples artifact, for one's own `run_fn`.

    Those that darkroom made must be a finished dataset with the shards of its commit.

    Args:
        source: Paths or patterns, as in TFX's `fn_args.train_files`, gzip by suffix `.gz`; or what
            is open already, as a split that `open_images` returned.
        options: How records become batches.
        training: Shuffle, augment and repeat; else the whole images once, in a fixed order.
        verify: Read the files first and check their SHA-256; for what darkroom made only.
        epoch: For training, the number of the one epoch to make; see `make_train_dataset`.
        skip_batches: Batches of that epoch to leave out.

    Returns:
        Batches (uint8 [B, height, width, 3], int64 [B]): RGB pixels, label numbers; with mixup
        float32 [B, C] instead, shares of the C labels. The number of batches is known where that of
        the images is, as for what darkroom made, but for training by a tf.data service.

    Raises:
        DataError: No file matches, the dataset was never finished or is damaged, or the records
            hold no image or no label.
        UsageError: There is no full batch for each part of an epoch, or `verify` is asked of a
            source that is open already.
    """
    if isinstance(source, Sequence):
        source = open_records(source, verify)
    elif verify:
        raise UsageError(
            "verify is for paths of TFRecords, and this source is open already.",
            "Leave it out.",
        )
    if training:
        batches = make_train_dataset(source, options, epoch=epoch, skip_batches=skip_batches)
    else:
        batches = make_eval_dataset(source, options)
    # To count the records of others, all of them would have to be read. How many batches a service
    # makes depends on its workers.
    if not source.is_counted or (training and options.service):
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
    # Keras asks for it, and a shard that ends early is noticed.
    return batches.apply(tf.data.experimental.assert_cardinality(length))
