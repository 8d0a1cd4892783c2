"""Boxes as lists say them: what is read, what is lost, and where they are in the stored image."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parsed import parse_objects

from darkroom.dataset.columns import list_values, make_column
from darkroom.dataset.example import decode_example, encode_example
from darkroom.errors import RejectError
from darkroom.targets.boxes.kind import KIND
from darkroom.targets.form import MAX_OBJECTS, Form
from darkroom.targets.geometry import IDENTITY, Placement, scale, turn

FORM = Form(("objects",), empty="unannotated")
CAT = {"label": "cat", "box": [1, 2, 30, 40]}
# How EXIF turns an image, as (transposed, mirrored left to right, mirrored top to bottom).
TURNS = {
    1: (0, 0, 0),
    2: (0, 1, 0),
    3: (0, 1, 1),
    4: (0, 0, 1),
    5: (1, 0, 0),
    6: (1, 1, 0),
    7: (1, 1, 1),
    8: (1, 0, 1),
}


def parse(cell, **form):
    return parse_objects(cell, Form(("objects",), **{"empty": "unannotated", **form}))


def make_placement(orientation=1, size=(60, 80), stored=(60, 80)):
    """Returns the placement of an image whose upright size and size in the record are given."""
    matrix = turn(*size, *TURNS[orientation])
    return Placement(matrix.then(scale(stored[1] / size[1], stored[0] / size[0])), stored, size)


def place(objects, placement, **frame):
    said = {"width": None, "height": None, "orientation": "upright", **frame, "objects": objects}
    value = parse_objects(said, FORM).value
    numbers = [["cat", "dog"].index(each["label"]) for each in value["objects"]]
    [value] = list_values(pa.array([value], KIND.listed))
    return KIND.place(value, numbers, placement)


def list_objects(placed):
    """Returns the objects of a record as people read them."""
    return make_column([placed.value], KIND.column)[0].as_py()


def list_corners(placed):
    columns = [placed.value[side] for side in ("xmin", "ymin", "xmax", "ymax")]
    return [tuple(round(side, 6) for side in box) for box in zip(*columns, strict=True)]


def test_a_list_is_not_a_label_where_its_text_is_one():
    value, lost = parse([{**CAT, "label": "['a']"}, {**CAT, "label": ["a"]}])
    assert [each["label"] for each in value["objects"]] == ["['a']"]
    assert [each.fault.args for each in lost] == [
        ("bad_label", "object 2: the label is ['a'], expected text")
    ]


def test_a_list_of_objects_is_in_pixels_of_the_upright_image():
    value, lost = parse([{**CAT, "is_crowd": 1, "area": "12.5", "id": 7}])
    expected = {"is_crowd": True, "difficult": False, "area": 12.5, "id": "7"}
    assert value["objects"] == [{"label": "cat", "box": [1.0, 2.0, 30.0, 40.0], **expected}]
    assert (value["width"], value["orientation"], lost) == (None, "upright", [])


@pytest.mark.parametrize("cell", [None, "", "  "])
def test_an_empty_cell_means_what_the_option_says(cell):
    assert parse(cell).value is None
    assert parse(cell, empty="none").value["objects"] == []
    with pytest.raises(RejectError, match="empty"):
        parse(cell, empty="reject")


def test_an_image_at_which_nobody_looked_keeps_its_id():
    cell = {"width": 80, "height": 60, "image_id": 139.0, "objects": None}
    known = {"width": 80, "height": 60, "orientation": None, "image_id": "139"}
    assert parse(cell).value == {**known, "objects": None}
    assert parse(cell, empty="none").value == {**known, "objects": []}
    with pytest.raises(RejectError, match="empty"):
        parse(cell, empty="reject")
    placed = KIND.place(parse(cell).value, None, make_placement())
    assert (placed.value, placed.listed) == (None, {**known, "objects": None})


def test_the_empty_list_says_that_nothing_is_there():
    assert parse([], empty="reject").value["objects"] == []


@pytest.mark.parametrize(
    ("each", "reason", "what"),
    [
        ("cat", "bad_value", "expected an object with label and box"),
        ({"label": "cat"}, "bad_box", "it has no box; its keys are ['label']"),
        ({"label": "cat", "bbox": [1, 2, 3, 9]}, "bad_box", "its keys are ['label', 'bbox']"),
        ({"label": "cat", "box": [1, 2, 3]}, "bad_box", "box is not"),
        ({"label": "cat", "box": [1, 2, 1, 9]}, "bad_box", "no finite area"),
        (
            {"label": "cat", "box": [9, 2, 4, 9]},
            "bad_box",
            "no finite area as [xmin, ymin, xmax, ymax], and looks like [x, y, width, height]",
        ),
        ({"label": "cat", "box": [1, 2, math.nan, 9]}, "bad_box", "finite"),
        ({"label": "cat", "box": [1, 2, "x", 9]}, "bad_box", "finite"),
        ({"label": "cat", "box": [1, 2, True, 9]}, "bad_box", "finite"),
        ({"label": "cat", "box": [1, 2, 10**400, 9]}, "bad_box", "finite"),
        ({"label": "cat", "box": [0.1, 0.2, 0.5, 1]}, "bad_box", "within the first pixel"),
        ({"label": "", "box": [1, 2, 3, 9]}, "empty_label", "empty"),
        ({"box": [1, 2, 3, 9]}, "empty_label", "its keys are"),
        ({**CAT, "label": ["cat"]}, "bad_label", "expected text"),
        ({**CAT, "label": b"cat"}, "bad_label", "expected text"),
        ({**CAT, "is_crowd": 2}, "bad_value", "is_crowd is 2"),
        ({**CAT, "difficult": []}, "bad_value", "difficult is"),
        ({**CAT, "area": math.inf}, "bad_box", "area"),
        (
            {**CAT, "fault": RejectError("unknown_class", "class 9 of 2")},
            "unknown_class",
            "class 9",
        ),
    ],
)
def test_an_object_that_cannot_be_used_is_lost_alone(each, reason, what):
    value, lost = parse([CAT, each])
    assert [found["label"] for found in value["objects"]] == ["cat"]
    assert [(found.fault.reason, found.value["objects"]) for found in lost] == [(reason, [each])]
    assert what in lost[0].fault.detail


def test_a_flag_may_be_a_word_of_pascal_voc():
    words = {"True": True, "1": True, "False": False, "Unspecified": False, None: False}
    objects = parse([{**CAT, "difficult": word} for word in words]).value["objects"]
    assert [each["difficult"] for each in objects] == [*words.values()]


def test_a_lost_object_is_named_by_its_id_or_its_number():
    lost = parse([CAT, {**CAT, "box": None}, {**CAT, "box": None, "id": 42}]).lost
    assert [found.fault.detail.split(":")[0] for found in lost] == ["object 2", "object 42"]


def test_an_id_is_text_of_utf8():
    value, _ = parse([{**CAT, "id": "\ud800\u00e4"}, {**CAT, "id": "x" * 1_000}])
    assert [each["id"] for each in value["objects"]] == ["\\ud800\u00e4", "x" * 200]


def test_a_label_map_rejects_objects_of_other_classes():
    value, lost = parse([CAT, {**CAT, "label": "ox"}], known=frozenset(["cat"]))
    assert (len(value["objects"]), lost[0].fault.reason) == (1, "unknown_label")


@pytest.mark.parametrize(
    ("cell", "what"),
    [
        ("[", "not JSON"),
        ("7", "expected a list of objects"),
        ({"objects": {}}, "expected a list of objects"),
        ({"objects": [], "width": 0, "height": 9}, "cannot be"),
        ({"objects": [], "width": 9}, "cannot be"),
        ({"objects": [], "orientation": "left"}, "orientation"),
        ([{}] * (MAX_OBJECTS + 1), "100,001 objects, and an image at most 100,000"),
    ],
)
def test_a_cell_without_a_list_of_objects_rejects_its_image(cell, what):
    with pytest.raises(RejectError, match=what):
        parse(cell)


def test_text_may_be_json():
    assert parse(json.dumps([CAT])) == parse([CAT])


def test_places_are_shares_of_the_stored_image():
    # Stored at half its size.
    placed = place([{**CAT, "area": 100}], make_placement(stored=(30, 40)))
    assert list_corners(placed) == [(1 / 80, round(2 / 60, 6), 30 / 80, round(40 / 60, 6))]
    assert placed.value["area"] == [25.0]
    assert placed.numbers == [0]


def test_a_declared_size_scales():
    assert list_corners(place([CAT], make_placement(), width=80, height=60)) == list_corners(
        place([CAT], make_placement())
    )
    shares = [{"label": "dog", "box": [0.25, 0.5, 0.5, 1.0]}]
    assert list_corners(place(shares, make_placement(), width=1, height=1)) == [(0.25, 0.5, 0.5, 1)]


@pytest.mark.fault(
    106,
    "a box that is so thin that it has no area in floats of 32 bits, as one cut at the edge",
    "the object is rejected",
    code="`bad_box`",
)
def test_a_box_without_an_area_in_the_floats_of_records_is_lost():
    boxes = [70, 10, 70.000001, 20], [70, 10, 71, 10.0000001], [79.9999999, 0, 80.5, 9]
    placed = place([{"label": "cat", "box": box} for box in boxes], make_placement())
    assert list_objects(placed) == []
    assert [lost.fault.reason for lost in placed.lost] == ["bad_box"] * 3
    assert placed.lost[0].fault.detail == (
        "a cat: the box [70.0, 10.0, 70.000001, 20.0] has no area in records, "
        "whose floats have 32 bits"
    )
    thin = [{"label": "cat", "box": [70, 10, 70.00001, 10.00001]}]
    [box] = list_objects(place(thin, make_placement()))
    assert box["xmin"] < box["xmax"]
    assert box["ymin"] < box["ymax"]


def test_a_box_is_cut_at_the_edge_by_a_pixel_and_lost_beyond():
    objects = [
        {"label": "cat", "box": box} for box in ([-1, 0, 5, 5], [0, 0, 5, 61], [0, 0, 82, 9])
    ]
    placed = place(objects, make_placement())
    assert list_corners(placed) == [(0, 0, 5 / 80, round(5 / 60, 6)), (0, 0, 5 / 80, 1)]
    assert [(lost.fault.reason, lost.value["objects"][0]["box"]) for lost in placed.lost] == [
        ("outside_image", [0.0, 0.0, 82.0, 9.0])
    ]
    assert "80 x 60" in placed.lost[0].fault.detail


@pytest.mark.parametrize("is_shares", [False, True])
def test_a_box_outside_by_one_pixel_is_cut_in_images_of_every_size(is_shares):
    lost = []
    for width in range(1, 2000):
        box = [0, 0, (width + 1) / width, 0.5] if is_shares else [0, 0, width + 1, 30]
        frame = dict.fromkeys(("width", "height"), 1 if is_shares else None)
        placement = make_placement(size=(60, width), stored=(60, width))
        lost += place([{"label": "cat", "box": box}], placement, **frame).lost
    assert lost == []


def test_a_box_beside_the_image_is_lost_although_it_is_near():
    assert list_objects(place([{"label": "cat", "box": [-0.9, 1, 0, 9]}], make_placement())) == []


def test_equal_objects_merge_and_others_stay():
    others = [{**CAT, "label": "dog"}, {**CAT, "difficult": 1}, {**CAT, "box": [1, 2, 30, 41]}]
    placed = place([CAT, *others, {**CAT, "id": "again"}], make_placement())
    assert (len(list_objects(placed)), placed.merged, placed.numbers) == (4, 1, [0, 1, 0, 0])
    assert placed.listed["objects"]["id"] == [None] * 4


@pytest.mark.parametrize("orientation", [5, 6, 7, 8])
def test_the_declared_size_says_whether_boxes_are_turned(orientation):
    # The upright image is 80 wide, its file has 60.
    placement = make_placement(orientation)
    upright = place([CAT], placement, width=80, height=60, orientation=None)
    assert list_corners(upright) == [(1 / 80, round(2 / 60, 6), 30 / 80, round(40 / 60, 6))]
    stored = place([CAT], placement, width=60, height=80, orientation=None)
    corners = [placement.matrix.move(x, y) for x, y in ((1, 2), (30, 40))]
    (x0, y0), (x1, y1) = corners
    expected = (min(x0, x1) / 80, min(y0, y1) / 60, max(x0, x1) / 80, max(y0, y1) / 60)
    assert list_corners(stored) == [tuple(round(share, 6) for share in expected)]


@pytest.mark.parametrize(("said", "width"), [("upright", 60), ("stored", 80)])
def test_who_says_which_way_up_boxes_are_is_believed_whatever_size_is_declared(said, width):
    # The upright image is 80 wide, its file has 60.
    wrong = {"width": width, "height": 140 - width, "orientation": said}
    right = {"width": 140 - width, "height": width, "orientation": said}
    told, expected = (place([CAT], make_placement(6), **frame) for frame in (wrong, right))
    assert list_corners(told) == list_corners(expected)
    with pytest.raises(RejectError, match="the list says 60 x 70"):
        place([CAT], make_placement(6), width=60, height=70, orientation=said)


def test_the_option_says_which_way_up_boxes_of_own_lists_are():
    assert parse([CAT]).value["orientation"] == "upright"
    assert parse([CAT], orientation="stored").value["orientation"] == "stored"
    # A row that says so itself, as a line of rejects.jsonl does, was asked before.
    row = {"objects": [CAT], "orientation": "upright"}
    assert parse(row, orientation="stored").value["orientation"] == "upright"


def test_a_lost_box_that_would_be_inside_with_x_and_y_swapped_is_said_to_be():
    boxes = [[1, 70, 30, 75], [70, 1, 75, 79], [-9, 1, 30, 40]]
    placed = place([{"label": "cat", "box": box} for box in boxes], make_placement())
    ends = [lost.fault.detail.partition("80 x 60")[2] for lost in placed.lost]
    assert ends == [", and would be if x and y were swapped", "", ""]


@pytest.mark.parametrize(
    ("orientation", "size", "frame"),
    [
        (3, (60, 80), {"width": 80, "height": 60}),
        (2, (60, 80), {"width": 1, "height": 1}),
        (6, (60, 60), {"width": 60, "height": 60}),
        (6, (60, 80), {}),
    ],
)
def test_a_turned_image_is_rejected_where_nothing_says_what_is_meant(orientation, size, frame):
    placement = make_placement(orientation, size, size)
    with pytest.raises(RejectError) as caught:
        place([CAT], placement, orientation=None, **frame)
    assert caught.value.reason == "ambiguous_orientation"
    assert list_objects(place([], placement, orientation=None, **frame)) == []
    # The option, or the list, says it.
    boxes = [{"label": "cat", "box": [0, 0, 0.5, 0.25]}] if frame.get("width") == 1 else [CAT]
    upright, stored = (
        list_corners(place(boxes, placement, **{**frame, "orientation": said}))
        for said in ("upright", "stored")
    )
    assert upright != stored


def test_another_size_rejects_the_image():
    with pytest.raises(RejectError, match=r"800 x 600.*80 x 60") as caught:
        place([CAT], make_placement(), width=800, height=600)
    assert caught.value.reason == "other_size"


@given(
    orientation=st.sampled_from(sorted(TURNS)),
    size=st.tuples(st.integers(2, 50), st.integers(2, 50)),
    corners=st.tuples(*[st.floats(0, 1, width=32) for _ in range(4)]),
)
def test_a_box_in_the_pixels_of_a_file_goes_where_its_pixels_go(orientation, size, corners):
    """Compares with the turn of a picture of the box, corner by corner."""
    transposed, mirrored, flipped = TURNS[orientation]
    height, width = size
    file_height, file_width = size[::-1] if transposed else size
    x0, x1 = sorted((corners[0] * file_width, corners[1] * file_width))
    y0, y1 = sorted((corners[2] * file_height, corners[3] * file_height))
    if x1 - x0 < 0.01 or y1 - y0 < 0.01:
        return
    found = place(
        [{"label": "cat", "box": [x0, y0, x1, y1]}],
        make_placement(orientation, size, size),
        orientation="stored",
    )
    if transposed:
        x0, y0, x1, y1 = y0, x0, y1, x1
    if mirrored:
        x0, x1 = width - x1, width - x0
    if flipped:
        y0, y1 = height - y1, height - y0
    expected = (x0 / width, y0 / height, x1 / width, y1 / height)
    assert list_corners(found) == [pytest.approx(expected, abs=1e-5)]


def test_a_record_has_the_keys_of_the_object_detection_api_and_is_read_back():
    placed = place([CAT, {**CAT, "label": "dog", "area": 9, "is_crowd": 1}], make_placement())
    features = KIND.encode(placed.value, placed.numbers)
    assert features["image/object/class/label"] == [1, 2]
    assert features["image/object/class/text"] == [b"cat", b"dog"]
    assert features["image/object/bbox/ymax"] == [40 / 60, 40 / 60]
    assert features["image/object/is_crowd"] == [0, 1]
    record = decode_example(encode_example(features))
    assert KIND.decode(record) == list_objects(placed)
    assert features.keys() == KIND.features.keys()


def test_nobody_looked_and_nothing_there_are_two_things():
    assert KIND.encode(None, None) == {"image/object/annotated": 0}
    assert KIND.encode([], []) == {"image/object/annotated": 1}
    assert KIND.decode({"image/object/annotated": [0]}) is None
    assert KIND.decode({"image/object/annotated": [1]}) == []
    assert KIND.place(None, None, Placement(IDENTITY, (1, 1), (1, 1))).value is None


@pytest.mark.parametrize("kind", [KIND.column, KIND.listed])
def test_names_get_numbers_object_by_object(kind):
    lists = [[{"label": "dog"}, {"label": "cat"}], None, [], [{"label": "cat"}]]
    values = lists if kind == KIND.column else [v and {"objects": v} for v in lists]
    if kind != KIND.column:
        values[2] = {"objects": []}
    column = (
        pa.array([[], *values], kind) if kind == KIND.column else pa.array([None, *values], kind)
    )
    kept, numbers = KIND.number(column.slice(1), pa.array(["cat", "dog"]))
    assert numbers.to_pylist() == [[1, 0], None, [], [0]]
    assert kept.equals(column.slice(1))


def test_people_read_how_many_objects_there_are():
    dogs = [{"label": "dog"}, {"label": "dog"}, {"label": "cat"}]
    assert [KIND.show(value) for value in (dogs, [], None)] == ["1 cat, 2 dog", "(none)", ""]


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([CAT, CAT], 2),
        ({"objects": [CAT]}, 1),
        (json.dumps([CAT]), 1),
        ("[", 0),
        (None, 0),
        ("", 0),
    ],
)
def test_objects_are_counted_in_every_form_of_a_list(value, count):
    assert KIND.count(value) == count
