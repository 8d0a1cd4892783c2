"""The JSON export of Label Studio."""

import json
import math

import pytest
from tests.parsed import parse_objects

from darkroom.errors import DataError, UsageError
from darkroom.manifest.opening import open_sources
from darkroom.options.manifest import ManifestOptions
from darkroom.targets.form import Form


def draw(kind="rectanglelabels", labels=("cat",), size=(200, 100), number="r1", **value):
    """Returns a region; without values a rectangle."""
    place = value or {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0}
    return {
        "id": number,
        "type": kind,
        "value": {**place, kind: [*labels]},
        "original_width": size[0],
        "original_height": size[1],
        "image_rotation": 0,
        "from_name": "label",
        "to_name": "image",
        "origin": "manual",
    }


def make_task(*annotations, image="/data/upload/18/a.jpg", **data):
    return {"id": 1, "data": {"image": image, **data}, "annotations": [*annotations]}


def annotate(*results, **more):
    return {"id": 1, "was_cancelled": False, "result": [*results], **more}


@pytest.fixture
def read(tmp_path):
    """Opens an export of tasks, or of text, beside the image a.jpg."""

    def read(*tasks, encoding="utf-8", **options):
        (tmp_path / "a.jpg").touch()
        is_text = len(tasks) == 1 and isinstance(tasks[0], str)
        text = tasks[0] if is_text else json.dumps(tasks, indent=2)
        (tmp_path / "export.json").write_text(text, encoding=encoding)
        (source,) = open_sources(tmp_path / "export.json", ManifestOptions(**options))
        return source

    return read


def parse(source):
    """Returns label and box of the kept objects of the only task, and why others are lost."""
    (row,) = source.rows()
    found = parse_objects(row.values[1], Form(("objects",)))
    lost = [each.fault.args for each in found.lost]
    return [(each["label"], each["box"]) for each in found.value["objects"]], lost


def test_percents_become_pixels_of_the_declared_size(read):
    source = read(make_task(annotate(draw(), draw(labels=["dog", "big"], number="r2"))))
    (row,) = source.rows()
    assert row.values == [
        "a.jpg",
        {
            "width": 200.0,
            "height": 100.0,
            "orientation": None,
            "objects": [
                {"label": "cat", "id": "r1", "box": [20.0, 20.0, 80.0, 60.0]},
                {"label": "dog", "id": "r2", "box": [20.0, 20.0, 80.0, 60.0]},
                {"label": "big", "id": "r2", "box": [20.0, 20.0, 80.0, 60.0]},
            ],
        },
    ]
    assert source.read_as.describe_form() == "an export of Label Studio"


def test_a_turned_rectangle_is_turned_in_pixels(read):
    # In an image that is not square, the example of a report: 300 x 100 px, turned by 90 degrees.
    place = {"x": 20, "y": 20, "width": 30, "height": 20}
    turned = draw(**place, rotation=90, size=(1000, 500))
    assert parse(read(make_task(annotate(turned)))) == (
        [("cat", pytest.approx([100, 100, 200, 400]))],
        [],
    )
    turned = draw(**place, rotation=30, size=(1000, 500))
    cos, sin = math.cos(math.pi / 6), math.sin(math.pi / 6)
    hull = [200 - 100 * sin, 100, 200 + 300 * cos, 100 + 300 * sin + 100 * cos]
    source = read(make_task(annotate(turned, draw(number="r2"))))
    assert parse(source)[0][0] == ("cat", pytest.approx(hull))
    assert source.read_as.counts == {"rotated boxes read as the upright boxes around them": 1}


@pytest.mark.fault(
    110,
    "a turned rectangle of an image whose size is not said",
    "the object is rejected",
    code="`bad_box`",
)
def test_without_a_size_boxes_are_shares_and_cannot_be_turned(read):
    plain, turned = (draw(x=10, y=20, width=30, height=40, rotation=n) for n in (0, 45))
    for each in (plain, turned):
        del each["original_width"], each["original_height"]
    kept, lost = parse(read(make_task(annotate(plain, turned))))
    assert kept == [("cat", pytest.approx([0.1, 0.2, 0.4, 0.6]))]
    assert lost == [
        (
            "bad_box",
            "object r1: it is turned, and original_width and original_height are not known",
        )
    ]


def test_the_last_annotation_that_was_not_skipped_counts(read):
    first = annotate(draw(labels=["dog"]), created_at="2026-01-02T00:00:00Z")
    last = annotate(draw(), created_at="2026-01-03T00:00:00Z")
    skipped = annotate(draw(labels=["no"]), created_at="2026-01-04T00:00:00Z", was_cancelled=True)
    source = read(make_task(last, skipped, first))
    assert [label for label, _ in parse(source)[0]] == ["cat"]
    assert source.read_as.counts == {"annotations left out for a later one of their task": 1}


