import pytest

from darkroom.dataset.labels import (
    MAX_CLASSES,
    build_label_map,
    find_lookalikes,
    format_labels,
    is_printable,
    is_usable,
    normalise_label,
    parse_labels,
    read_labels,
)
from darkroom.errors import DataError, UsageError


@pytest.mark.parametrize("label", ["007", "NA", "null", "1e3", "True", "a, b", "", "Cat"])
def test_a_label_is_text_and_stays_as_it_is(label):
    assert normalise_label(f" {label}\t") == label


def test_a_label_is_in_composed_form():
    assert normalise_label("Bro\u0308tchen") == "Brötchen"


@pytest.mark.parametrize("label", ["a\nb", "a\tb", "a\x00", "\x7f", "a\u2028b", "\ud800"])
def test_characters_that_would_break_a_label_file_are_found(label):
    assert not is_printable(label)


@pytest.mark.parametrize("character", "\u00ad\u200b\u200e\u202e\u2060\u2066\u3164\ufeff\U000e0063")
def test_invisible_characters_are_found(character):
    assert not is_printable(f"cat{character}é")


@pytest.mark.parametrize(
    "label",
    [
        "Katze",
        "a b",
        "猫",
        "a\u00a0b",
        "🐈",
        "\u0645\u06cc\u200c\u062e\u0648",  # Persian, which needs the joiner
        "👩\u200d🌾",
        "❤\ufe0f",
    ],
)
def test_other_characters_are_fine(label):
    assert is_printable(label)


def test_a_label_has_a_longest_length():
    assert is_usable("x" * 1_000)
    assert not is_usable("x" * 1_001)
    with pytest.raises(UsageError, match="unusable labels"):
        build_label_map([], ["a", "x" * 1_001])


def test_more_labels_than_classes_are_an_error():
    many = [f"{i}.jpg" for i in range(MAX_CLASSES + 1)]
    assert len(build_label_map(many[1:])) == MAX_CLASSES
    with pytest.raises(DataError, match="65,537 different labels, at most 65,536") as caught:
        build_label_map(many)
    assert "--columns (columns= in Python)" in caught.value.hint


@pytest.mark.parametrize(
    "group",
    [
        ["Cat", "cat"],
        ["hot dog", "hot-dog", "hot_dog"],
        ["cat", "c\u0430t"],  # Cyrillic a
        ["OX", "\u039f\u03a7"],  # Greek capitals
        ["cat", "\uff43\uff41\uff54"],  # full width
        ["Straße", "strasse"],
        ["a b", "a\u00a0b"],
        ["ab", "a\u200db"],
        ["007", "7", "7.0", "7e0"],
        ['"cat"', "cat", "\u201ccat\u201d"],
        ["\u2764", "\u2764\ufe0f"],
    ],
)
def test_labels_that_look_alike_are_found(group):
    others = ["dog", "caat", "owl"]
    assert find_lookalikes([*group, *others, *group]) == [sorted(group)]


@pytest.mark.parametrize(
    "labels", [["Käse", "Kase"], ["1", "l"], ["0", "O"], ["-5", "5"], ["1.5", "15"], ["猫", "犬"]]
)
def test_labels_that_look_different_are_not(labels):
    assert find_lookalikes(labels) == []


def test_labels_are_sorted_as_text_or_kept_as_given():
    assert build_label_map(["b", "10", "9", "B", "b"]) == ["10", "9", "B", "b"]
    assert build_label_map(["b"], ["z", " b "]) == ["z", "b"]


def test_integer_labels_number_themselves():
    numbers = [str(i) for i in range(11)]
    assert build_label_map(["3", "1", "10"], are_numbers=True) == numbers
    assert build_label_map([], are_numbers=True) == []


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ([], "is empty"),
        (["a", "b", "a "], r"repeats \['a'\]"),
        (["a", " "], r"an empty label in line 2\. Take the line out"),
        (["a", "b\nc"], r"unusable labels \['b\\nc'\]"),
    ],
)
def test_an_unusable_label_map_is_an_error(labels, problem):
    with pytest.raises(UsageError, match=problem):
        build_label_map([], labels)


def test_a_long_label_map_is_checked_at_once():
    # Each with each other would take more than an hour.
    labels = [f"label {i}" for i in range(300_000)]
    assert build_label_map([], labels) == labels


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
