"""Batches for training and evaluation from CSV files of numbers, with tf.data.

A line is a record. TensorFlow handles lines in blocks, never one by one: one operation parses a
block, and in training another one permutes the rows of a few thousand lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from darkroom.data.open import list_files
from darkroom.input.tables.csv_table import CsvColumns, CsvOptions, find_problem, read_table

# Each block costs a call of Python. With 512 lines, that took as long as everything else.
_BLOCK_LINES = 2048
# Files that are read in turns in training.
_CYCLE_FILES = 16
_PREFETCHED_BATCHES = 2


def make_csv_dataset(
    file_patterns: str | Sequence[str],
    options: CsvOptions,
    *,
    training: bool,
) -> tf.data.Dataset:
    """Returns batches of the numbers in CSV files.

    The first line of every file names its columns, which are the same in all files. Cells may be
    quoted, but must not contain a line break. Empty lines are left out. Columns that are neither
    feature nor label may contain anything. In training, files and rows are shuffled; otherwise rows
    have the order of their lines, in files sorted by name. The order never depends on threads.

    Args:
        file_patterns: Paths or patterns of UTF-8 files, gzip-compressed when they end in `.gz`.
        options: How lines become batches.
        training: Shuffle.

    Returns:
        Batches (float32 [B, F], int64 or float32 [B]): features, label. A cell that is not a finite
        number ends the iteration with a `tf.errors.InvalidArgumentError` that names file, line and
        column. The dataset contains a Python function, called once a block, so a tf.data service
        cannot run it.

    Raises:
        DataError: No file matches, a header is missing or differs from that of the first file, or
            a column does not exist.
        OSError: A file cannot be read.
    """
    files = list_files(file_patterns)
    table = read_table(files, options)
    if not training:
        return _set_options(_make_epoch(tf.constant(files), table, None))
    if options.epoch is None:
        epochs = tf.data.Dataset.random(options.seed, rerandomize_each_iteration=True).take(1)
    else:
        epochs = tf.data.Dataset.from_tensors(tf.constant(options.epoch, tf.int64))

    def make(epoch: tf.Tensor) -> tf.data.Dataset:
        return _make_epoch(tf.constant(files), table, epoch)

    return _set_options(epochs.flat_map(_plain(make)))


def _set_options(batches: tf.data.Dataset) -> tf.data.Dataset:
    settings = tf.data.Options()
    # As in `darkroom.input.pipeline`. AUTOTUNE then means one thread for each core.
    settings.autotune.enabled = False
    return batches.with_options(settings).prefetch(_PREFETCHED_BATCHES)


def _make_epoch(files: tf.Tensor, table: CsvColumns, epoch: tf.Tensor | None) -> tf.data.Dataset:
    """Returns one pass over the files, in the order of `epoch`; None: in the files' own order."""
    options = table.options
    paths = tf.data.Dataset.from_tensor_slices(
        files
        if epoch is None
        else _permute([files], options.seed, epoch, tf.constant(-1, tf.int64))[0]
    )
    blocks = paths.interleave(
        _plain(_read_blocks),
        cycle_length=1 if epoch is None else _CYCLE_FILES,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    rows = blocks.map(
        _plain(lambda *block: _decode_block(table, *block)),
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    if epoch is not None:

        def permute(window: tf.Tensor, batch: Any) -> Any:
            return tuple(_permute(batch, options.seed, epoch, window))

        rows = rows.rebatch(options.shuffle_rows).enumerate().map(_plain(permute))
    return rows.rebatch(options.batch_size)


def _permute(
    tensors: Sequence[tf.Tensor], seed: int, epoch: tf.Tensor, window: tf.Tensor
) -> list[tf.Tensor]:
    """Permutes the first axis of all tensors in the same way. The numbers decide the order."""
    key = tf.random.stateless_uniform(
        [2], tf.stack([tf.constant(seed, tf.int64), epoch]), None, None, tf.int64
    )
    key += tf.stack([window, tf.zeros_like(window)])
    order = tf.argsort(tf.random.stateless_uniform([tf.shape(tensors[0])[0]], key))
    return [tf.gather(tensor, order) for tensor in tensors]


def _read_blocks(file: tf.Tensor) -> tf.data.Dataset:
    """Returns (file, number of the first line, lines [N]) for every block of a file."""
    compression = tf.where(tf.strings.regex_full_match(file, r"(?s).*\.gz"), "GZIP", "")
    lines = tf.data.TextLineDataset(file, compression).skip(1).batch(_BLOCK_LINES)

    def describe(number: tf.Tensor, block: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return file, number * _BLOCK_LINES + 2, block

    return lines.enumerate().map(_plain(describe))


def _decode_block(
    table: CsvColumns, file: tf.Tensor, first: tf.Tensor, lines: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns float32 [N, F] and the labels [N] of a block, without its empty lines."""

    def decode(file: tf.Tensor, first: tf.Tensor, lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        is_filled = tf.strings.length(lines) > 0
        filled = lines if tf.reduce_all(is_filled) else tf.boolean_mask(lines, is_filled)
        try:
            return table.decode(filled)
        except tf.errors.InvalidArgumentError as error:
            problem = find_problem(table, file.numpy().decode(), int(first), lines)
            # TensorFlow turns this into an InvalidArgumentError.
            raise ValueError(problem or str(error)) from None

    # Only Python can report an error with its line. It is called once a block.
    features, labels = tf.py_function(
        decode, [file, first, lines], [tf.float32, table.options.label_type]
    )
    features = tf.ensure_shape(features, [None, len(table.features)])
    return features, tf.ensure_shape(labels, [None])


def _plain(function: Any) -> Any:
    """Keeps AutoGraph from rewriting a function that has no Python control flow."""
    return tf.autograph.experimental.do_not_convert(function)
