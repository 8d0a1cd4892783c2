"""Results of a detector, as they are read beside a dataset."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.read_as import read_read_as
from darkroom.errors import DataError, UsageError
from darkroom.targets.boxes.results import RESULT_COLUMNS, DetectorFiles, read_detections

from ..pictures import encode, make_noise

CATEGORIES = [{"id": 3, "name": "dog"}, {"id": 9, "name": "cat"}]
# By name: the id of the list, and width and height.
IMAGES = {"a.png": (11, 80, 40), "b.png": (12, 60, 60), "0007.png": (13, 20, 40)}


def make_annotations(images=IMAGES, categories=CATEGORIES, folder=""):
    listed = [
        {"id": number, "file_name": folder + name, "width": width, "height": height}
        for name, (number, width, height) in images.items()
    ]
    objects = [
        {"id": each["id"], "image_id": each["id"], "category_id": 3, "bbox": [0, 0, 10, 10]}
        for each in listed
    ]
    return {"images": listed, "annotations": objects, "categories": categories}


def write_images(folder: Path, images=IMAGES) -> None:
    for name, (number, width, height) in images.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(encode(make_noise(number, height, width)))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_images(folder)
    (folder / "coco.json").write_text(json.dumps(make_annotations()))
    darkroom.convert(folder / "coco.json", folder / "records")
    return folder / "records"


@pytest.fixture
def read(records: Path, tmp_path: Path):
    """A function that reads results: image by name, class by name, box and score of each."""

    def read(results, annotations=None, *, records=records):
        path = results
        if not isinstance(results, Path):
            path = tmp_path / "results.json"
            path.write_text(results if isinstance(results, str) else json.dumps(results))
        if not isinstance(annotations, Path | None):
            (tmp_path / "annotations.json").write_text(json.dumps(annotations))
            annotations = tmp_path / "annotations.json"
        index = read_index(str(records / "index"), RESULT_COLUMNS)
        labels = read_dataset(str(records)).labels
        files = DetectorFiles.of(path, annotations)
        found, _ = read_detections(files, index, labels, read_read_as(str(records)))
        names = [Path(uri).name for uri in index["uri"].to_pylist()]
        return [
            (names[image], labels[label], np.round(box, 6).tolist(), score)
            for image, label, box, score in zip(
                found.image, found.label, found.boxes.T, found.score, strict=True
            )
        ]

    return read


def make_result(image: int | str = 11, category: int = 1, box=(8, 4, 40, 20), score: float = 0.5):
    return {"image_id": image, "category_id": category, "bbox": [*box], "score": score}


HALF = [0.1, 0.1, 0.6, 0.6]


EXPECTED = [("a.png", "dog", HALF, 0.5), ("b.png", "cat", [0.5, 0, 1, 0.25], 1.0)]


@pytest.mark.parametrize("ids", [(3, 9), (1, 2)])
def test_classes_have_the_ids_of_the_list_or_the_numbers_of_their_lines(read, ids):
    dog, cat = ids
    results = [make_result(11, dog), make_result(12, cat, (30, 0, 30, 15), 1)]
    assert read(results) == EXPECTED


def test_an_id_that_is_the_line_of_another_class_is_refused(read, tmp_path):
    write_images(tmp_path)
    categories = [{"id": number, "name": name} for number, name in ((1, "cat"), (3, "dog"))]
    (tmp_path / "labels.txt").write_text("dog\ncat\n")
    (tmp_path / "coco.json").write_text(json.dumps(make_annotations(categories=categories)))
    records = tmp_path / "records"
    darkroom.convert(tmp_path / "coco.json", records, label_map=tmp_path / "labels.txt")
    assert read([make_result(11, 3)], records=records) == EXPECTED[:1]
    with pytest.raises(
        DataError, match=r"1 of 1 class number means one class .*: 1 cat\."
    ) as caught:
        read([make_result(11, 1)], records=records)
    assert "labels.txt of the records" in caught.value.hint
    # KFP names an artifact by its output, without an ending.
    shutil.copyfile(records / "labels.txt", tmp_path / "annotations")
    for lines in (records / "labels.txt", tmp_path / "annotations"):
        assert read([make_result(11, 1)], lines, records=records) == EXPECTED[:1]
    # A training leaves both in its folder, beside its weights.
    folder = tmp_path / "detector"
    folder.mkdir()
    (folder / "detector.pt").write_bytes(b"weights")
    (folder / "results.json").write_text(json.dumps([make_result(11, 1)]))
    with pytest.raises(DataError, match="1 of 1 class number means one class"):
        read(folder, records=records)
    shutil.copyfile(records / "labels.txt", folder / "labels.txt")
    assert read(folder, records=records) == EXPECTED[:1]
    assert read(folder, make_annotations(categories=categories), records=records) == [
        ("a.png", "cat", HALF, 0.5)
    ]


def test_an_update_keeps_the_ids_of_classes(tmp_path):
    write_images(tmp_path)
    (tmp_path / "coco.json").write_text(json.dumps(make_annotations()))
    records = tmp_path / "records"
    darkroom.convert(tmp_path / "coco.json", records)
    (tmp_path / "c.png").write_bytes(encode(make_noise(9, 10, 10)))
    row = {"image_uri": "c.png", "objects": [{"label": "dog", "box": [0, 0, 5, 5]}]}
    (tmp_path / "more.jsonl").write_text(json.dumps(row))
    darkroom.convert(tmp_path / "more.jsonl", records, update=True, append=True)
    assert read_read_as(str(records)).class_ids == {"3": "dog", "9": "cat"}
    # Another tool numbers classes again; only what is new, and contradicts nothing, is added.
    (tmp_path / "d.png").write_bytes(encode(make_noise(8, 10, 10)))
    names = {9: "dog", 1: "cat", 3: "owl", 4: "fox"}
    categories = [{"id": number, "name": name} for number, name in names.items()]
    more = make_annotations({"d.png": (3, 10, 10)}, categories)
    (tmp_path / "more.json").write_text(json.dumps(more))
    darkroom.convert(tmp_path / "more.json", records, update=True, append=True)
    assert read_read_as(str(records)).class_ids == {"3": "dog", "9": "cat", "4": "fox"}


@pytest.mark.parametrize("name", ["a", "a.png", "a.jpg", "images/a.png"])
def test_images_may_have_their_names(read, name):
    assert read([make_result(name)]) == [("a.png", "dog", HALF, 0.5)]


def test_ultralytics_makes_numbers_of_names_that_are_digits(read):
    assert read([make_result(7, box=(2, 4, 10, 20)), make_result("b", box=(6, 6, 30, 30))]) == [
        ("0007.png", "dog", HALF, 0.5),
        ("b.png", "dog", HALF, 0.5),
    ]


def test_annotations_say_ids_of_images_and_classes_and_the_size(read):
    images = {"b.png": (1, 600, 600), "a.png": (2, 80, 40), "gone.png": (3, 9, 9)}
    annotations = make_annotations(images, folder="val2017/")
    found = read(
        [make_result(1, 9, (60, 60, 300, 300)), make_result(2, 3), make_result(3, 3)], annotations
    )
    assert found == [("b.png", "cat", HALF, 0.5), ("a.png", "dog", HALF, 0.5)]


def test_names_with_folders_tell_images_of_one_name_apart(read, tmp_path):
    images = {"x/1.png": (1, 8, 8), "y/1.png": (2, 10, 10)}
    write_images(tmp_path, images)
    rows = [
        {"image_uri": name, "objects": [{"label": "cat", "box": [0, 0, 5, 5]}]} for name in images
    ]
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    darkroom.convert(tmp_path / "list.jsonl", tmp_path / "records")
    annotations = make_annotations({"y/1.png": (5, 10, 10)}, [{"id": 0, "name": "cat"}])
    result = make_result(5, 0, (1, 1, 5, 5))
    found = read([result], annotations, records=tmp_path / "records")
    assert found == [("1.png", "cat", HALF, 0.5)]
    with pytest.raises(DataError, match="1 of 1 image could be several: 1"):
        read([make_result("1")], records=tmp_path / "records")


def test_an_id_that_means_two_images_is_refused(read, tmp_path):
    images = {"1.png": (2, 20, 20), "2.png": (1, 20, 20)}
    write_images(tmp_path, images)
    (tmp_path / "coco.json").write_text(json.dumps(make_annotations(images)))
    darkroom.convert(tmp_path / "coco.json", tmp_path / "records")
    # The id of one image, and the name of the other.
    with pytest.raises(DataError, match="1 of 1 image could be several: 1"):
        read([make_result(1)], records=tmp_path / "records")
    twice = make_annotations({"a.png": (11, 80, 40), "b.png": (11, 60, 60)})
    with pytest.raises(DataError, match="1 of 1 image could be several: 11"):
        read([make_result(11, 3)], twice)


def test_annotations_of_other_images_are_refused(read):
    with pytest.raises(DataError, match="1 of 1 image is not in the dataset: 11"):
        read([make_result(11, 3)], make_annotations({"z.png": (11, 80, 40)}))


def test_label_files_of_ultralytics(read, tmp_path):
    folder = tmp_path / "predict" / "labels"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("0 0.35 0.35 0.5 0.5 0.5\n\n1 0.5 0.5 1 1 0.25\n")
    (folder / "b.txt").write_text("")
    expected = [("a.png", "dog", HALF, 0.5), ("a.png", "cat", [0, 0, 1, 1], 0.25)]
    assert read(folder) == read(folder.parent) == expected
    with pytest.raises(UsageError, match="label files have no ids"):
        read(folder, make_annotations())
    (folder / "b.txt").write_text("0 0.35 0.35 0.5 0.5\n")
    with pytest.raises(DataError, match=r"its lines have \[5\] columns, expected 6"):
        read(folder)
    (folder / "b.txt").unlink()
    (folder / "a.txt").write_text("2 0.35 0.35 0.5 0.5 0.5\n")
    with pytest.raises(DataError, match=r"1 of 1 class number is not known: 2\. The dataset has "):
        read(folder)


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ([], "has no results"),
        ("", "is not a file of results"),
        ("[1", "is not a file of results"),
        ({"images": []}, "is not a file of results"),
        ([{"image_id": 11, "category_id": 1, "score": 1}], "missing required field `bbox`"),
        ('[{"image_id": 11, "category_id": 1, "bbox": [1, 2, 3, 4], "score": NaN}]', "not a file"),
        ([make_result(score=3)], "1 of 1 result cannot be used, the first of them number 1, with "),
        ([make_result(box=(8, 4, -40, 20))], "1 of 1 result cannot be used"),
        (
            [make_result(), make_result(99), make_result("x")],
            "2 of 3 images are not in the dataset",
        ),
        ([make_result(category=4), make_result(category=0)], "2 of 2 class numbers are not"),
        ([make_result(box=(0.1, 0.1, 0.5, 0.5))], "1 of 1 box is within the first pixel"),
        # Corners instead of sizes.
        ([make_result(box=(40, 20, 80, 40))], "1 of 1 box reaches beyond their images"),
    ],
)
def test_what_cannot_be_used_is_refused(read, results, problem):
    with pytest.raises(DataError, match=problem):
        read(results)


def test_images_and_classes_that_annotations_do_not_have_are_refused(read):
    with pytest.raises(DataError, match="1 of 2 images is not in the annotations: 5"):
        read([make_result(11, 3), make_result(5, 3)], make_annotations())
    with pytest.raises(
        DataError, match=r"1 of 1 class number is not known: 1\. The dataset has dog, cat"
    ):
        read([make_result(11, 1)], make_annotations())
    cow = make_annotations(categories=[{"id": 3, "name": "cow"}])
    with pytest.raises(DataError, match="not known: 3"):
        read([make_result(11, 3)], cow)
    with pytest.raises(DataError, match="is not a file of annotations of COCO"):
        read([make_result(11, 3)], [])


def test_pixels_of_an_image_before_exif_turned_it_are_refused(read):
    turned = make_annotations({"a.png": (11, 40, 80)})
    with pytest.raises(DataError, match="1 of 1 image is turned by EXIF"):
        read([make_result(11, 3)], turned)
