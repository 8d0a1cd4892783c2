"""CSV with a row for each object: of the tutorials of TensorFlow, and of AutoML."""

import pytest
from tests.parsed import parse_objects

from darkroom.dataset.schema import Schema
from darkroom.errors import DataError
from darkroom.manifest.formats.object_rows import ObjectRows
from darkroom.manifest.opening import open_sources
from darkroom.manifest.sources.csv import CsvSource
from darkroom.options.manifest import ManifestOptions
from darkroom.targets.boxes.kind import KIND
from darkroom.targets.form import Form

FORM = Form(("objects",), has_types=False)
HEADER = "filename,width,height,class,xmin,ymin,xmax,ymax"


@pytest.fixture
def read(tmp_path):
    """Opens a CSV of lines, beside the images a.jpg and b.jpg."""

    def read(*lines, name="list.csv", encoding="utf-8", **options):
        for image in ("a.jpg", "b.jpg"):
            (tmp_path / image).touch()
        (tmp_path / name).write_text("\n".join(lines), encoding=encoding)
        (source,) = open_sources(tmp_path / name, ManifestOptions(**options))
        return source

    return read


def list_images(source):
    """Returns each image with the label and the box of each of its objects."""
    found = []
    for row in source.rows():
        *said, cell = row.values
        objects = [(each.get("label"), each.get("box")) for each in cell["objects"]]
        found.append((*said, objects))
    return found


def parse(source):
    """Returns the kept objects of the only image, and why others are lost."""
    (row,) = source.rows()
    found = parse_objects(row.values[-1], Form(("objects",), has_types=source.has_types))
    lost = [each.fault.args for each in found.lost]
    return [(each["label"], each["box"]) for each in found.value["objects"]], lost


def test_rows_of_an_image_are_its_objects_wherever_they_are(read):
    rows = "a.jpg,640,480,cat,1,2,30,40", "b.jpg,,,dog,0,0,9,9", "a.jpg,640,480,dog,5.5,6,7,8"
    source = read(HEADER, *rows)
    assert list_images(source) == [
        ("a.jpg", [("cat", ["1", "2", "30", "40"]), ("dog", ["5.5", "6", "7", "8"])]),
        ("b.jpg", [("dog", ["0", "0", "9", "9"])]),
    ]
    first, second = (row.values[1] for row in source.rows())
    assert (first["width"], first["height"], first["orientation"]) == ("640", "480", None)
    assert (second["width"], second["height"]) == (None, None)
    assert [each["id"] for each in first["objects"]] == ["in row 1", "in row 3"]
    assert source.read_as.describe_form().startswith("CSV with a row for each object in UTF-8, hea")


@pytest.mark.parametrize(
    "form", ["sep=,", "# exported", "A title", "utf-16", "parquet", "jsonl", "frame"]
)
def test_the_same_table_has_the_same_objects_in_every_form(read, tmp_path, form):
    pd = pytest.importorskip("pandas")
    rows = "a.jpg,640,480,cat,1,2,30,40", "b.jpg,,,,,,,", "a.jpg,640,480,dog,5.5,6,7,8"
    plain = read(HEADER, *rows)
    frame = pd.read_csv(plain.name)
    if form in ("parquet", "jsonl"):
        path = tmp_path / f"table.{form}"
        lines = {"orient": "records", "lines": True}
        frame.to_parquet(path) if form == "parquet" else frame.to_json(path, **lines)
    elif form == "utf-16":
        path = tmp_path / "other.csv"
        path.write_text("\n".join((HEADER, *rows)), encoding="utf-16")
    else:
        path = tmp_path / "other.csv"
        path.write_text("\n".join((form, HEADER, *rows)))
    if form == "frame":
        path = frame.assign(filename=[f"{tmp_path}/{name}" for name in frame["filename"]])
    encoding = "utf-16" if form == "utf-16" else "utf-8"
    (source,) = open_sources(path, ManifestOptions(source_encoding=encoding))
    assert isinstance(source, ObjectRows)
    found = {row.values[0].rpartition("/")[2]: row.values[1] for row in source.rows()}
    for name, value in ((row.values[0], row.values[1]) for row in plain.rows()):
        assert parse_objects(found[name], FORM) == parse_objects(value, FORM)


