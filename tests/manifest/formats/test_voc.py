"""Datasets of Pascal VOC as tools write them."""

import pytest

from darkroom.errors import DataError
from darkroom.manifest.formats.voc.source import VocSource


def make_annotation(*labels, filename="", corner=1):
    corners = f"<xmin>{corner}</xmin><ymin>2</ymin><xmax>30</xmax><ymax>40</ymax>"
    objects = "".join(
        f"<object><name>{label}</name><bndbox>{corners}</bndbox></object>" for label in labels
    )
    size = "<size><width>64</width><height>48</height><depth>3</depth></size>"
    return f"<annotation><filename>{filename}</filename>{size}{objects}</annotation>"


def list_rows(rows):
    """Returns split and labels of each image, in order; None where nobody looked."""
    return [
        (
            row["image_uri"],
            row.get("split"),
            row["objects"] and [each["label"] for each in row["objects"]["objects"]],
        )
        for row in rows
    ]


def test_the_layout_of_voc(write, read):
    folder = write(
        {
            "Annotations/a.xml": make_annotation("cat", "dog", filename="a.jpg"),
            "Annotations/b.xml": make_annotation(),
            "Annotations/c.xml": make_annotation("cat"),
            "Annotations/unlisted.xml": make_annotation("dog"),
            "ImageSets/Main/train.txt": "a\n",
            "ImageSets/Main/val.txt": "b\nd\n",
            "ImageSets/Main/test.txt": "c\r\n",
            "ImageSets/Main/trainval.txt": "a\nb\n",
            "ImageSets/Main/cat_train.txt": "a  1\n",
            "JPEGImages/a.jpg": "",
            "JPEGImages/b.jpg": "",
            "JPEGImages/c.jpg": "",
            "JPEGImages/d.jpg": "",
            "JPEGImages/unlisted.jpg": "",
            "SegmentationClass/a.png": "",
            "SegmentationObject/a.png": "",
        }
    )
    source, rows = read()
    assert isinstance(source, VocSource)
    assert source.base == source.identity_base == folder
    assert list_rows(rows) == [
        ("JPEGImages/a.jpg", "train", ["cat", "dog"]),
        ("JPEGImages/b.jpg", "val", []),
        ("JPEGImages/c.jpg", "test", ["cat"]),
        ("JPEGImages/d.jpg", "val", None),
    ]
    assert rows[0]["objects"] == {
        "width": 64.0,
        "height": 48.0,
        "orientation": None,
        "objects": [
            {
                "id": f"{number} of Annotations/a.xml",
                "label": label,
                "box": [1.0, 2.0, 30.0, 40.0],
                "difficult": "0",
            }
            for number, label in enumerate(["cat", "dog"], start=1)
        ],
    }
    assert source.listing.left_out == {"annotations in no list of ImageSets/Main": 1}
    assert source.read_as.remarks == ("the smallest corner is 1, and the first pixel 0",)


def test_annotations_that_labelimg_has_checked_are_known(write, read):
    checked = make_annotation("cat").replace("<annotation>", '<annotation verified="yes">')
    write({"a.jpg": "", "a.xml": checked, "b.jpg": "", "b.xml": make_annotation("dog")})
    source, rows = read()
    assert isinstance(source, VocSource)
    assert [[each["label"] for each in row["objects"]["objects"]] for row in rows] == [
        ["cat"],
        ["dog"],
    ]


def test_trainval_alone_does_not_say_the_split(write, read):
    write(
        {
            "Annotations/a.xml": make_annotation("cat"),
            "JPEGImages/a.jpg": "",
            "ImageSets/Main/trainval.txt": '"a"\n',
        }
    )
    assert list_rows(read()[1]) == [("JPEGImages/a.jpg", "", ["cat"])]


def test_lists_may_name_files_and_images_be_in_another_folder(write, read):
    write(
        {
            "Annotations/a.b.xml": make_annotation("cat"),
            "images/a.b.jpg": "",
            "images/c.jpg": "",
            "images/unlisted.jpg": "",
            "ImageSets/Main/val.txt": "a.b\n",
            "ImageSets/Main/trainval.txt": "a.b\nc.jpg\n",
        }
    )
    assert list_rows(read()[1]) == [
        ("images/a.b.jpg", "val", ["cat"]),
        ("images/c.jpg", "", None),
    ]


