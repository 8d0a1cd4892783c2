"""The columns of CSV files that hold numbers, and lines parsed by TensorFlow.

What TensorFlow refuses, it tells without file and line: the line is then looked at once more.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from typing import Any, cast

import tensorflow as tf

from darkroom import storage
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.errors import DataError, UsageError
from darkroom.options.checks import check_choice, check_count

LABEL_TYPES = ("int64", "float32")


@dataclass(frozen=True)
class CsvOptions:
    """How lines become batches; checked when made.

    Attributes:
        label: Column of the label.
        features: Columns of the features, in their order in a batch; None: all but the label.
        batch_size: Rows in a batch; the last one may be smaller.
        label_type: "int64" for class numbers, "float32" for regression.
        default: Value of an empty cell of a feature; None: an empty cell is an error.
        delimiter: What stands between cells, one character.
        shuffle_rows: Rows that are held in memory and permuted; training only.
        seed: Seed of the order of files and rows.
        epoch: The epoch whose order it is, as a function of `seed` and `epoch` alone; None: another
            order each time that the dataset is iterated.
    """

    label: str
    _: KW_ONLY
    features: Sequence[str] | None = None
    batch_size: int = 32
    label_type: str = "int64"
    default: float | None = None
    delimiter: str = ","
    shuffle_rows: int = 16_384
    seed: int = 0
    epoch: int | None = None

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            UsageError: A value is out of its range.
        """
        check_count("batch_size", self.batch_size, 1)
        check_count("shuffle_rows", self.shuffle_rows, 1)
        check_count("seed", self.seed, 0)
        if self.epoch is not None:
            check_count("epoch", self.epoch, 0)
        check_choice("label_type", self.label_type, LABEL_TYPES)
        if len(self.delimiter) != 1 or self.delimiter in '"\r\n':
            raise UsageError(
                f"delimiter is {self.delimiter!r}, expected one character, no quote or line break."
            )
        if self.default is not None and not math.isfinite(self.default):
            raise UsageError(f"default is {self.default!r}, expected a finite number or None.")
        if isinstance(self.features, str):
            raise UsageError(
                f"features is {self.features!r}, expected a list of columns.",
                f"Give [{self.features!r}].",
            )


