"""CSV files of numbers to batches: exact contents, order, errors."""

from __future__ import annotations

import gzip
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from darkroom.errors import DataError, UsageError
from darkroom.input.tables import csv
from darkroom.input.tables.csv import make_csv_dataset
from darkroom.input.tables.csv_table import CsvOptions

pytestmark = pytest.mark.tensorflow


def _write(path: Path, text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


def _read(files, *, training=False, **options):
    """All rows as one array of features and one of labels."""
    dataset = make_csv_dataset(files, CsvOptions("y", **options), training=training)
    batches = list(dataset.as_numpy_iterator())
    return tuple(np.concatenate(parts) for parts in zip(*batches, strict=True))


def _labels(files, **options):
    return _read(files, training=True, **options)[1].tolist()


def _fail(file, **options):
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        _read(file, **options)
    return str(caught.value)


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Five files of 7 to 11 rows, in blocks of four lines; labels are 0 to 44."""
    monkeypatch.setattr(csv, "_BLOCK_LINES", 4)
    number = 0
    for file in range(5):
        lines = ["a,y"]
        for _ in range(7 + file):
            lines.append(f"{number / 2},{number}")
            number += 1
        _write(tmp_path / f"part-{file}.csv", "\n".join(lines))
    return f"{tmp_path}/part-*.csv"


def test_batches_hold_the_cells_in_the_order_of_the_lines(tmp_path):
    file = _write(tmp_path / "a.csv", "b,y,a\n1.5,7,-2\n3e2,8,0.25\n,9,1\n")
    dataset = make_csv_dataset(file, CsvOptions("y", batch_size=2, default=-1.0), training=False)
    assert dataset.element_spec == (
        tf.TensorSpec((None, 2), tf.float32),
        tf.TensorSpec((None,), tf.int64),
    )
    (first, first_labels), (second, second_labels) = dataset.as_numpy_iterator()
    np.testing.assert_array_equal(first, [[1.5, -2], [300, 0.25]])
    np.testing.assert_array_equal(second, [[-1, 1]])
    assert [*first_labels, *second_labels] == [7, 8, 9]


def test_features_are_chosen_and_ordered_and_other_columns_hold_anything(tmp_path):
    file = _write(tmp_path / "a.csv", 'a,note,b,y\n1,"x, ""y""",2,3\n4,,5,6\n')
    features, labels = _read(file, features=["b", "a"])
    np.testing.assert_array_equal(features, [[2, 1], [5, 4]])
    assert labels.tolist() == [3, 6]


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfa,y\n1,2\n3,4\n",
        b"a,y\r\n1,2\r\n3,4\r\n",
        b"a,y\n1,2\n3,4",
        b"a,y\n\n1,2\n\n\n3,4\n\n",
        b'"a","y"\n"1","2"\n"3","4"\n',
        b" a , y \n 1 , 2 \n 3 , 4 \n",
    ],
    ids=["byte order mark", "CRLF", "no last line break", "empty lines", "quotes", "blanks"],
)
def test_forms_of_the_same_table(tmp_path, text):
    # Two files at once, plain and compressed.
    names = ("a.csv", "b.csv.gz")
    features, labels = _read([_write(tmp_path / name, text) for name in names])
    np.testing.assert_array_equal(features, [[1], [3], [1], [3]])
    assert labels.tolist() == [2, 4, 2, 4]


@pytest.mark.parametrize("training", [False, True])
def test_no_tuner_runs_for_which_the_end_of_an_epoch_could_wait(tmp_path, training):
    file = _write(tmp_path / "a.csv", "y,x\n1,2\n")
    dataset = make_csv_dataset(file, CsvOptions("y"), training=training)
    assert dataset.options().autotune.enabled is False


@pytest.mark.parametrize("delimiter", [";", " "])
def test_delimiter(tmp_path, delimiter):
    text = "a,b,y\n1,,2\n3,4,5\n".replace(",", delimiter)
    features, labels = _read(_write(tmp_path / "a.csv", text), delimiter=delimiter, default=9.0)
    np.testing.assert_array_equal(features, [[1, 9], [3, 4]])
    assert labels.tolist() == [2, 5]


def test_labels_beyond_32_bits_and_labels_with_fractions(tmp_path):
    file = _write(tmp_path / "a.csv", "a,y\n1,9007199254740993\n2,-5\n")
    assert _read(file)[1].tolist() == [9007199254740993, -5]
    labels = _read(_write(tmp_path / "b.csv", "a,y\n1,0.5\n"), label_type="float32")[1]
    assert labels.dtype == np.float32
    assert labels.tolist() == [0.5]


def test_blank_cells_are_missing_and_not_zero(tmp_path):
    file = _write(tmp_path / "a.csv", 'a,b,c,d,y\n  , ," ",0,1\n')
    np.testing.assert_array_equal(_read(file, default=7.0)[0], [[7, 7, 7, 0]])


def test_files_follow_each_other_by_name(many):
    features, labels = _read(many, batch_size=10)
    assert labels.tolist() == list(range(45))
    np.testing.assert_array_equal(features[:, 0], np.arange(45) / 2)