def test_empty_is_nothing_there_and_no_annotation_nobody_looked(read):
    tasks = make_task(annotate()), make_task(), make_task(annotate(was_cancelled=True))
    prediction = {**make_task(), "predictions": [annotate(draw())]}
    found = [row.values[1] for row in read(*tasks, prediction).rows()]
    assert (found[0]["objects"], found[1:]) == ([], [None, None, None])


@pytest.mark.fault(
    110, "brushes, ellipses and key points", "the object is rejected", code="`bad_box`"
)
def test_polygons_are_their_boxes_and_other_regions_are_lost(read):
    source = read(
        make_task(
            annotate(
                draw("polygonlabels", points=[[10, 20], [50, 10], [30, 60]], closed=True),
                draw("brushlabels", format="rle", rle=[1, 2]),
                draw("keypointlabels", x=1, y=2, width=0.3),
                draw("ellipselabels", x=1, y=2, radiusX=3, radiusY=4, rotation=0),
                {"type": "relation", "from_id": "r1", "to_id": "r2", "direction": "right"},
                {"type": "choices", "value": {"choices": ["sunny"]}, "to_name": "image"},
            )
        )
    )
    kept, lost = parse(source)
    assert kept == [("cat", [20.0, 10.0, 100.0, 60.0])]
    assert [reason for reason, _ in lost] == ["bad_box"] * 3
    assert lost[0][1] == "object r1: a region of type brushlabels is not read as a box"
    assert source.read_as.counts == {
        "choices, texts and relations, not read": 2,
        "polygons read as their boxes": 1,
    }


def test_labels_may_be_apart_from_their_shapes(read):
    place = {"x": 10, "y": 20, "width": 30, "height": 40, "rotation": 0}
    shape, text, label = (draw(kind, **place) for kind in ("rectangle", "textarea", "labels"))
    alone = draw("rectangle", **place, number="r2")
    for each in (shape, alone):
        del each["value"]["rectangle"]
    kept, lost = parse(read(make_task(annotate(shape, text, label, alone))))
    assert (len(kept), [reason for reason, _ in lost]) == (1, ["empty_label"])


@pytest.mark.parametrize(
    ("image", "file", "path"),
    [
        ("/data/upload/18/b.jpg", "b.jpg", "b.jpg"),
        ("/data/upload/18/e97d4735-b.jpg", "b.jpg", "b.jpg"),
        ("/data/upload/18/e97d4735-b.jpg", "images/e97d4735-b.jpg", "e97d4735-b.jpg"),
        ("/data/local-files/?d=farm/c%20d/b.jpg", "farm/c d/b.jpg", "farm/c d/b.jpg"),
        ("/data/local-files/?d=farm/b.jpg", "images/b.jpg", "b.jpg"),
        ("http://localhost:8080/data/upload/18/b.jpg", "b.jpg", "b.jpg"),
        ("https://host/farm/b.jpg?token=x", "farm/b.jpg", "farm/b.jpg"),
        ("farm/b.jpg", "farm/b.jpg", "farm/b.jpg"),
        ("s3://bucket/farm/b.jpg", "b.jpg", "s3://bucket/farm/b.jpg"),
    ],
)
def test_images_are_found_by_their_names(read, tmp_path, image, file, path):
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    (row,) = read(make_task(image=image)).rows()
    assert row.values[0] == path


def test_images_may_be_in_a_folder_that_the_user_names(read, tmp_path):
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "b.jpg").touch()
    for image in ("s3://bucket/farm/b.jpg", "/data/local-files/?d=b.jpg"):
        source = read(make_task(image=image), image_dir=str(tmp_path / "copies"))
        assert [(source.base, row.values[0]) for row in source.rows()] == [
            (str(tmp_path / "copies"), "b.jpg")
        ]
    with pytest.raises(
        DataError, match=r"The images of .* are not found, as /data/upload/1/c\.jpg"
    ):
        read(make_task(image="/data/upload/1/c.jpg"))


def test_the_image_is_the_only_one_that_a_task_names(read):
    def find(**data):
        (row,) = read({"id": 1, "data": data, "annotations": [annotate(draw())]}).rows()
        return row.values[0]

    assert find(photo="/data/upload/1/a.jpg", note="a cat", number=3) == "a.jpg"
    assert find(left="/data/upload/1/a.jpg", right="/data/upload/1/b.jpg") == ""
    assert find(pages=["/data/upload/1/a.jpg"]) == ""


