"""The columns of CSV files of numbers, and their lines, which TensorFlow parses.

TensorFlow's errors do not name the file and the line, so Python finds the line of an error again.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, cast

import tensorflow as tf

from darkroom import storage
from darkroom.dataset.tfrecord import GZIP_SUFFIX
from darkroom.errors import DataError, UsageError
from darkroom.options.checks import check_choice, check_count
from darkroom.runtime.text import find_similar

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
        delimiter: The character between cells.
        shuffle_rows: Number of rows that are permuted together in memory; training only.
        seed: Seed of the order of files and rows.
        epoch: Number of the epoch: the order depends only on `seed` and `epoch`. None: each
            iteration of the dataset has another order.
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
                f"Pass [{self.features!r}].",
            )


# Of a mark that is not a type, `typing.get_type_hints` of Python 3.10 makes an error.
del CsvOptions.__annotations__["_"]


@dataclass(frozen=True)
class CsvColumns:
    """The columns that are read from a line.

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
        """Returns the features, float32 [N, F], and the labels, [N], of `lines`, text [N].

        Raises:
            tf.errors.InvalidArgumentError: A line cannot be parsed.
        """
        # Other columns are parsed as text, because a line with too few cells must be an error.
        defaults = [tf.constant([""])] * len(self.columns)
        default = [] if self.options.default is None else [self.options.default]
        for index in self.features:
            defaults[index] = tf.constant(default, tf.float32)
        defaults[self.label] = tf.constant([], self.options.label_type)
        delimiter = self.options.delimiter
        cells = tf.io.decode_csv(_empty_blank_cells(lines, delimiter), defaults, delimiter)
        features = tf.stack([cells[index] for index in self.features], axis=1)
        # A number that is too large for float32, such as 1e50, is read as infinite.
        tf.debugging.assert_all_finite(features, "infinite or nan")
        if self.options.label_type == "float32":
            tf.debugging.assert_all_finite(cells[self.label], "infinite or nan")
        return features, cells[self.label]


def read_table(files: Sequence[str], options: CsvOptions) -> CsvColumns:
    """Reads the headers of files and finds the columns of `options` in them.

    Raises:
        DataError: A header is missing or differs from that of the first file, or a column does not
            exist.
        UsageError: A column is used twice, or there is no feature.
        OSError: A file cannot be read.
    """
    columns = _read_header(files[0], options.delimiter)
    for file in files[1:]:
        found = _read_header(file, options.delimiter)
        if len(found) != len(columns):
            raise DataError(
                f"{file} has {len(found)} columns, {files[0]} has {len(columns)}.",
                "All files need the same header.",
            )
        for number, (one, other) in enumerate(zip(columns, found, strict=True), start=1):
            if one != other:
                raise DataError(
                    f"{file}: column {number} is {other!r}, in {files[0]} it is {one!r}.",
                    "All files need the same header.",
                )
    if options.features is None:
        features = [name for name in columns if name != options.label]
    else:
        features = list(options.features)
    for name in (options.label, *features):
        if name not in columns:
            near = find_similar(name, columns)
            raise DataError(
                f"{files[0]} has no column {name!r}.",
                f"Did you mean {near!r}?" if near else f"Columns: {', '.join(columns)}.",
            )
    if not features or options.label in features or len(set(features)) < len(features):
        raise UsageError(
            f"The features are {features}, the label is {options.label!r}; expected at least one "
            "feature, each column once, and not the label."
        )
    places = tuple(columns.index(name) for name in features)
    return CsvColumns(columns, places, columns.index(options.label), options)


def _read_header(file: str, delimiter: str) -> tuple[str, ...]:
    """Returns the names of the columns, from the first line of a file.

    Raises:
        DataError: It cannot be read, has a number for a name, or has a name twice.
    """
    with storage.open_read(file) as raw:
        binary = cast(Any, gzip.GzipFile(fileobj=raw) if file.endswith(GZIP_SUFFIX) else raw)
        try:
            line = io.TextIOWrapper(binary, encoding="utf-8-sig").readline()
            names = next(csv.reader([line], delimiter=delimiter, strict=True), [])
        except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, csv.Error) as error:
            raise DataError(
                f"{file} has no header that can be read: {error}.",
                "Save the file as CSV in UTF-8, with the names of the columns in the first line.",
            ) from error
    columns = tuple(name.strip() for name in names)
    # A number for a name says that the first line is a row.
    if not columns or any(name and not name.strip("+-.0123456789") for name in columns):
        raise DataError(
            f"The first line of {file} is not a header: {line.rstrip()[:80]!r}.",
            "Put the names of the columns in the first line.",
        )
    twice = sorted({name for name in columns if columns.count(name) > 1})
    if twice:
        raise DataError(f"{file} has two columns {twice[0]!r}.", "Give each column its own name.")
    return columns


def _is_number(cell: str, kind: str) -> bool:
    """Tells whether TensorFlow reads a cell as a finite number."""
    try:
        return bool(cell.strip()) and math.isfinite(tf.strings.to_number(cell.strip(), kind))
    except tf.errors.InvalidArgumentError:
        return False


def _empty_blank_cells(lines: tf.Tensor, delimiter: str) -> tf.Tensor:
    """Empties cells that contain only blanks, because TensorFlow reads those as 0."""
    blanks = "[" + " \t".replace(delimiter, "") + "]"
    if tf.reduce_all(tf.strings.regex_replace(lines, blanks, "") == lines):
        return lines
    mark = re.escape(delimiter)
    blank = rf'(^|{mark})("?){blanks}+("?)({mark}|$)'
    for _ in range(2):  # Two such cells in a row share a delimiter, which is matched only once.
        lines = tf.strings.regex_replace(lines, blank, r"\1\2\3\4")
    return lines


def find_problem(table: CsvColumns, file: str, first: int, lines: tf.Tensor) -> str:
    """Finds the first line that cannot be parsed, and says why.

    Args:
        table: The columns.
        file: The name of the file.
        first: Number of the first line.
        lines: Text [N], as in the file.

    Returns:
        The problem and what to do, or the empty text if all lines can be parsed.
    """
    for number, line in enumerate(lines.numpy(), start=first):
        if not line:
            continue
        try:
            table.decode(tf.constant([line]))
        except tf.errors.InvalidArgumentError as error:
            problem = _describe_line(table, line.decode(errors="replace"))
            return f"{file}, line {number}: {problem or error}"
    return ""


def _describe_line(table: CsvColumns, line: str) -> str:
    """Returns a sentence that says what is wrong with a line, as far as it can be found."""
    try:
        [cells] = csv.reader([line], delimiter=table.options.delimiter, strict=True)
    except csv.Error as error:
        return f"{error}. A cell must not contain a line break."
    if len(cells) != len(table.columns):
        return (
            f"{len(cells)} cells, expected {len(table.columns)} as in the header. "
            "Check the delimiter, and quote cells that contain it."
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
        hint = "Every row needs a label." if is_label else "Fill it, or set a default."
        return f"column {column!r} is empty. {hint}"
    number = "a whole number" if kind == "int64" else "a finite number"
    hint = "Leave the column out of the features, or fix the cell."
    if is_label:
        hint = 'Turn text labels into numbers first. For other numbers use label_type="float32".'
    return f"column {column!r} is {cell!r}, expected {number}. {hint}"
