"""TFRecord files as tf.data reads them: one file, or several in turns within a memory budget."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import tensorflow as tf

from darkroom.errors import DataError
from darkroom.options.input import InputOptions
from darkroom.runtime.text import format_count

_READ_BUFFER_BYTES = 1 << 20
# Share of the memory budget for files that are read at the same time.
_READ_SHARE = 0.25
# Files that TensorFlow holds open for each file of a cycle.
_OPEN_FILES = 3
# Records that are read to measure their mean size.
_SAMPLED_RECORDS = 64


def interleave_records(
    paths: tf.data.Dataset, options: InputOptions, record_bytes: float
) -> tf.data.Dataset:
    """Returns the records of several files, which are read in turns, string [] each.

    Args:
        paths: Paths of the files, string [] each.
        options: How to read.
        record_bytes: Mean size of a record.
    """
    cycle_length, block_length = bound_reading(options, record_bytes)
    return paths.interleave(
        tf.autograph.experimental.do_not_convert(make_record_dataset),
        cycle_length=cycle_length,
        block_length=block_length,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=options.deterministic,
    )


def bound_reading(options: InputOptions, record_bytes: float) -> tuple[int, int]:
    """Returns the cycle and the block length that keep read-ahead within its share of the budget.

    TensorFlow opens three times as many files as the cycle has, and holds two blocks and a record
    of each. Its own memory budget does not count them.
    """
    most_bytes = options.ram_budget_bytes * _READ_SHARE / _OPEN_FILES
    file_bytes = most_bytes / options.cycle_length - _READ_BUFFER_BYTES
    block_length = max(1, min(options.block_length, int(file_bytes / record_bytes - 1) // 2))
    file_bytes = _READ_BUFFER_BYTES + (2 * block_length + 1) * record_bytes
    return max(1, min(options.cycle_length, int(most_bytes / file_bytes))), block_length


def sample_records(files: Sequence[str]) -> tuple[str, bytes, float]:
    """Reads the first records of the first file that has any.

    Returns:
        The file, its first record, and the mean size of its first records in bytes.

    Raises:
        DataError: There is no record.
    """
    for file in files:
        records = make_record_dataset(tf.constant(file)).take(_SAMPLED_RECORDS).as_numpy_iterator()
        for first in records:
            sizes = [len(first), *map(len, records)]
            return file, first, statistics.fmean(sizes)
    raise DataError(
        f"There is no record in {format_count(len(files), 'file')}: {', '.join(files[:3])}."
    )


def count_records(file: str) -> int:
    """Returns the number of records in a file. It reads the whole file."""
    return int(make_record_dataset(tf.constant(file)).reduce(0, lambda count, _: count + 1))


def make_record_dataset(file: tf.Tensor) -> tf.data.Dataset:
    """Returns the records of a file, string [] each. A path that ends in `.gz` means gzip."""
    is_gzip = tf.strings.regex_full_match(file, r".*\.gz")
    compression = tf.where(is_gzip, "GZIP", "")
    return tf.data.TFRecordDataset(file, compression, buffer_size=_READ_BUFFER_BYTES)
