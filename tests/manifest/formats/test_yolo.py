"""Datasets of YOLO as tools write them."""

import pytest

from darkroom.errors import DataError
from darkroom.manifest.formats.yolo.labels import decode_labels
from darkroom.manifest.formats.yolo.source import YoloSource
from darkroom.targets.form import MAX_OBJECTS

YAML = "train: ../train/images\nval: ../valid/images\nnc: 2\nnames: ['cat', 'dog']\n"
CAT, DOG = "0 0.5 0.5 0.5 0.5\n", "1 0.25 0.25 0.5 0.5\n"


def list_labels(rows):
    """Returns the labels of each image by its path; None where nobody looked."""
    objects = {row["image_uri"]: row["objects"] for row in rows}
    return {
        uri: None if found is None else [each.get("label") for each in found["objects"]]
        for uri, found in objects.items()
    }


def list_splits(rows):
    return {row["image_uri"]: row["split"] for row in rows}


def test_an_export_of_roboflow(write, read):
    folder = write(
        {
            "data.yaml": YAML + "test: ../test/images\n",
            "train/images/a.jpg": "",
            "train/images/b.jpg": "",
            "train/labels/a.txt": CAT + DOG,
            "train/labels/b.txt": "",
            "valid/images/c.jpg": "",
            "valid/labels/c.txt": DOG,
            "README.roboflow.txt": "hello",
        }
    )
    source, rows = read()
    assert isinstance(source, YoloSource)
    assert source.base == source.identity_base == folder
    assert list_splits(rows) == {
        "train/images/a.jpg": "train",
        "train/images/b.jpg": "train",
        "valid/images/c.jpg": "val",
    }
    assert rows[0]["objects"] == {
        "width": 1,
        "height": 1,
        "orientation": None,
        "objects": [
            {
                "id": "in line 1 of train/labels/a.txt",
                "label": "cat",
                "box": [0.25, 0.25, 0.75, 0.75],
            },
            {
                "id": "in line 2 of train/labels/a.txt",
                "label": "dog",
                "box": [0.0, 0.0, 0.5, 0.5],
            },
        ],
    }
    assert list_labels(rows[1:]) == {"train/images/b.jpg": [], "valid/images/c.jpg": ["dog"]}
    assert source.read_as.remarks == (
        "classes of data.yaml",
        "no test: ../test/images is not found",
    )


def test_the_file_itself_is_given(write, read):
    folder = write({"coco.yaml": "train: i\nval: i\nnames: [cat]", "i/a.jpg": "", "i/a.txt": CAT})
    source, rows = read(f"{folder}/coco.yaml")
    # coco128.yaml of ultralytics has the same folder twice.
    assert list_splits(rows) == {"i/a.jpg": "train"}
    assert "val names the images of train, which are read once" in source.read_as.remarks


def test_images_are_in_the_folder_that_path_names(write, read):
    folder = write(
        {
            "cfg/set.yaml": "path: ../data/set\ntrain: [images/t1, images/t2]\nnames: {0: cat}",
            "data/set/images/t1/a.jpg": "",
            "data/set/images/t2/deep/b.png": "",
            "data/set/labels/t1/a.txt": CAT,
            "data/set/labels/t2/deep/b.txt": CAT,
        }
    )
    source, rows = read(f"{folder}/cfg/set.yaml")
    assert source.base == f"{folder}/data/set"
    assert [*list_labels(rows)] == ["data/set/images/t1/a.jpg", "data/set/images/t2/deep/b.png"]


def test_paths_are_relative_to_the_working_folder(write, read, monkeypatch):
    folder = write(
        {
            "cfg/set.yaml": "path: data\ntrain: images\nnames: [cat]",
            "data/images/a.jpg": "",
            "data/labels/a.txt": CAT,
        }
    )
    monkeypatch.chdir(folder)
    assert list_labels(read(f"{folder}/cfg/set.yaml")[1]) == {"data/images/a.jpg": ["cat"]}


@pytest.mark.parametrize(
    "place",
    [
        "/content/drive/set/train/images",
        r"C:\Users\me\set\train\images",
        "datasets/set/train/images",
        "./train/images/",
    ],
)
def test_paths_of_another_machine_are_found_without_their_first_folders(write, read, place):
    write(
        {
            "data.yaml": f"train: '{place}'\nnames: [cat]",
            "train/images/a.jpg": "",
            "train/labels/a.txt": CAT,
        }
    )
    assert list_labels(read()[1]) == {"train/images/a.jpg": ["cat"]}