@dataclass(frozen=True)
class Table:
    """What is read of a line.

    Attributes:
        columns: All columns of the files.
        features: Indices of the features in `columns`, in their order in a batch.
        label: Index of the label in `columns`.
        options: How lines become batches.
    """

    columns: tuple[str, ...]
    features: tuple[int, ...]
    label: int
    options: CsvOptions

    def decode(self, lines: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns float32 [N, F] and the labels [N] of `lines`, which is text [N].

        Raises:
            tf.errors.InvalidArgumentError: A line is not as it should be.
        """
        cells = tf.io.decode_csv(
            _empty_blank_cells(lines, self.options.delimiter),
            self._defaults(),
            self.options.delimiter,
        )
        features = tf.stack([cells[index] for index in self.features], axis=1)
        # What cannot be a float32, such as 1e50, is read as infinite.
        tf.debugging.assert_all_finite(features, "infinite or nan")
        if self.options.label_type == "float32":
            tf.debugging.assert_all_finite(cells[self.label], "infinite or nan")
        return features, cells[self.label]

    def _defaults(self) -> list[tf.Tensor]:
        # What is not used is read too, as text: else a line with too few cells would pass.
        defaults = [tf.constant([""])] * len(self.columns)
        default = [] if self.options.default is None else [self.options.default]
        for index in self.features:
            defaults[index] = tf.constant(default, tf.float32)
        defaults[self.label] = tf.constant([], self.options.label_type)
        return defaults


def read_table(files: Sequence[str], options: CsvOptions) -> Table:
    """Reads the headers of files and finds the columns of `options` in them.

    Raises:
        DataError: A header is missing or is not that of the first file, or there is no such column.
        UsageError: The columns of features and label are not each another one.
        OSError: A file cannot be read.
    """
    columns = _read_header(files[0], options.delimiter)
    for file in files[1:]:
        _check_same_columns(columns, _read_header(file, options.delimiter), files[0], file)
    if options.features is None:
        features = [name for name in columns if name != options.label]
    else:
        features = list(options.features)
    for name in (options.label, *features):
        _check_known(name, columns, files[0])
    if not features or options.label in features or len(set(features)) < len(features):
        raise UsageError(
            f"The features are {features}, the label is {options.label!r}; expected one feature at "
            "least, each column once, and not the label."
        )
    places = tuple(columns.index(name) for name in features)
    return Table(columns, places, columns.index(options.label), options)


def _read_header(file: str, delimiter: str) -> tuple[str, ...]:
    with storage.open_read(file) as raw:
        binary = cast(Any, gzip.GzipFile(fileobj=raw) if file.endswith(GZIP_SUFFIX) else raw)
        try:
            line = io.TextIOWrapper(binary, encoding="utf-8-sig").readline()
            names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, csv.Error) as error:
            raise DataError(f"{file} has no header that can be read: {error}.") from error
    columns = tuple(name.strip() for name in names)
    if not columns or any(name and not name.strip("+-.0123456789") for name in columns):
        raise DataError(
            f"The first line of {file} is no header: {line.rstrip()[:80]!r}.",
            "Let the first line name the columns.",
        )
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise DataError(f"{file} has two columns {twice[0]!r}.", "Give each a name of its own.")
    return columns


def _check_same_columns(
    expected: Sequence[str], columns: Sequence[str], first: str, file: str
) -> None:
    if len(expected) != len(columns):
        raise DataError(
            f"{file} has {len(columns)} columns, {first} has {len(expected)}.",
            "All files need the same header.",
        )
    for number, (one, other) in enumerate(zip(expected, columns, strict=True), start=1):
        if one != other:
            raise DataError(
                f"{file}: column {number} is {other!r}, in {first} it is {one!r}.",
                "All files need the same header.",
            )


def _check_known(name: str, columns: Sequence[str], file: str) -> None:
    if name not in columns:
        close = get_close_matches(name, columns, n=1)
        raise DataError(
            f"{file} has no column {name!r}.",
            f"Did you mean {close[0]!r}?" if close else f"Columns: {', '.join(columns)}.",
        )


def _is_number(cell: str, kind: str) -> bool:
    """Tells whether TensorFlow reads a finite number in a cell."""
    try:
        return bool(cell.strip()) and math.isfinite(tf.strings.to_number(cell.strip(), kind))
    except tf.errors.InvalidArgumentError:
        return False


def _empty_blank_cells(lines: tf.Tensor, delimiter: str) -> tf.Tensor:
    """Takes blanks out of cells that hold nothing else: TensorFlow reads them as 0."""
    blanks = "[" + " \t".replace(delimiter, "") + "]"
    if tf.reduce_all(tf.strings.regex_replace(lines, blanks, "") == lines):
        return lines
    mark = re.escape(delimiter)
    blank = rf'(^|{mark})("?){blanks}+("?)({mark}|$)'
    for _ in range(2):  # Two of them share a delimiter, which is only found once.
        lines = tf.strings.regex_replace(lines, blank, r"\1\2\3\4")
    return lines


def find_problem(table: Table, file: str, first: int, lines: tf.Tensor) -> str:
    """Says which line is not as it should be, and why.

    Args:
        table: The columns.
        file: The file, as it shall be called.
        first: Number of the first line.
        lines: Text [N], as the file has them.

    Returns:
        What is wrong and what to do, or the empty text when all lines are sound.
    """
    for number, line in enumerate(lines.numpy(), start=first):
        if line and (error := _try_decoding(table, line)):
            problem = _describe_line(table, line.decode(errors="replace"))
            return f"{file}, line {number}: {problem or error}"
    return ""


def _try_decoding(table: Table, line: bytes) -> str:
    try:
        table.decode(tf.constant([line]))
    except tf.errors.InvalidArgumentError as error:
        return str(error)
    return ""


def _describe_line(table: Table, line: str) -> str:
    try:
        [cells] = csv.reader([line], delimiter=table.options.delimiter, strict=True)
    except csv.Error as error:
        return f"{error}. A cell cannot hold a line break."
    if len(cells) != len(table.columns):
        return (
            f"{len(cells)} cells, expected {len(table.columns)} as in the header. "
            "Check the delimiter, and quote cells that hold it."
        )
    for index in (*table.features, table.label):
        is_label = index == table.label
        kind = table.options.label_type if is_label else "float32"
        is_needed = is_label or cells[index].strip() or table.options.default is None
        if is_needed and not _is_number(cells[index], kind):
            return _describe_cell(table.columns[index], cells[index], kind, is_label)
    return ""


def _describe_cell(column: str, cell: str, kind: str, is_label: bool) -> str:
    if not cell.strip():
        hint = "A label is needed in every row." if is_label else "Fill it, or give a default."
        return f"column {column!r} is empty. {hint}"
    number = "a whole number" if kind == "int64" else "a finite number"
    hint = "Leave the column out of the features, or mend the cell."
    if is_label:
        hint = 'Number text labels first; for other numbers give label_type="float32".'
    return f"column {column!r} is {cell!r}, expected {number}. {hint}"