@pytest.mark.fault(
    112, "an image in the lists of two splits", "both rows are rejected", code="`conflict`"
)
def test_an_image_that_two_lists_name_has_a_row_in_both(write, read):
    write(
        {
            "Annotations/a.xml": make_annotation("cat"),
            "Annotations/b.xml": make_annotation("dog"),
            "JPEGImages/a.jpg": "",
            "JPEGImages/b.jpg": "",
            "ImageSets/Main/train.txt": "a\nb",
            "ImageSets/Main/val.txt": "a",
            "ImageSets/Main/test.txt": "b\na",
        }
    )
    source, rows = read()
    assert list_rows(rows) == [
        ("JPEGImages/a.jpg", "train", ["cat"]),
        ("JPEGImages/a.jpg", "val", ["cat"]),
        ("JPEGImages/b.jpg", "train", ["dog"]),
    ]
    assert source.read_as.remarks[:2] == (
        "train and val both name 1 images",
        "test names the images of train, which are read once",
    )


def test_images_of_trainval_alone_have_no_split(write, read):
    write(
        {
            **{f"Annotations/{name}.xml": make_annotation("cat") for name in "abc"},
            **{f"JPEGImages/{name}.jpg": "" for name in "abc"},
            "ImageSets/Main/train.txt": "a",
            "ImageSets/Main/trainval.txt": "a\nb",
        }
    )
    source, rows = read()
    assert list_rows(rows) == [
        ("JPEGImages/a.jpg", "train", ["cat"]),
        ("JPEGImages/b.jpg", "", ["cat"]),
    ]
    assert source.listing.left_out == {"annotations in no list of ImageSets/Main": 1}


def test_a_list_may_name_what_is_not_there(write, read):
    write(
        {
            "Annotations/a.xml": make_annotation("cat"),
            "JPEGImages/a.jpg": "",
            "ImageSets/Main/train.txt": "a\ngone\n../../etc/x\n",
        }
    )
    assert list_rows(read()[1])[1:] == [
        ("JPEGImages/gone.jpg", "train", None),
        ("../../etc/JPEGImages/x.jpg", "train", None),
    ]


def test_several_datasets_of_voc_in_one_folder(write, read):
    write(
        {
            f"{root}/{name}": text
            for root, label in (("VOC2007", "cat"), ("VOC2012", "dog"))
            for name, text in (
                ("Annotations/1.xml", make_annotation(label)),
                ("JPEGImages/1.jpg", ""),
                ("ImageSets/Main/train.txt", "1"),
            )
        }
    )
    assert list_rows(read(format="voc")[1]) == [
        ("VOC2007/JPEGImages/1.jpg", "train", ["cat"]),
        ("VOC2012/JPEGImages/1.jpg", "train", ["dog"]),
    ]


def test_annotations_beside_images_in_folders_of_splits(write, read):
    write(
        {
            "train/a.xml": make_annotation("cat", filename="a.jpg"),
            "train/a.jpg": "",
            "train/b.jpg": "",
            "valid/a.xml": make_annotation("dog", filename="a.jpg"),
            "valid/a.jpg": "",
            "test/gone.xml": make_annotation("cat", filename="gone.jpg"),
            "README.txt": "",
        }
    )
    assert list_rows(read()[1]) == [
        ("test/gone.jpg", "test", ["cat"]),
        ("train/a.jpg", "train", ["cat"]),
        ("valid/a.jpg", "eval", ["dog"]),
        ("train/b.jpg", "train", None),
    ]