def test_lists_of_images(write, read):
    write(
        {
            "data.yaml": "train: train.txt\nval: lists/val.txt\nnames: [cat]",
            "train.txt": "\ufeff./images/a.jpg\r\n\r\n./images/gone.jpg\r\n",
            "lists/val.txt": "set/images/b.jpg\n",
            "images/a.jpg": "",
            "images/b.jpg": "",
            "images/other.jpg": "",
            "labels/a.txt": CAT,
            "labels/other.txt": CAT,
        }
    )
    # One that is not there is a row, which is rejected later; others were not chosen.
    assert list_labels(read()[1]) == {
        "images/a.jpg": ["cat"],
        "images/gone.jpg": [],
        "images/b.jpg": [],
    }


@pytest.mark.fault(
    111, "a list with `http://` or `../`", "its rows are as those of any list; no host is asked"
)
def test_a_list_may_name_hosts_and_files_elsewhere(write, read):
    write(
        {
            "data.yaml": "train: train.txt\nnames: [cat]",
            "train.txt": "images/a.jpg\nhttp://example.com/x.jpg\n../../etc/b.jpg\n",
            "images/a.jpg": "",
            "labels/a.txt": CAT,
        }
    )
    # Nothing is asked there; the rules of all sources reject these rows, or allow them.
    uris = [*list_labels(read()[1])]
    assert uris[:2] == ["images/a.jpg", "http://example.com/x.jpg"]
    assert uris[2].endswith("etc/b.jpg")


def test_an_image_in_two_lists_has_its_objects_twice(write, read):
    write(
        {
            "data.yaml": "train: train.txt\nval: val.txt\nnames: [cat, dog]",
            "train.txt": "images/a.jpg\nimages/b.jpg",
            "val.txt": "images/a.jpg",
            "images/a.jpg": "",
            "images/b.jpg": "",
            "labels/a.txt": CAT,
            "labels/b.txt": DOG,
        }
    )
    _, rows = read()
    found = [(row["split"], row["objects"]["objects"][0]["label"]) for row in rows]
    assert found == [("train", "cat"), ("train", "dog"), ("val", "cat")]


def test_darknet(write, read):
    write(
        {
            "obj.data": "classes = 1\ntrain = data/train.txt\nnames = data/obj.names\n",
            "obj.names": "cat\n",
            "train.txt": "data/obj_train_data/a.jpg\n",
            "obj_train_data/a.jpg": "",
            "obj_train_data/a.txt": CAT,
        }
    )
    source, rows = read()
    assert list_labels(rows) == {"obj_train_data/a.jpg": ["cat"]}
    assert source.read_as.remarks == ("classes of obj.data",)


def test_yolo_4_of_fiftyone(write, read):
    write(
        {
            "obj.names": "cat\ndog\n",
            "images.txt": "data/a.jpg\ndata/b.jpg\n",
            "data/a.jpg": "",
            "data/a.txt": CAT + DOG,
            "data/b.jpg": "",
            "data/b.txt": "",
        }
    )
    assert list_labels(read()[1]) == {"data/a.jpg": ["cat", "dog"], "data/b.jpg": []}


def test_classes_and_labels_beside_images_in_folders_of_splits(write, read):
    write(
        {
            "train/_darknet.labels": "cat\n",
            "train/a.jpg": "",
            "train/a.txt": CAT,
            "train/b.jpg": "",
            "test/_darknet.labels": "cat\n",
            "test/c.jpg": "",
        }
    )
    source, rows = read()
    # Nobody says that test was looked at.
    assert list_labels(rows) == {"train/a.jpg": ["cat"], "train/b.jpg": [], "test/c.jpg": None}
    assert list_splits(rows) == {
        "train/a.jpg": "train",
        "train/b.jpg": "train",
        "test/c.jpg": "test",
    }
    assert source.read_as.counts == {
        "images in folders without labels, where nobody looked": 1,
        "images without a label file, where nothing is": 1,
    }


@pytest.mark.fault(
    111, "a label file with objects and no image", "rejected", code="`unknown_image`"
)
def test_objects_without_an_image_are_rejected(write, read):
    write(
        {
            "data.yaml": "train: images\nnames: [cat]",
            "images/a.jpg": "",
            "labels/a.txt": CAT,
            "labels/b.txt": CAT + CAT,
            "labels/empty.txt": "",
            "labels/README.txt": "These are the labels of 2 images.\n",
        }
    )
    _, rows = read()
    assert [row["fault"] and row["fault"].args for row in rows] == [
        None,
        ("unknown_image", "labels/b.txt has objects, but no image"),
    ]
    assert list_labels(rows)["images/b.jpg"] == ["cat", "cat"]