def test_training_has_each_row_once_in_batches_of_one_size(many):
    dataset = make_csv_dataset(many, CsvOptions("y", batch_size=10, epoch=0), training=True)
    batches = list(dataset.as_numpy_iterator())
    assert [len(labels) for _, labels in batches] == [10, 10, 10, 10, 5]
    labels = np.concatenate([labels for _, labels in batches])
    features = np.concatenate([features for features, _ in batches])
    assert Counter(labels.tolist()) == Counter(range(45))
    np.testing.assert_array_equal(features[:, 0], labels / 2)


def test_the_order_is_a_function_of_seed_and_epoch(many):
    orders = {}
    for seed, epoch in [(0, 0), (0, 1), (1, 0)]:
        tf.random.set_seed(epoch + 5)
        orders[seed, epoch] = _labels(many, seed=seed, epoch=epoch)
    tf.random.set_seed(7)
    assert _labels(many, seed=1, epoch=0) == orders[1, 0]
    assert len({tuple(order) for order in orders.values()}) == 3


def test_the_order_never_changes(many):
    """A checkpoint of an older version must find the same epoch again."""
    assert _labels(many, seed=3, epoch=2)[:6] == [23, 36, 12, 26, 32, 2]


def test_without_epoch_each_iteration_has_an_order_of_its_own(many):
    def read_two():
        dataset = make_csv_dataset(many, CsvOptions("y", seed=1), training=True)
        return [np.concatenate([y for _, y in dataset]).tolist() for _ in range(2)]

    first, second = read_two()
    assert first != second
    assert sorted(first) == sorted(second) == list(range(45))
    assert read_two() == [first, second]


def test_rows_are_mixed_within_the_buffer_and_across_files(many):
    mixed = _labels(many, epoch=0, shuffle_rows=45)
    assert len({label // 9 for label in mixed[:15]}) >= 3
    # A buffer of one row permutes nothing: rows of a block stay neighbors.
    plain = _labels(many, epoch=0, shuffle_rows=1)
    assert sum(b - a == 1 for a, b in itertools.pairwise(plain)) >= 30


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("x,2,3", "column 'a' is 'x', expected a finite number. Leave the column out"),
        ("1,,3", "column 'b' is empty. Fill it, or set a default."),
        ("1,nan,3", "column 'b' is 'nan', expected a finite number."),
        ("1,1e50,3", "column 'b' is '1e50', expected a finite number."),
        ("1,2,", "column 'y' is empty. Every row needs a label."),
        ("1,2,cat", "column 'y' is 'cat', expected a whole number. Turn text labels into"),
        ("1,2,3.5", "column 'y' is '3.5', expected a whole number."),
        ("1,2", "2 cells, expected 3 as in the header. Check the delimiter"),
        ("1,2,3,4", "4 cells, expected 3 as in the header."),
        ('1,"2,3', "unexpected end of data. A cell must not contain a line break."),
    ],
)
def test_errors_name_file_line_and_column(tmp_path, monkeypatch, line, problem):
    monkeypatch.setattr(csv, "_BLOCK_LINES", 4)
    good = _write(tmp_path / "a.csv", "a,b,y\n1,2,3\n")
    bad = _write(tmp_path / "b.csv", "a,b,y\n" + "1,2,3\n" * 5 + f"\n{line}\n" + "1,2,3\n" * 5)
    assert f"{bad}, line 8: {problem}" in _fail([good, bad])
    if line == "1,2":
        # Training finds problems in the same way.
        assert f"{bad}, line 8: {problem}" in _fail([good, bad], training=True, epoch=0)


def test_a_default_is_only_for_empty_cells_of_features(tmp_path):
    file = _write(tmp_path / "a.csv", "a,y\n,1\nx,2\n")
    assert f"{file}, line 3: column 'a' is 'x'" in _fail(file, default=0.0)
    file = _write(tmp_path / "b.csv", "a,y\n1,\n")
    assert f"{file}, line 2: column 'y' is empty" in _fail(file, default=0.0)


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("a,c,y\n", "b.csv: column 2 is 'c', in "),
        ("b,a,y\n", "b.csv: column 1 is 'b', in "),
        ("a,y\n", "b.csv has 2 columns, "),
        ("", "The first line of "),
        ("1,2,3\n", "The first line of "),
        ("a,a,y\n", "b.csv has two columns 'a'."),
    ],
)
def test_headers_that_differ_or_are_none(tmp_path, second, problem):
    files = [_write(tmp_path / "a.csv", "a,b,y\n1,2,3\n"), _write(tmp_path / "b.csv", second)]
    with pytest.raises(DataError) as caught:
        _read(files)
    assert problem in str(caught.value)
    assert f"{tmp_path}/b.csv" in str(caught.value)


def test_unknown_columns_and_missing_files(tmp_path):
    file = _write(tmp_path / "a.csv", "width,height,y\n1,2,3\n")
    with pytest.raises(DataError, match=r"has no column 'widht'\. Did you mean 'width'\?"):
        _read(file, features=["widht"])
    with pytest.raises(DataError, match="No file matches"):
        _read(f"{tmp_path}/none-*.csv")
    with pytest.raises(UsageError, match="not the label"):
        _read(file, features=["y", "width"])


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0},
        {"shuffle_rows": 0},
        {"seed": -1},
        {"epoch": -1},
        {"label_type": "string"},
        {"delimiter": ",,"},
        {"delimiter": '"'},
        {"default": float("nan")},
        {"features": "a"},
    ],
)
def test_wrong_options(options):
    with pytest.raises(UsageError, match=f"{next(iter(options))} is "):
        CsvOptions("y", **options)