@pytest.mark.parametrize(
    "lines",
    [
        ("xmax,ymax,xmin,ymin,class,filename", "3,4,1,2,cat,a.jpg"),
        ("image_path, x_min, y_min, x_max, y_max, label", "a.jpg, 1, 2, 3, 4, cat"),
        ("image_id,class_name,class_id,x_min,y_min,x_max,y_max", "a.jpg,cat,7,1,2,3,4"),
        ('"Image","x1","y1","x2","y2","Label"', '"a.jpg","1","2","3","4","cat"'),
        ("\ufefffilename,class,xmin,ymin,xmax,ymax,note", "a.jpg,cat,1,2,3,4,x", ""),
    ],
)
def test_columns_have_any_order_and_several_names(read, lines):
    assert list_images(read(*lines)) == [("a.jpg", [("cat", ["1", "2", "3", "4"])])]


def test_a_row_without_class_and_box_has_an_image_without_objects(read):
    rows = "a.jpg,640,480,,,,,", "b.jpg,640,480,cat,1,2,3,4", "b.jpg,640,480,,,,,"
    assert [len(objects) for _, objects in list_images(read(HEADER, *rows))] == [0, 1]


def test_the_named_format_does_not_depend_on_options_of_other_columns(read):
    row = "a.jpg,640,480,cat,1,2,3,4"
    source = read(HEADER, row, format="tf_csv", label_kind="labels")
    assert list_images(source) == [("a.jpg", [("cat", ["1", "2", "3", "4"])])]


def test_a_size_of_zero_is_none(read):
    assert next(read(HEADER, "a.jpg,0,0,cat,1,2,3,4").rows()).values[1]["width"] is None


def test_splits_are_in_a_column_or_in_the_name_of_the_file(read):
    row = "a.jpg,640,480,cat,1,2,3,4"
    assert list_images(read(f"{HEADER},split", f"{row},test"))[0][:2] == ("a.jpg", "test")
    assert read(HEADER, row, name="train_labels.csv").split == "train"
    assert (read(HEADER, row).schema.split, read(HEADER, row).split) == (None, "")


@pytest.mark.fault(
    108, "rows of an image with other splits or sizes", "all are rejected", code="`conflict`"
)
def test_rows_of_an_image_that_contradict_each_other_are_two_images(read):
    rows = "a.jpg,640,480,cat,1,2,3,4,train", "a.jpg,640,480,cat,1,2,3,4,test"
    assert [split for _, split, _ in list_images(read(f"{HEADER},split", *rows))] == [
        *("train", "test")
    ]


def test_other_lists_with_such_columns_stay_lists(read):
    for lines in (
        ("image,label,bbox", "a.jpg,cat,x"),
        ("image,xmin,ymin,xmax,ymax", "a.jpg,1,2,3,4"),
        ("image,label,xmin", "a.jpg,cat,1"),
    ):
        assert isinstance(read(*lines), CsvSource)
    schema = Schema.parse({"filename": "image", "class": "string_label", "xmin": "float"})
    assert isinstance(read(HEADER, "a.jpg,1,1,cat,1,2,3,4", schema=schema), CsvSource)


