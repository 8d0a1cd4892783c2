"""Datasets of COCO as tools write them, and what their rows say."""

import json
import posixpath

import pytest

from darkroom.dataset.splits import SplitRatios
from darkroom.errors import DataError
from darkroom.manifest.formats import json_file
from darkroom.manifest.opening import open_sources
from darkroom.manifest.sources.base import Row
from darkroom.options.manifest import ManifestOptions

CATEGORIES = [{"id": 1, "name": "cat", "supercategory": "animal"}, {"id": 7, "name": "dog"}]
IMAGES = [
    {"id": 10, "file_name": "a.jpg", "width": 40, "height": 30},
    {"id": 3, "file_name": "b.jpg", "width": "3264", "height": "2448"},
]
CAT = {"id": 5, "image_id": 10, "category_id": 1, "bbox": [1, 2, 3.5, 4], "area": 9.5, "iscrowd": 0}
DOG = {"id": 6, "image_id": 10, "category_id": 7, "bbox": [0, 0, 40, 30], "iscrowd": 1}


def make_coco(annotations=(CAT, DOG), images=IMAGES, categories=CATEGORIES, **further):
    found = {"images": images, "annotations": annotations, "categories": categories}
    return {"info": {"year": 2026}, **found, **further}


@pytest.fixture
def write(tmp_path):
    """Writes a file of COCO, or text, with the images that it names beside it."""

    def write(content, name="a.json", images="."):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        folder = path.parent / images
        folder.mkdir(parents=True, exist_ok=True)
        for image in ("a.jpg", "b.jpg"):
            (folder / image).touch()
        return path

    return write


def open_one(path, **options):
    (source,) = open_sources(path, ManifestOptions(**options))
    return source


def read(path, **options):
    """Returns the paths of images, and their objects."""
    return [(path, said) for path, _, said in read_all(path, **options)]


def read_all(path, **options):
    """Returns the paths of images, the splits that the names of files mean, and their objects."""
    return [
        (posixpath.join(source.base, uri), source.split, said)
        for source in open_sources(path, ManifestOptions(**options))
        for uri, said in (row.values for row in source.rows())
    ]


def read_objects(path):
    return [each for *_, said in read(path) for each in said["objects"]]


def test_a_file_of_coco_has_a_row_for_each_image(write):
    path = write(make_coco())
    source = open_one(path)
    rows = list(source.rows())
    assert [name for name, _ in source.schema.columns] == ["image_uri", "objects"]
    assert [type(row) for row in rows] == [Row, Row]
    uri, said = rows[0].values
    assert (source.base, uri) == (str(path.parent), "a.jpg")
    assert said == {
        "image_id": 10,
        "width": 40,
        "height": 30,
        "orientation": None,
        "objects": [
            {
                "label": "cat",
                "box": [1, 2, 4.5, 6],
                "is_crowd": 0,
                "area": 9.5,
                "id": 5,
            },
            {
                "label": "dog",
                "box": [0, 0, 40, 30],
                "is_crowd": 1,
                "area": None,
                "id": 6,
            },
        ],
    }


def test_an_image_without_annotations_has_none_and_may_have_its_size_as_text(write):
    (_, said) = read(write(make_coco()))[1]
    size = {"width": "3264", "height": "2448", "orientation": None}
    assert said == {"image_id": 3, **size, "objects": []}


def test_without_a_list_of_annotations_nobody_has_looked(write):
    path = write(make_coco())
    found = json.loads(path.read_text())
    del found["annotations"]
    path.write_text(json.dumps(found))
    found = [said for _, said in read(path, format="coco")]
    assert [(said["image_id"], said["objects"]) for said in found] == [(10, None), (3, None)]
    path.write_text(json.dumps({"images": IMAGES}))
    assert [said["objects"] for _, said in read(path)] == [None, None]


def test_lvis_names_an_image_by_its_address_alone(write):
    url = "http://images.cocodataset.org/train2017"
    images = [{"id": 10, "coco_url": f"{url}/a.jpg"}, {"id": 3, "coco_url": f"{url}/b.jpg"}]
    path = write(make_coco(images=images), images="train2017")
    assert [uri for uri, _ in read(path)] == [
        str(path.with_name("train2017") / name) for name in ("a.jpg", "b.jpg")
    ]


def test_an_image_of_fiftyone_has_null_as_its_address(write):
    images = [{**each, "license": None, "coco_url": None} for each in IMAGES]
    assert [*read(write(make_coco(images=images)))] == [*read(write(make_coco(images=IMAGES)))]