@pytest.mark.fault(
    111, "two images of one label file", "both have its objects; `Read as` counts them"
)
def test_a_label_file_of_two_images_is_of_both(write, read):
    write(
        {
            "data.yaml": "train: images\nnames: [cat]",
            "images/a.jpg": "",
            "images/a.png": "",
            "labels/a.txt": CAT,
        }
    )
    source, rows = read()
    assert list_labels(rows) == {"images/a.jpg": ["cat"], "images/a.png": ["cat"]}
    assert source.read_as.counts == {"label files of several images each": 1}


@pytest.mark.fault(111, "images or label files that are found nowhere", "refused", code="exit 1")
@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"data.yaml": YAML, "train/images/a.jpg": ""},
            r"data\.yaml \(val\) are not found, as \.\./valid/images\. Tried: ",
        ),
        ({"data.yaml": "train: images\nnames: [a]", "images/x": ""}, "no image in its folders"),
        (
            {"data.yaml": "train: images\nnames: [a]", "images/a.jpg": ""},
            r"no image of train has a label file, as .*a\.jpg\. Tried: .*/labels, .*/images\.",
        ),
        (
            {
                "data.yaml": "train: images/train\nval: images/val\nnames: [cat, dog]",
                "images/train/a.jpg": "",
                "images/val/b.jpg": "",
                "labels/training/x.txt": CAT,
                "labels/val/b.txt": DOG,
            },
            r"no image of train has a label file, .*Tried: .*/labels/train, .*/images/train\.",
        ),
        (
            {"data.yaml": "train: a.txt\nnames: [a]", "a.txt": "x/b.jpg\nx/c.jpg"},
            r"The images of .*/a\.txt are not found, as x/b\.jpg, x/c\.jpg\. Tried: ",
        ),
        (
            {"data.yaml": "train: a.txt\nnames: [a]", "a.txt": b"\xff\xfex\0"},
            r"a\.txt is UTF-16",
        ),
    ],
)
def test_what_is_found_nowhere_is_an_error_of_the_source(write, read, files, said):
    write(files)
    with pytest.raises(DataError, match=said):
        read()


def test_a_split_without_label_files_is_read_where_the_user_says_what_it_means(write, read):
    write(
        {
            "data.yaml": "train: images/train\nval: images/val\nnames: [cat]",
            "images/train/a.jpg": "",
            "images/val/b.jpg": "",
            "labels/train/a.txt": CAT,
        }
    )
    assert list_labels(read(empty_labels="none")[1]) == {
        "images/train/a.jpg": ["cat"],
        "images/val/b.jpg": None,  # which that option makes an image without objects
    }


def test_a_path_of_data_yaml_that_is_not_there_is_named(write, read):
    folder = write({"data.yaml": YAML, "train/images/a.jpg": "", "val/images/c.jpg": ""})
    with pytest.raises(DataError) as caught:
        read()
    assert "data.yaml (val) are not found, as ../valid/images." in caught.value.message
    assert caught.value.hint.startswith(f"Correct val in {folder}/data.yaml.")


def test_classes_that_may_be_numbered_from_1_are_in_doubt(write, read):
    files = {"images/a.jpg": "", "labels/a.txt": DOG + "2 0.5 0.5 0.1 0.1\n"}
    write({**files, "data.yaml": "train: images\nnames: [cat, dog]"})
    source, _ = read()
    (doubt,) = source.read_as.doubts
    assert (doubt.name, doubt.text) == (
        "first_class",
        "No object has class 0, 'cat'. YOLO numbers classes from 0, and these label files may do "
        "so from 1.",
    )
    # The advice works.
    assert "names: {1: cat, ...}" in doubt.hint
    write({**files, "data.yaml": "train: images\nnames: {1: cat, 2: dog}"})
    source, rows = read()
    assert list_labels(rows) == {"images/a.jpg": ["cat", "dog"]}
    assert source.read_as.doubts == ()


@pytest.mark.parametrize("labels", [CAT + DOG, CAT, "", "0 0,5 0,5 0,5 0,5"])
def test_classes_that_begin_with_0_are_not_in_doubt(write, read, labels):
    write(
        {
            "data.yaml": "train: images\nnames: [cat, dog]",
            "images/a.jpg": "",
            "labels/a.txt": labels,
        }
    )
    assert read()[0].read_as.doubts == ()