@pytest.mark.fault(
    108,
    "NaN, text, or a number that is too large, for a side of a box",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.fault(
    108, "a class without a box, or a box of no area", "the object is rejected", code="`bad_box`"
)
@pytest.mark.fault(108, "a box without a class", "the object is rejected", code="`empty_label`")
@pytest.mark.fault(
    108, "more or fewer cells than the header", "the object is rejected", code="`ragged_row`"
)
@pytest.mark.fault(108, "a NUL byte", "the object is rejected", code="`nul_byte`")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a.jpg,640,480,cat,nan,2,3,4", "bad_box"),
        ("a.jpg,640,480,cat,one,2,3,4", "bad_box"),
        ("a.jpg,640,480,cat,1e999,2,3,4", "bad_box"),
        ("a.jpg,640,480,cat,,,,", "bad_box"),
        ("a.jpg,640,480,cat,3,2,1,4", "bad_box"),
        ("a.jpg,640,480,,1,2,3,4", "empty_label"),
        ("a.jpg,640,480,cat,1,2,3", "ragged_row"),
        ("a.jpg,640,480,cat,1,2,3,4,5", "ragged_row"),
        ("a.jpg,640,480,c\0at,1,2,3,4", "nul_byte"),
        (f"a.jpg,640,480,{'x' * 2_000},1,2,3,4", "bad_label"),
    ],
)
def test_a_bad_row_is_an_object_that_is_lost_alone(read, row, reason):
    kept, lost = parse(read(HEADER, "a.jpg,640,480,cat,1,2,3,4", row))
    assert kept == [("cat", [1, 2, 3, 4])]
    assert [code for code, _ in lost] == [reason]
    if reason in ("bad_box", "empty_label", "bad_label"):
        assert lost[0][1].startswith("object in row 2: ")


@pytest.mark.fault(
    108,
    "rows without an image, or that repeat the header",
    "rejected",
    code="`no_image`, `repeated_header`",
)
def test_a_row_without_an_image_is_rejected_with_its_objects(read):
    good = "a.jpg,640,480,cat,1,2,3,4"
    first, second, header = read(HEADER, good, ",640,480,cat,1,2,3,4", HEADER).rows()
    assert (first.values[0], second.values[0]) == ("a.jpg", "")
    assert KIND.count(second.values[1]) == 1
    assert (header.row, header.values) == (3, [])
    assert header.fault.args == ("repeated_header", "line 4 repeats the header")


@pytest.mark.fault(108, "a quoted cell without an end, or a column twice", "refused", code="exit 1")
@pytest.mark.fault(
    108,
    "images that are not found",
    "refused, with the folders that were tried",
    code="exit 1",
    hint="`--image-dir`",
)
def test_files_with_faults_are_refused(read, tmp_path):
    row = "a.jpg,640,480,cat,1,2,3,4"
    with pytest.raises(DataError, match="does not end correctly"):
        [*read(HEADER, row, '"a.jpg,640').rows()]
    with pytest.raises(DataError, match=r"The images of .* are not found, as x\.jpg, y\.jpg"):
        read(HEADER, "x.jpg,640,480,cat,1,2,3,4", "y.jpg,640,480,cat,1,2,3,4")
    with pytest.raises(DataError, match="is UTF-16"):
        read(HEADER, row, encoding="utf-16", format="tf_csv")
    with pytest.raises(DataError, match="Columns occur twice"):
        read(f"{HEADER},xmin", f"{row},1")
    with pytest.raises(DataError, match="does not have the columns of boxes"):
        read("image,label", "a.jpg,cat", format="tf_csv")
    with pytest.raises(DataError, match="is empty"):
        read("", format="tf_csv")


@pytest.mark.fault(108, "very many objects of one image", "taken")
def test_an_image_may_have_very_many_objects(read):
    source = read(HEADER, *["a.jpg,640,480,cat,1,2,3,4"] * 50_000)
    assert len(list_images(source)[0][1]) == 50_000


AUTOML = (
    "test,gs://bucket/1.jpeg,Tomato,0.01,0.32,,,0.06,0.35,,",
    "TRAIN,gs://bucket/2.jpeg,Salad,0.8,0.2,1,0.2,1,0.4,0.8,0.4",
    "UNASSIGNED,gs://bucket/3.gif,Tomato,0.5,0.5,,,0.9,0.9,,",
    ",gs://bucket/3.gif,Tomato,0.5,0.5,,,0.9,0.9,,",
    "VALIDATION,gs://bucket/4.png,,,,,,,,,",
    "TRAIN,gs://bucket/2.jpeg,Tomato,.1,.1,,,.2,.2,,",
)