def test_the_size_of_an_image_may_be_left_out_or_0(write):
    images = [{"id": 10, "file_name": "a.jpg"}, {**IMAGES[1], "height": 0}]
    for _, said in read(write(make_coco(images=images))):
        assert (said["width"], said["height"]) == (None, None)


def test_roboflow_has_a_folder_a_split(write, tmp_path):
    for split in ("train", "valid", "test"):
        write(make_coco(), f"set/{split}/_annotations.coco.json")
    rows = read_all(tmp_path / "set")
    assert len(rows) == 6
    found = [(uri[len(str(tmp_path)) :], split, len(said["objects"])) for uri, split, said in rows]
    assert found[::2] == [
        ("/set/test/a.jpg", "test", 2),
        ("/set/train/a.jpg", "train", 2),
        ("/set/valid/a.jpg", "eval", 2),
    ]
    # Images of one name have keys of their own.
    sources = open_sources(tmp_path / "set")
    assert {source.identity_base for source in sources} == {str(tmp_path / "set")}
    assert open_one(tmp_path / "set/valid").split == ""


def test_fiftyone_has_labels_beside_data(write, tmp_path):
    write(make_coco(), "set/labels.json", "data")
    assert [uri for uri, _ in read(tmp_path / "set")] == [
        f"{tmp_path}/set/data/a.jpg",
        f"{tmp_path}/set/data/b.jpg",
    ]
    for split in ("train", "val"):
        write(make_coco(), f"splits/{split}/labels.json", "data")
    found = [(uri[len(str(tmp_path)) :], split) for uri, split, _ in read_all(tmp_path / "splits")]
    assert found[::2] == [("/splits/train/data/a.jpg", "train"), ("/splits/val/data/a.jpg", "eval")]


def test_cvat_has_annotations_and_images(write, tmp_path):
    path = write(make_coco(), "set/annotations/instances_default.json", "../images")
    for source in (path, tmp_path / "set", tmp_path / "set/annotations"):
        assert [uri for uri, _ in read(source)] == [
            f"{tmp_path}/set/images/a.jpg",
            f"{tmp_path}/set/images/b.jpg",
        ]


def test_coco_proper_has_files_of_splits_beside_other_annotations(write, tmp_path):
    write(make_coco(), "set/annotations/instances_train2017.json", "../train2017")
    path = write(make_coco(), "set/annotations/instances_val2017.json", "../val2017")
    others = {"captions_val2017": {"annotations": [{"image_id": 10, "caption": "A cat."}]}}
    others["person_keypoints_val2017"] = {"annotations": [{**CAT, "keypoints": [1, 2, 2]}]}
    others["image_info_test2017"] = {}
    for name, said in others.items():
        images = [{"id": 1, "file_name": "lost.jpg"}]
        made = {"images": images, "categories": CATEGORIES, **said}
        write(made, f"set/annotations/{name}.json", "../val2017")
    for source in (tmp_path / "set", tmp_path / "set/annotations"):
        rows = read_all(source)
        assert [(uri.split("/")[-2], split) for uri, split, _ in rows] == [
            *[("train2017", "train")] * 2,
            *[("val2017", "eval")] * 2,
        ]
    assert (open_one(path).schema.split, open_one(path).split) == (None, "eval")


def test_only_some_files_named_after_splits_are_a_doubt_where_no_shares_are_given(write, tmp_path):
    write(make_coco(), "set/annotations/instances_train2017.json", "../images")
    write(make_coco(), "set/annotations/instances_more.json", "../images")
    for ratios, doubts in ((None, ["split_names"]), (SplitRatios(), [])):
        sources = open_sources(tmp_path / "set", ManifestOptions(split_ratios=ratios))
        assert [doubt.name for each in sources for doubt in each.read_as.doubts] == doubts


@pytest.mark.parametrize(
    ("files", "splits"),
    [
        ("annotations/instances_default.json annotations/val_instances_default.json", ["", "eval"]),
        ("annotations/custom_train.json annotations/custom_val.json", ["train", "eval"]),
        ("export/day1.json export/day2.json", ["", ""]),
    ],
)
def test_all_files_of_a_folder_are_read_whatever_they_are_called(write, tmp_path, files, splits):
    for name in files.split():
        write(make_coco(), f"set/{name}", "../train2017")
    write("{}", "set/package.json")
    write(json.dumps([CAT]), "set/results.json")
    assert [split for _, split, _ in read_all(tmp_path / "set")][::2] == splits