@pytest.mark.fault(112, "an annotation without an image", "rejected", code="`missing`")
def test_an_annotation_does_not_take_the_image_of_another_split(write, read):
    write(
        {
            "train/a.xml": make_annotation("cat"),
            "train/b.xml": make_annotation("cat"),
            "train/b.jpg": "",
            "valid/a.jpg": "",
        }
    )
    assert list_rows(read()[1]) == [
        ("train/a.jpg", "train", ["cat"]),
        ("train/b.jpg", "train", ["cat"]),
        ("valid/a.jpg", "eval", None),
    ]


def test_a_folder_of_annotations_and_one_of_images(write, read):
    write(
        {
            "annotations/train/a.xml": make_annotation("cat"),
            "annotations/test/a.xml": make_annotation("dog"),
            "images/train/a.png": "",
            "images/test/a.png": "",
        }
    )
    assert list_rows(read(format="voc")[1]) == [
        ("images/test/a.png", "test", ["dog"]),
        ("images/train/a.png", "train", ["cat"]),
    ]


def test_folders_of_images_say_the_split_of_annotations_in_one_folder(write, read):
    write(
        {
            "xmls/a.xml": make_annotation("cat"),
            "xmls/b.xml": make_annotation("dog"),
            "train/a.png": "",
            "test/b.png": "",
        }
    )
    assert list_rows(read()[1]) == [
        ("train/a.png", "train", ["cat"]),
        ("test/b.png", "test", ["dog"]),
    ]


@pytest.mark.fault(112, "another name of the image in the file", "the name of the file counts")
def test_what_an_annotation_calls_its_image_may_be_wrong(write, read):
    write(
        {
            "a.xml": make_annotation("cat", filename="b.jpg"),
            "b.xml": make_annotation("dog", filename="Untitled"),
            "c.xml": make_annotation("cow", filename=r"C:\photos\IMG_7.JPG"),
            "d.xml": make_annotation("pig", filename="d.png"),
            **dict.fromkeys(("a.jpg", "b.jpg", "IMG_7.JPG", "d.jpg", "d.png"), ""),
        }
    )
    assert list_rows(read()[1]) == [
        ("a.jpg", None, ["cat"]),
        ("b.jpg", None, ["dog"]),
        ("IMG_7.JPG", None, ["cow"]),
        ("d.png", None, ["pig"]),
        ("d.jpg", None, None),
    ]


def test_images_are_beside_the_folder_that_is_given(write, read, tmp_path):
    write({"Annotations/a.xml": make_annotation("cat", filename="a.jpg"), "JPEGImages/a.jpg": ""})
    source, rows = read(tmp_path / "Annotations")
    assert source.base == str(tmp_path / "JPEGImages")
    assert list_rows(rows) == [("JPEGImages/a.jpg", None, ["cat"])]


def test_images_are_where_image_dir_says(write, read, tmp_path):
    write({"x/a.xml": make_annotation("cat"), "x/logo.png": "", "y/z/a.jpg": ""})
    _, rows = read(tmp_path / "x", image_dir=str(tmp_path / "y"))
    assert list_rows(rows) == [("y/z/a.jpg", None, ["cat"])]


def test_pixels_from_one(write, read):
    write({"a.xml": make_annotation("cat"), "a.jpg": ""})
    source, rows = read(voc_origin=1)
    assert rows[0]["objects"]["objects"][0]["box"] == [0.0, 1.0, 29.0, 39.0]
    assert source.read_as.remarks == ("the smallest corner is 1, and the first pixel 1",)


@pytest.mark.fault(112, "images that are found nowhere", "refused", code="exit 1")
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.jpg": ""}, r"has no annotation \(\.xml\)"),
        ({"x/a.xml": make_annotation("cat", filename="a.jpg")}, r"not found, as a\.jpg\. Tried: "),
        ({"a.xml": make_annotation("cat"), "b.jpg": ""}, r"not found, as a\.jpg\. Tried: "),
        (
            {"a.xml": make_annotation("a"), "ImageSets/Main/val.txt": b"\xff\xfea\0"},
            r"val\.txt is UTF-16",
        ),
    ],
)
def test_what_is_found_nowhere_is_an_error_of_the_source(write, read, files, said):
    write(files)
    with pytest.raises(DataError, match=said):
        read(format="voc")