def test_a_file_of_an_absolute_path_is_itself(read, tmp_path):
    (row,) = read(make_task(image=str(tmp_path / "a.jpg"))).rows()
    assert row.values[0] == "a.jpg"


@pytest.mark.fault(
    110,
    "an export as JSON-MIN, or with choices alone",
    "refused",
    code="exit 1 or 2",
    hint="export it as JSON, or as CSV",
)
def test_other_exports_are_refused_by_name(read):
    short = {"image": "/data/upload/18/a.jpg", "id": 1, "label": [], "annotator": 1}
    with pytest.raises(UsageError, match="an export of Label Studio as JSON-MIN"):
        read({**short, "annotation_id": 1})
    choice = {"type": "choices", "value": {"choices": ["cat"]}}
    with pytest.raises(DataError, match="an export of Label Studio with choices, and no boxes"):
        read(make_task(annotate(choice)))


@pytest.mark.fault(
    110,
    "NaN, text, or a number that is too large, in a region",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.fault(
    110,
    "a region of negative size, without a place, or of an image of another size",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": {"x": float("nan"), "y": 1, "width": 2, "height": 3}}, "bad_box"),
        ({"value": {"x": "left", "y": 1, "width": 2, "height": 3}}, "bad_box"),
        ({"value": {"x": 10**400, "y": 1, "width": 2, "height": 3}}, "bad_box"),
        ({"value": {"x": 1, "y": 1, "width": 2, "height": 3, "rotation": [1]}}, "bad_box"),
        ({"value": {"x": 1, "y": 1, "width": -2, "height": 0}}, "bad_box"),
        ({"value": {"points": [[1, 2], [3]]}}, "bad_box"),
        ({"value": {"points": 5}}, "bad_box"),
        ({"value": {"points": [[1, 2], [float("inf"), 3]]}}, "bad_box"),
        ({"value": None}, "bad_box"),
        ({"value": [1]}, "bad_box"),
        ({"original_width": 50}, "bad_box"),
        ({"type": {"a": 1}}, None),
    ],
)
def test_a_bad_region_is_lost_alone(read, change, reason):
    source = read(make_task(annotate(draw(), {**draw(number="r2"), **change})))
    kept, lost = parse(source)
    assert [label for label, _ in kept] == ["cat"]
    assert [code for code, _ in lost] == [reason] * bool(reason)


@pytest.mark.fault(110, "a region without a label", "the object is rejected", code="`empty_label`")
def test_a_region_without_a_label_is_lost(read):
    kept, lost = parse(read(make_task(annotate(draw(), draw(labels=[], number="r2"), 7))))
    assert (len(kept), [reason for reason, _ in lost]) == (1, ["bad_value", "empty_label"])


@pytest.mark.fault(
    110,
    "a task of another form, without an image, or with several",
    "rejected",
    code="`bad_value`, `no_image`",
)
def test_a_bad_task_rejects_its_image_and_no_other(read):
    good = make_task(annotate(draw()))
    bad = 5, {"data": [], "annotations": {}}, make_task(annotate(result=3)), make_task(image=[])
    first, *rows, last = read(good, *bad, good).rows()
    assert [row.values for row in rows] == [["", None], ["", {}], ["a.jpg", 3], ["", None]]
    assert first.values == last.values


@pytest.mark.fault(
    110, "a file that is cut, nested very deeply or has a key twice", "refused", code="exit 1"
)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[{"data": {"image": "a.jpg"}, "annotations": []}, {"data"',
            "is not complete, or not JSON",
        ),
        ('{"data": {"image": "a.jpg"}, "annotations": []}', "is not an array of JSON"),
        ('[{"data": 1, "data": 2, "annotations": []}]', "the key 'data' occurs twice"),
        ('[{"data": 1, "annotations": ' + "[" * 1_000_000, "is nested too deeply"),
        ('[{"data": 1, "annotations": ' + "9" * 5_000 + "}]", "value 1: it cannot be read"),
    ],
)
def test_files_with_faults_are_refused(read, text, said):
    with pytest.raises(DataError, match=said):
        [*read(text).rows()]


@pytest.mark.fault(110, "an encoding other than UTF-8", "refused", code="exit 1")
def test_other_encodings_are_refused(read):
    text = json.dumps([make_task(image="käse.jpg")], ensure_ascii=False)
    with pytest.raises(DataError, match="value 1: it cannot be read: 'utf-8' codec"):
        read(text, encoding="windows-1252")
    with pytest.raises(DataError, match="is UTF-16"):
        read(text, encoding="utf-16", format="label_studio")
