"""Input of training and evaluation: datasets, TFX Examples or lists of images to batches."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from darkroom.input.pipeline import make_eval_dataset, make_train_dataset, set_length
from darkroom.input.records import RecordSource, check_commits, list_files
from darkroom.options.input import InputOptions


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
    return set_length(batches, source, options, training, epoch, skip_batches)
