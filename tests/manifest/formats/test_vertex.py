"""Import files of Vertex AI, as its documentation shows them."""

import json

import pytest
from tests.parsed import parse_objects

from darkroom.errors import DataError
from darkroom.manifest.opening import open_sources
from darkroom.manifest.sources.base import Row
from darkroom.options.manifest import ManifestOptions
from darkroom.targets.form import Form

ML_USE = "aiplatform.googleapis.com/ml_use"
TOMATO = {"displayName": "Tomato", "xMin": 0.3, "yMin": 0.3, "xMax": 0.7, "yMax": 0.6}
SALAD = {
    "displayName": "Salad",
    "xMin": "0.1",
    "yMin": "0.1",
    "xMax": "0.2",
    "yMax": "0.2",
    "annotationResourceLabels": {"aiplatform.googleapis.com/annotation_set_name": "x"},
}


def make_line(number, **annotations):
    return {"imageGcsUri": f"gs://bucket/{number}.jpeg", **annotations}


def use(name):
    return {"dataItemResourceLabels": {ML_USE: name}}


@pytest.fixture
def read(tmp_path):
    """Opens an import file of lines, which are objects or texts."""

    def read(*lines, **options):
        path = tmp_path / "import.jsonl"
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(texts), errors="surrogateescape")
        (source,) = open_sources(path, ManifestOptions(**options))
        return source

    return read


def list_values(source):
    return [row.values for row in source.rows()]


def make_cell(*objects):
    return {"width": 1, "height": 1, "orientation": None, "objects": [*objects]}


def test_boxes_are_shares_and_numbers_may_be_text(read):
    source = read(
        make_line(1, boundingBoxAnnotations=[TOMATO, SALAD], **use("test")),
        make_line(2, **use("training")),
        make_line(3, boundingBoxAnnotations=[]),
        make_line(4, boundingBoxAnnotations=None, **use("validation")),
    )
    objects = [
        {"label": "Tomato", "box": [0.3, 0.3, 0.7, 0.6]},
        {"label": "Salad", "box": ["0.1", "0.1", "0.2", "0.2"]},
    ]
    assert source.schema.target_kind == "boxes"
    assert list_values(source) == [
        ["gs://bucket/1.jpeg", "test", make_cell(*objects)],
        ["gs://bucket/2.jpeg", "training", None],
        ["gs://bucket/3.jpeg", "", make_cell()],
        ["gs://bucket/4.jpeg", "validation", None],
    ]
    (kept,) = [parse_objects(make_cell(*objects), Form(("objects",)))]
    assert [each["box"] for each in kept.value["objects"]] == [
        [0.3, 0.3, 0.7, 0.6],
        [0.1, 0.1, 0.2, 0.2],
    ]


def test_one_class_and_several_are_labels(read):
    one = read(
        make_line(1, classificationAnnotation={"displayName": "cat"}, **use("test")),
        make_line(2),
    )
    assert list_values(one) == [
        ["gs://bucket/1.jpeg", "test", "cat"],
        ["gs://bucket/2.jpeg", "", None],
    ]
    assert one.schema.target_kind == "label"
    labels = [{"displayName": "cat"}, {"displayName": "big"}]
    several = read(
        make_line(1),
        make_line(2, classificationAnnotations=labels),
        make_line(3, classificationAnnotations=[]),
    )
    assert [row.values[2] for row in several.rows()] == [None, ["cat", "big"], []]
    assert several.schema.target_kind == "labels"


def test_a_file_of_images_alone_has_no_objects(read):
    assert list_values(read(make_line(1), "")) == [["gs://bucket/1.jpeg", "", None]]


def test_the_first_line_may_be_longer_than_what_tells_the_form(read):
    source = read(make_line(1, boundingBoxAnnotations=[TOMATO] * 2_000))
    assert len(list_values(source)[0][2]["objects"]) == 2_000


@pytest.mark.fault(
    107, "lines with annotations of several kinds, or with masks", "refused", code="exit 1"
)
def test_files_of_several_kinds_are_refused(read):
    boxes = make_line(1, boundingBoxAnnotations=[TOMATO])
    with pytest.raises(DataError, match=r"line 3 has classificationAnnotation, and others boundin"):
        [*read(make_line(0), boxes, make_line(2, classificationAnnotation={})).rows()]
    for key in ("maskAnnotation", "segmentationAnnotation", "polygonAnnotations"):
        with pytest.raises(DataError, match=rf"line 1 has {key}\. Leave them out: darkroom reads"):
            [*read(make_line(1, **{key: {}})).rows()]


