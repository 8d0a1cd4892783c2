"""The numbers of classes of boxes, which are those of the source."""

from __future__ import annotations

import pandas as pd
import pytest

from darkroom.dataset import labels
from darkroom.errors import DataError
from darkroom.manifest.fingerprint import fingerprint_source
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

NAMES = ["mug", "star", "ring", "key"]


@pytest.fixture
def number(tmp_path_factory):
    """Returns the labels in the order of their numbers, what numbers them, and the doubts."""

    def number(source, **options):
        folder = str(tmp_path_factory.mktemp("manifest"))
        made = write_manifest(source, folder, folder, ManifestOptions(**options))
        said = dict(made.read_as.to_rows())["label"].partition("numbered by ")[2]
        return made.labels, said, [f"{each}" for each in made.read_as.doubts]

    return number


def make_yolo(names, classes=(0, 1, 2)):
    """Returns the files of a dataset of YOLO, with an object of each class in each split."""
    labels = "".join(f"{number} .5 .5 .2 .2\n" for number in classes)
    return {
        "data.yaml": f"train: images/train\nval: images/val\nnc: {len(names)}\nnames: {names}\n",
        **{f"images/{split}/{n}.jpg": "" for split in ("train", "val") for n in range(6)},
        **{f"labels/{split}/{n}.txt": labels for split in ("train", "val") for n in range(6)},
    }


def make_coco(categories, used, name="a"):
    """Returns a file of COCO in which images have an object of each used category."""
    return {
        "images": [{"id": 1, "file_name": f"{name}.jpg", "width": 80, "height": 60}],
        "categories": [{"id": each, "name": text} for each, text in categories.items()],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": each, "bbox": [n, 1, 20, 20]}
            for n, each in enumerate(used)
        ],
    }


def make_frame(classes):
    objects = [[{"label": each, "box": [1, 2, 3, 4]}] for each in classes]
    return pd.DataFrame({"image": [f"{n}.jpg" for n in range(len(objects))], "objects": objects})


def test_classes_have_the_order_of_data_yaml(write, number):
    labels, said, doubts = number(write(make_yolo(NAMES)))
    # Also the class that no object has.
    assert labels == NAMES
    assert said == "the order in the source"
    assert doubts == []


def test_gaps_in_numbers_are_closed(write, number):
    files = make_yolo(NAMES, classes=(10, 2))
    files["data.yaml"] = "train: images/train\nval: images/val\nnames: {10: mug, 2: star}\n"
    assert number(write(files))[0] == ["star", "mug"]


def test_names_of_classes_are_written_as_labels_are(write, number):
    files = make_yolo(["b", " a ", "", "e\u0301", "b "], classes=(1, 3))
    assert number(write(files))[0] == ["b", "a", "\u00e9"]


def test_classes_txt_numbers_classes_by_its_lines(write, number):
    files = make_yolo(NAMES)
    del files["data.yaml"]
    assert number(write({**files, "classes.txt": "mug\nstar\nring\nkey\n"}))[0] == NAMES


@pytest.mark.parametrize(
    ("categories", "labels"),
    [
        ({7: "ant", 1: "zebra", 3: "mouse"}, ["zebra", "mouse", "ant"]),
        ({7.5: "ant", 1: "zebra"}, ["zebra", "ant"]),
        # The order of ids that are text is that of the file.
        ({"b": "zebra", "a": "ant"}, ["zebra", "ant"]),
        ({"7": "zebra", 1: "ant"}, ["zebra", "ant"]),
        # Roboflow's first category is the name of the project.
        ({0: "ants", 1: "zebra", 2: "ant"}, ["ants", "zebra", "ant"]),
        ({2: "ant", 1: "ant"}, ["ant"]),
    ],
)
def test_classes_have_the_order_of_the_ids_of_coco(write, number, categories, labels):
    used = [next(iter(categories))]
    folder = write({"a.json": make_coco(categories, used), "a.jpg": ""})
    assert number(f"{folder}/a.json") == (labels, "the order in the source", [])


def test_the_first_file_of_coco_orders_classes_and_others_add_theirs(write, number):
    folder = write(
        {
            "train/_annotations.coco.json": make_coco({1: "zebra", 2: "ant"}, [1, 2]),
            "train/a.jpg": "",
            "valid/_annotations.coco.json": make_coco({1: "zebra", 3: "cow", 4: "bee"}, [3], "b"),
            "valid/b.jpg": "",
        }
    )
    labels = ["zebra", "ant", "cow", "bee"]
    assert number(folder) == (labels, "the order in the source", [])
    assert number(f"{folder}/*/_annotations.coco.json")[0] == labels


@pytest.mark.parametrize(
    ("categories", "said"),
    [
        ({1: "ant", 2: "zebra"}, "b.json has 'ant' as number 1, which is 'zebra' in a file"),
        ({1: "zebra", 2: "cow"}, "b.json has 'cow' as number 2, which is 'ant' in a file"),
        ({11: "ant", 12: "zebra"}, "b.json has 'ant' before 'zebra' in a file"),
    ],
)
def test_files_that_number_classes_in_other_ways_are_in_doubt(write, number, categories, said):
    folder = write(
        {
            "a.json": make_coco({1: "zebra", 2: "ant"}, [1, 2]),
            "b.json": make_coco(categories, categories, "b"),
            "a.jpg": "",
            "b.jpg": "",
        }
    )
    labels, _, (doubt,) = number(f"{folder}/*.json")
    assert labels[:2] == ["zebra", "ant"]
    assert said in doubt
    assert "--label-map" in doubt
    assert number(f"{folder}/*.json", accept=("class_order",))[2] == []
    given = tuple(reversed(labels))
    assert number(f"{folder}/*.json", labels=given) == ([*given], "the given label map", [])


def test_whole_numbers_as_classes_have_their_order(number):
    numbers = [*map(str, range(12))]
    labels, said, doubts = number(make_frame(numbers))
    assert labels == numbers
    assert (said, doubts) == ("their order as numbers", [])
    assert number(make_frame(["10", "9", "-1", "9"]))[0] == ["-1", "9", "10"]


def test_other_classes_without_an_order_are_sorted_as_text(number):
    labels, said, _ = number(make_frame(["b", "10", "9"]))
    assert (labels, said) == (["10", "9", "b"], "sorted text")


def test_labels_of_images_are_sorted_as_text(number):
    frame = pd.DataFrame({"image": [f"{n}.jpg" for n in range(12)], "label": [*range(12)]})
    labels, said, _ = number(frame)
    assert (labels, said) == (sorted(map(str, range(12))), "sorted text")


def test_too_many_classes_are_an_error(write, number, monkeypatch):
    monkeypatch.setattr(labels, "MAX_CLASSES", 3)
    with pytest.raises(DataError, match="4 different labels, at most 3"):
        number(write(make_yolo(NAMES)))


def test_the_order_of_classes_is_in_the_fingerprint(write):
    files = make_yolo(NAMES)
    first = fingerprint_source(write(files))
    # The rows stay as they are.
    more = write({"data.yaml": make_yolo([*NAMES, "pen"])["data.yaml"]})
    assert fingerprint_source(more) != first
    assert fingerprint_source(write({"data.yaml": files["data.yaml"]})) == first