@pytest.mark.parametrize(
    "label", ["images/b.txt", "labels/b.TXT", "labels_new/b.txt", "annotations/x/b.txt"]
)
def test_a_label_file_may_be_elsewhere_than_those_of_others(write, read, label):
    write(
        {
            "data.yaml": "train: images\nnames: [cat, dog]",
            "images/a.jpg": "",
            "images/b.jpg": "",
            "labels/a.txt": CAT,
            label: DOG,
        }
    )
    assert list_labels(read()[1]) == {"images/a.jpg": ["cat"], "images/b.jpg": ["dog"]}


@pytest.mark.fault(
    111,
    "label files of no image, beside images without label files",
    "doubt: such images would be without objects",
    code="`unused_labels`",
    hint="the names of the images, or `--accept unused_labels`",
)
@pytest.mark.parametrize(("text", "doubts"), [(CAT, ["unused_labels"]), ("notes", [])])
def test_label_files_that_no_image_has_are_in_doubt(write, read, text, doubts):
    write(
        {
            "data.yaml": "train: images\nnames: [cat, dog]",
            "images/a.jpg": "",
            "images/b.jpg": "",
            "labels/a.txt": CAT,
            "old/IMG_7.txt": text,
        }
    )
    source, _ = read()
    assert [doubt.name for doubt in source.read_as.doubts] == doubts


def test_folders_of_images_with_a_list_of_their_classes_are_not_yolo(write, read):
    write({"classes.txt": "cat\ndog", "cat/a.jpg": "", "dog/b.jpg": "", "notes.txt": "hello"})
    source, _ = read()
    assert source.read_as.form == "folder"


@pytest.mark.fault(
    99,
    "label files, lists or annotations outside the allowed folders, also by links",
    "the image is rejected, or the source refused; nothing of them is read",
    code="`outside_root`, exit 1",
)
@pytest.mark.parametrize("way", ["link", "folder"])
def test_label_files_outside_the_allowed_folders_are_not_read(write, read, tmp_path, way):
    settings = "train: [images/train, images/more]\nnames: [cat]"
    write({"set/data.yaml": settings, "set/images/train/a.jpg": "", "set/images/more/b.jpg": ""})
    write({"set/labels/train/a.txt": CAT, "out/images/b.jpg": "", "out/labels/b.txt": "SECRET 1 1"})
    if way == "link":
        (tmp_path / "set/labels/more").mkdir()
        (tmp_path / "set/labels/more/b.txt").symlink_to(tmp_path / "out/labels/b.txt")
    elif way == "folder":
        (tmp_path / "set/labels/more").symlink_to(tmp_path / "out/labels")
    _, rows = read(tmp_path / "set", allowed_roots=(str(tmp_path / "set"),))
    assert list_labels(rows[:1]) == {"set/images/train/a.jpg": ["cat"]}
    reason, detail = rows[1]["fault"].args
    assert (reason, "outside the allowed folders" in detail) == ("outside_root", True)
    assert "SECRET" not in f"{rows}"


def test_folders_of_images_outside_the_allowed_folders_are_not_listed(write, read, tmp_path):
    write({"set/data.yaml": "train: ../out/SECRET\nnames: [cat]", "out/SECRET/HIDDEN.jpg": ""})
    with pytest.raises(DataError, match="outside the allowed folders") as caught:
        read(tmp_path / "set", allowed_roots=(str(tmp_path / "set"),))
    assert "HIDDEN" not in f"{caught.value}"


@pytest.mark.parametrize("name", ["list.txt", "data.yaml", "classes.txt"])
def test_lists_and_settings_outside_the_allowed_folders_are_not_read(write, read, tmp_path, name):
    write(
        {
            "set/images/a.jpg": "",
            "set/labels/a.txt": CAT,
            f"out/{name}": "train: x\nnames: [a]\nSECRET: [",
        }
    )
    if name == "list.txt":
        write({"set/data.yaml": "train: list.txt\nnames: [cat]"})
    (tmp_path / "set" / name).symlink_to(tmp_path / "out" / name)
    with pytest.raises(DataError, match="outside the allowed folders") as caught:
        read(tmp_path / "set", allowed_roots=(str(tmp_path / "set"),), format="yolo")
    assert "SECRET" not in f"{caught.value}"


def test_a_label_file_with_more_lines_than_objects_are_allowed_is_not_parsed():
    assert decode_labels(CAT.encode() * MAX_OBJECTS, "a.txt").startswith("0 ")
    with pytest.raises(ValueError, match="100,001 lines, and an image at most 100,000 objects"):
        decode_labels(CAT.encode() * (MAX_OBJECTS + 1), "a.txt")