@pytest.mark.fault(
    107, "a line that is cut, nested very deeply or has a key twice", "rejected", code="`bad_value`"
)
@pytest.mark.fault(
    107, "annotations or labels of another form of JSON", "rejected", code="`bad_value`"
)
@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ('{"imageGcsUri": "gs://bucket/cut', "expected an object: "),
        ('{"imageGcsUri": "a.jpg", "imageGcsUri": "b.jpg"}', "the key 'imageGcsUri' occurs twice"),
        ('{"imageGcsUri": ' + "[" * 100_000, "expected an object"),
        ("[1]", "expected an object: [1]"),
        ('{"n": ' + "9" * 5_000 + "}", "it has a number of too many digits"),
        (
            make_line(2, boundingBoxAnnotations={"a": 1}),
            "boundingBoxAnnotations is {'a': 1}, expec",
        ),
        (make_line(2, boundingBoxAnnotations=5), "boundingBoxAnnotations is 5, expected a list"),
        (
            make_line(2, dataItemResourceLabels=[]),
            "dataItemResourceLabels is [], expected an object",
        ),
        (make_line(2, **use(3)), f"{ML_USE} is 3, expected text"),
    ],
)
def test_a_bad_line_rejects_its_image_and_no_other(read, line, detail):
    good = make_line(1, boundingBoxAnnotations=[TOMATO])
    first, bad, last = read(good, line, good).rows()
    assert bad.fault
    assert (bad.row, bad.fault.reason, bad.fault.detail[:8]) == (2, "bad_value", "line 2: ")
    assert bad.fault.detail[8:].startswith(detail)
    assert (first.values, type(last)) == (last.values, Row)


@pytest.mark.fault(107, "a class without its name", "rejected", code="`bad_value`")
@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ({"classificationAnnotation": "cat"}, "an annotation is 'cat', expected an object"),
        ({"classificationAnnotation": {}}, "displayName is None, expected text"),
        ({"classificationAnnotation": {"displayName": {"a": 1}}}, "displayName is {'a': 1}, expec"),
    ],
)
def test_a_bad_label_rejects_its_image(read, line, detail):
    _, bad = read(
        make_line(1, classificationAnnotation={"displayName": "cat"}), make_line(2, **line)
    ).rows()
    assert bad.fault.detail.startswith(f"line 2: {detail}")


@pytest.mark.fault(
    107,
    "NaN, text, or a number that is too large, for a side of a box",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.fault(
    107,
    "a side of a box that is absent, or left of right",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.fault(107, "an object without a label", "the object is rejected", code="`empty_label`")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"xMin": float("nan")}, "bad_box"),
        ({"xMin": "left"}, "bad_box"),
        ({"xMin": 0.9}, "bad_box"),
        ({"yMax": None}, "bad_box"),
        ({"yMax": 10**400}, "bad_box"),
        ({"displayName": None}, "empty_label"),
        ({"displayName": "a\0b"}, "bad_label"),
    ],
)
def test_a_bad_object_is_lost_alone(read, change, reason):
    line = make_line(1, boundingBoxAnnotations=[TOMATO, {**SALAD, **change}, 7])
    ((_, _, cell),) = list_values(read(line))
    found = parse_objects(cell, Form(("objects",)))
    assert [each["label"] for each in found.value["objects"]] == ["Tomato"]
    assert [each.fault.reason for each in found.lost] == [reason, "bad_value"]


@pytest.mark.fault(107, "a line without an image", "rejected with its objects", code="`no_image`")
def test_a_line_without_an_image_keeps_its_objects_to_be_counted(read):
    good = make_line(1, boundingBoxAnnotations=[TOMATO])
    _, row = read(good, {**good, "imageGcsUri": 5}).rows()
    assert row == Row(2, ["", "", make_cell({"label": "Tomato", "box": [0.3, 0.3, 0.7, 0.6]})])


@pytest.mark.fault(107, "an encoding other than UTF-8", "refused", code="exit 1")
def test_other_encodings_are_named(read, tmp_path):
    with pytest.raises(DataError, match="windows-1252"):
        read(
            json.dumps(make_line("käse"), ensure_ascii=False)
            .encode("cp1252")
            .decode(errors="surrogateescape")
        )
    path = tmp_path / "wide.jsonl"
    path.write_text(json.dumps(make_line(1)), encoding="utf-16")
    with pytest.raises(DataError, match="is UTF-16"):
        open_sources(path, ManifestOptions(format="vertex"))