def test_images_of_a_split_are_in_any_folder_of_it(write, tmp_path):
    for split in ("train", "val"):
        write(make_coco(), f"set/annotations/custom_{split}.json", f"../pictures/{split}2017")
    found = [uri.split("/")[-2] for uri, _, _ in read_all(tmp_path / "set")]
    assert found == ["train2017", "train2017", "val2017", "val2017"]


def test_a_file_whose_content_is_not_known_is_named_by_its_format(write):
    path = write(make_coco(annotations=[], categories=[]), "labels.data")
    assert len(read(path, format="coco")) == 2


def test_a_folder_without_annotations_is_refused_where_coco_is_named(write, tmp_path):
    write("", "set/notes.txt")
    with pytest.raises(DataError, match=r"Nothing below .* is a file of annotations of COCO"):
        read(tmp_path / "set", format="coco")


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("first", ["annotations", "images"])
def test_the_lists_have_any_order_and_objects_any_values(write, monkeypatch, indent, first):
    monkeypatch.setattr(json_file, "_BLOCK_ELEMENTS", 7)
    trap = {"note": "},{", "parts": [{"id": 1}, {"id": 2}], "escaped": '"}, {"id'}
    objects = [
        {**CAT, "id": number, "image_id": (10, 3)[number % 2], "attributes": trap}
        for number in range(50)
    ]
    made = make_coco(objects)
    made = {first: made.pop(first), **made}
    (_, one), (_, other) = read(write(json.dumps(made, indent=indent)))
    assert [each["id"] for each in one["objects"]] == list(range(0, 50, 2))
    assert [each["id"] for each in other["objects"]] == list(range(1, 50, 2))


def test_a_box_that_is_missing_is_that_of_the_mask(write):
    outline = [[1, 2, 5, 2, 5, 9], [7, 1, 8, 1, 8, 3]]
    runs = {"size": [5, 4], "counts": "5:5"}
    objects = [
        {"id": 1, "image_id": 10, "category_id": 1, "segmentation": outline},
        {"id": 2, "image_id": 10, "category_id": 1, "segmentation": runs, "bbox": None},
        {"id": 3, "image_id": 10, "category_id": 1, "segmentation": runs, "bbox": []},
        {**CAT, "segmentation": runs, "keypoints": [1, 2, 2], "score": 0.9},
    ]
    source = open_one(write(make_coco(objects)))
    found = [each for row in source.rows() for each in row.values[-1]["objects"]]
    assert [each["box"] for each in found] == [[1, 1, 8, 9], *[[1, 0, 3, 5]] * 2, [1, 2, 4.5, 6]]
    assert not any(each["is_crowd"] for each in found)
    assert source.read_as.counts == {
        "polygons or RLE, not stored": 4,
        "keypoints, not stored": 1,
        "scores of a model, not stored: are these its predictions?": 1,
        "boxes around polygons or RLE, where no other is there": 3,
    }


@pytest.mark.fault(
    100, "boxes that CVAT turned (`attributes.rotation`)", "the upright box around each is taken"
)
def test_boxes_that_cvat_turned_are_those_around_them(write):
    box = {**CAT, "bbox": [20, 25, 40, 10], "segmentation": []}
    turns = [{"rotation": 90.0}, {"occluded": False, "rotation": 0.0}, {"rotation": "left"}, []]
    turned = [{**box, "attributes": attributes} for attributes in turns]
    path = write(make_coco([*turned, {**turned[0], "bbox": [20, 25, -40, 10]}]))
    source = open_one(path)
    (row, _) = source.rows()
    found = [each["box"] for each in row.values[1]["objects"]]
    assert found[0] == pytest.approx([35, 10, 45, 50])
    assert found[1:] == [*[[20, 25, 60, 35]] * 3, [20, 25, -20, 35]]
    assert source.read_as.counts["rotated boxes read as the upright boxes around them"] == 1


def test_objects_that_datumaro_calls_difficult_are(write):
    said = [{"difficult": True, "occluded": False}, {"difficult": False}, {"difficult": "no"}, []]
    objects = [{**CAT, "attributes": attributes} for attributes in said]
    (row, _) = open_one(write(make_coco([*objects, CAT]))).rows()
    assert [each.get("difficult") for each in row.values[1]["objects"]] == [1, *[None] * 4]


