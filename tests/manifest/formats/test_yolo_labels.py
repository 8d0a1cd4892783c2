from collections import Counter

import pytest

from darkroom.errors import DataError
from darkroom.manifest.formats.yolo.labels import check_is_drawn, parse_label_file

CLASSES = {0: "cat", 1: "dog"}


def parse(text, counts=None):
    return parse_label_file(text, "labels/a.txt", CLASSES, Counter() if counts is None else counts)


def find_faults(text):
    return [each["fault"].args for each in parse(text)]


def test_a_box_is_given_by_its_corners():
    assert parse("1 0.5 0.5 0.25 0.5\n\n0 0.125 0.25 0.25 0.5") == [
        {"id": "in line 1 of labels/a.txt", "label": "dog", "box": [0.375, 0.25, 0.625, 0.75]},
        {"id": "in line 3 of labels/a.txt", "label": "cat", "box": [0.0, 0.0, 0.25, 0.5]},
    ]


def test_tabs_windows_lines_and_classes_as_floats_are_read():
    (found,) = parse("  1.0\t0.5 0.5\t0.5 0.5 \r\n")
    assert (found["label"], found["box"]) == ("dog", [0.25, 0.25, 0.75, 0.75])


def test_polygons_give_the_box_around_them_and_are_counted():
    counts = Counter()
    found = parse(
        "0 0.5 0.1 0.9 0.7 0.2 0.6\n"
        "1 0.5 0.1 0.9 0.5 0.5 0.9 0.1 0.5\n"
        "0 0.1 0.2 0.3 0.2 0.3 0.4 0.2 0.5 0.1 0.4\n"
        "0 0.5 0.5 0.1 0.1\n",
        counts,
    )
    assert [each["box"] for each in found[:3]] == [
        [0.2, 0.1, 0.9, 0.7],
        [0.1, 0.1, 0.9, 0.9],
        [0.1, 0.2, 0.3, 0.5],
    ]
    assert counts == {"polygons": 2, "polygons of 4 corners, or turned boxes": 1}


@pytest.mark.fault(
    111,
    "the number of a class that data.yaml does not name",
    "the object is rejected",
    code="`unknown_class`",
)
@pytest.mark.fault(
    111,
    "words, or a number of columns that no form has",
    "the object is rejected",
    code="`bad_value`, `bad_box`",
)
@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        ("2 0.5 0.5 0.1 0.1", "unknown_class", "class 2 is not one of the 2"),
        ("-1 0.5 0.5 0.1 0.1", "unknown_class", "class -1 is not one of the 2"),
        ("0.5 0.5 0.5 0.1 0.1", "unknown_class", "class 0.5 is not one of the 2"),
        ("nan 0.5 0.5 0.1 0.1", "unknown_class", "class nan is not one of the 2"),
        ("cat 0.5 0.5 0.1 0.1", "bad_value", "could not convert string to float: 'cat'"),
        (
            "0 0.5 0,5 0.1 0.1",
            "bad_value",
            "could not convert string to float: '0,5': YOLO has decimal points, no commas",
        ),
        (
            "0 120 80 60 40",
            "outside_image",
            "YOLO has shares of the width and height, not pixels",
        ),
        (
            "0 90 60 150 60 150 100",
            "outside_image",
            "YOLO has shares of the width and height, not pixels",
        ),
        ("0 0.5 0.5 0.1", "bad_box", "it has 4 columns, which is neither a box (5) nor a polygon"),
        (
            "0,0.5,0.5,0.1,0.1",
            "bad_box",
            "it has 1 column, which is neither a box (5) nor a polygon",
        ),
        (
            "0 0.5 0.5 0.1 0.1 0.9",
            "bad_box",
            "it has 6 columns, which is neither a box (5) nor a polygon",
        ),
        ("0 0.1 0.1 nan 0.2 0.3 0.3", "bad_box", "a corner is not a finite number"),
        ("0 0.1 0.1 1e999 0.2 0.3 0.3", "bad_box", "a corner is not a finite number"),
    ],
)
def test_an_object_that_cannot_be_used_is_lost_alone(line, reason, detail):
    lost, kept = parse(f"{line}\n0 0.5 0.5 0.5 0.5")
    assert (lost["id"], lost["fault"].args) == ("in line 1 of labels/a.txt", (reason, detail))
    assert kept["box"] == [0.25, 0.25, 0.75, 0.75]


def test_an_object_of_an_unknown_class_has_its_box_for_whoever_corrects_it():
    boxes = [each["box"] for each in parse("2 0.5 0.5 0.5 0.5\n2 0.1 0.1 0.3 0.1 0.3 0.2")]
    assert boxes == [[0.25, 0.25, 0.75, 0.75], [0.1, 0.1, 0.3, 0.2]]


def test_a_number_of_any_length_is_one_short_fault():
    ((reason, detail),) = find_faults(f"{'9' * 100_000} 0.5 0.5 0.1 0.1")
    assert (reason, len(detail)) == ("unknown_class", 66)
    ((reason, detail),) = find_faults(f"0 {'x' * 100_000} 0.5 0.1 0.1")
    assert (reason, len(detail)) == ("bad_value", 100)


@pytest.mark.fault(111, "what a detector found (6 columns); poses", "refused", code="exit 1")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 0.5 0.5 0.1 0.1 0.93", "6 columns: a box and a confidence"),
        ("0 0.5 0.5 0.1 0.1 0.2 0.2 2", "8 columns: a box and keypoints"),
        (f"0 0.5 0.5 0.1 0.1{' 0.2 0.2 2' * 17}", "56 columns: a box and keypoints"),
    ],
)
def test_results_and_poses_are_refused_by_name(line, said):
    with pytest.raises(DataError, match=rf"^labels/a\.txt has {said}"):
        check_is_drawn(f"\n{line}\n", "labels/a.txt")


@pytest.mark.parametrize(
    "line", ["", "0 0.5 0.5 0.1 0.1", "0 .1 .1 .2 .1 .2 .2", "x 1 2 3 4 5 6 7 8"]
)
def test_labels_that_people_drew_are_not_refused(line):
    check_is_drawn(line, "labels/a.txt")
