import time

import pytest

from darkroom.errors import DataError, UsageError
from darkroom.labels import (
    build_label_map,
    format_labels,
    is_printable,
    normalise_label,
    parse_labels,
    read_labels,
)


@pytest.mark.parametrize("label", ["007", "NA", "null", "1e3", "True", "a, b", "", "Cat"])
def test_a_label_is_text_and_stays_as_it_is(label):
    assert normalise_label(f" {label}\t") == label


def test_a_label_is_composed():
    assert normalise_label("Bro\u0308tchen") == "Brötchen"


@pytest.mark.parametrize("label", ["a\nb", "a\tb", "a\x00", "\x7f", "a\u2028b", "\ud800"])
def test_characters_that_would_break_a_label_file_are_seen(label):
    assert not is_printable(label)


@pytest.mark.parametrize("label", ["Katze", "a b", "猫", "\u200bcat", "a\u00a0b", "🐈"])
def test_other_characters_are_fine(label):
    assert is_printable(label)


def test_labels_are_sorted_as_text_or_kept_as_given():
    assert build_label_map(["b", "10", "9", "B", "b"]) == ["10", "9", "B", "b"]
    assert build_label_map(["b"], ["z", " b "]) == ["z", "b"]


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([], "is empty"),
        (["a", "b", "a "], r"repeats \['a'\]"),
        (["a", ""], r"unusable labels \[''\]"),
    ],
)
def test_a_label_map_that_is_none_is_refused(labels, problem):
    with pytest.raises(UsageError, match=problem):
        build_label_map([], labels)


def test_a_long_label_map_is_checked_at_once():
    labels = [f"label {i}" for i in range(60_000)]
    start = time.monotonic()
    assert build_label_map([], labels) == labels
    assert time.monotonic() - start < 2


def test_a_label_file_round_trips():
    labels = ["007", "a, b", "line\u2028separator", "ä"]
    assert parse_labels(format_labels(labels)) == labels


def test_label_files_of_other_editors_are_read():
    assert parse_labels("\ufeffcat\r\ndog") == ["cat", "dog"]
    assert parse_labels("") == []


def test_a_label_file_that_is_not_utf8_is_named(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes("Brötchen\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"labels\.txt is not UTF-8") as caught:
        read_labels(str(path))
    assert "UTF-8" in caught.value.hint