@pytest.mark.parametrize(
    ("info", "option", "orientation"),
    [
        ({"contributor": "Label Studio"}, None, "upright"),
        ({"contributor": "Label Studio"}, "stored", "stored"),
        *((info, None, None) for info in ({"contributor": "me"}, {"contributor": 1}, {}, [], None)),
        ({"contributor": "me"}, "stored", None),
    ],
)
def test_boxes_of_label_studio_are_in_the_images_as_they_are_shown(
    write, info, option, orientation
):
    # Its sizes are those of the files, which EXIF may turn.
    source = open_one(write(make_coco(info=info)), box_orientation=option)
    assert {row.values[-1]["orientation"] for row in source.rows()} == {orientation}
    assert ("of Label Studio" in source.read_as.describe_form()) == (orientation == "upright")


@pytest.mark.parametrize(
    ("polygon", "is_odd"),
    [
        ([1, 2, 4.5, 6, 1, 6], False),
        ([0, 2, 9, 2, 9, 4], True),
        ([20, 20, 30, 20, 30, 29], True),
        ([2, 3, 4, 5], False),  # corners that are the middle of pixels
    ],
)
def test_a_box_that_is_not_around_its_polygon_is_in_doubt(write, polygon, is_odd):
    first = {**DOG, "segmentation": [[0, 0, 40, 30]]}
    runs = {"size": [30, 40], "counts": [30, 1, 1169]}
    annotations = [first, {**CAT, "segmentation": [polygon]}, {**DOG, "segmentation": runs}]
    source = open_one(write(make_coco(annotations)))
    (row, _) = source.rows()
    # What is stored stays the bbox.
    assert [each["box"] for each in row.values[1]["objects"]][1] == [1, 2, 4.5, 6]
    assert [each.name for each in source.read_as.doubts] == ["polygon_boxes"] * is_odd


def test_the_doubt_about_boxes_and_polygons_has_their_number_and_an_example(write):
    outlined = {**CAT, "segmentation": [[1, 2, 4.5, 2, 4.5, 6]]}
    odd = {**CAT, "id": 9, "bbox": [20, 20, 5, 5], "segmentation": outlined["segmentation"]}
    source = open_one(write(make_coco([outlined, odd, {**odd, "id": 10}, DOG])))
    list(source.rows())
    assert [each.text for each in source.read_as.doubts] == [
        "Of the first 3 objects with polygons, the bbox of 2 is not around them, as the object 9: "
        "left, top, right and bottom are 20, 20, 25, 25, and those of its polygons 1, 2, 4.5, 6."
    ]


def test_two_ids_of_one_name_are_one_class_if_one_has_no_objects(write):
    categories = [{"id": 0, "name": "cat"}, *CATEGORIES]
    assert [each["label"] for each in read_objects(write(make_coco(categories=categories)))] == [
        "cat",
        "dog",
    ]
    objects = [CAT, {**CAT, "category_id": 0}]
    with pytest.raises(DataError, match="the categories 0 and 1 are both named 'cat'"):
        read(write(make_coco(objects, categories=categories)))


def test_a_file_name_twice_has_a_row_for_each_id(write):
    images = [IMAGES[0], {**IMAGES[1], "file_name": "a.jpg"}]
    rows = read(write(make_coco([CAT, {**DOG, "image_id": 3}], images)))
    assert [(uri[-5:], [each["label"] for each in said["objects"]]) for uri, said in rows] == [
        ("a.jpg", ["cat"]),
        ("a.jpg", ["dog"]),
    ]


def test_ids_may_be_text_and_whole_numbers_floats(write):
    images = [{**IMAGES[0], "id": "a"}, {**IMAGES[1], "id": 4}]
    objects = [{**CAT, "image_id": "a", "id": "x"}, {**DOG, "image_id": 4.0, "category_id": 7.0}]
    (_, one), (_, other) = read(write(make_coco(objects, images)))
    assert one["objects"][0]["id"] == "x"
    assert other["objects"][0]["label"] == "dog"


def test_objects_of_an_image_that_is_not_there_are_a_rejected_row(write):
    objects = [
        {**CAT, "image_id": 99},
        DOG,
        {**CAT, "image_id": 98, "id": 8},
        {**DOG, "image_id": 99},
    ]
    *rows, first, second = open_one(write(make_coco(objects))).rows()
    assert [len(row.values[-1]["objects"]) for row in rows] == [1, 0]
    assert (first.row, first.fault.args) == (
        3,
        ("unknown_image", "no image of the file has the id 99"),
    )
    assert [each["label"] for each in first.values[-1]["objects"]] == ["cat", "dog"]
    assert second.values[-1]["objects"][0]["id"] == 8