def test_automl_has_two_or_four_vertices_and_images_without_objects(read):
    source = read(*AUTOML)
    assert list_images(source) == [
        ("gs://bucket/1.jpeg", "test", [("Tomato", ["0.01", "0.32", "0.06", "0.35"])]),
        (
            *("gs://bucket/2.jpeg", "TRAIN"),
            [("Salad", [0.8, 0.2, 1.0, 0.4]), ("Tomato", [".1", ".1", ".2", ".2"])],
        ),
        ("gs://bucket/3.gif", "UNASSIGNED", [("Tomato", ["0.5", "0.5", "0.9", "0.9"])]),
        ("gs://bucket/3.gif", "", [("Tomato", ["0.5", "0.5", "0.9", "0.9"])]),
        ("gs://bucket/4.png", "VALIDATION", []),
    ]
    assert {row.values[2]["width"] for row in source.rows()} == {1}


def test_the_vertices_of_automl_begin_anywhere_and_go_either_way(read):
    for vertices in ("1,.2,1,.4,.8,.4,.8,.2", ".8,.4,1,.4,1,.2,.8,.2", ".8,.2,.8,.4,1,.4,1,.2"):
        assert parse(read(f"TRAIN,gs://b/1.png,cat,{vertices}")) == (
            [("cat", [0.8, 0.2, 1, 0.4])],
            [],
        )


@pytest.mark.fault(
    109,
    "vertices that are turned or crossed, or of which one is missing",
    "the object is rejected",
    code="`bad_box`",
)
@pytest.mark.fault(
    109, "a box of no area, or NaN for a vertex", "the object is rejected", code="`bad_box`"
)
@pytest.mark.parametrize(
    "vertices",
    [
        ".5,.1,.9,.5,.5,.9,.1,.5",  # turned by 45 degrees
        ".1,.1,.9,.9,.9,.1,.1,.9",  # crossed
        ".1,.1,.9,.1,.9,.9,,",
        ".1,.1,.9,.1,.9,.9,.1,",
        ".1,.1,,,,,,",
        "nan,.1,.9,.1,.9,.9,nan,.9",
        ".9,.9,,,.1,.1,,",
        ",,,,,,,",
        ".1,.1,.1,.1,.1,.1,.1,.1",
    ],
)
def test_vertices_that_are_not_of_a_box_lose_their_object(read, vertices):
    row = "TRAIN,gs://b/1.png,cat,"
    kept, lost = parse(read(*[f"{row}.1,.2,,,.3,.4,,"] * 2, f"{row}{vertices}"))
    assert (len(kept), [code for code, _ in lost]) == (2, ["bad_box"])
    assert lost[0][1].startswith("object in row 3: ")


@pytest.mark.fault(
    109,
    "text for a vertex, or too few cells",
    "the object is rejected",
    code="`bad_box`, `ragged_row`",
)
def test_a_row_of_automl_with_a_text_for_a_number_or_too_few_cells_is_lost(read):
    rows = "TRAIN,gs://b/1.png,cat,left,.1,.9,.1,.9,.9,.1,.9", "TRAIN,gs://b/1.png,cat,.1,.1"
    _, lost = parse(read(*["TRAIN,gs://b/1.png,cat,.1,.2,,,.3,.4,,"] * 3, *rows))
    assert [code for code, _ in lost] == ["bad_box", "ragged_row"]


def test_automl_with_classes_alone_stays_a_list(read):
    rows = "TRAIN,gs://b/1.png,cat", "TEST,gs://b/2.png,dog"
    assert isinstance(read(*rows), CsvSource)
