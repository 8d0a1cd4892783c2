"""Folders with annotations: which of their files are read, and what is said of the others."""

import json

import pytest

from darkroom.errors import DataError
from darkroom.manifest.opening import open_sources
from darkroom.manifest.writer import write_manifest
from darkroom.options.manifest import ManifestOptions

COCO = {
    "images": [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}],
}
RESULTS = [{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}]
VOC = "<annotation><filename>a.jpg</filename></annotation>"
BOXES = "filename,class,xmin,ymin,xmax,ymax\na.jpg,cat,1,2,3,4"
VERTEX = {"imageGcsUri": "gs://b/a.jpg", "boundingBoxAnnotations": []}
AUTOML = "TRAIN,gs://b/a.jpg,cat,0.1,0.1,,,0.5,0.5,,\n"


def test_what_nobody_took_is_counted(write, tmp_path):
    write(dict.fromkeys(("a.jpg", "b.jpg", "c.jpg", "more/d.jpg", "README.md"), ""))
    write({"list.json": json.dumps(COCO), "xml/a.xml": VOC, "xml/b.xml": VOC})
    write({"results.json": json.dumps(RESULTS), "package.json": '{"name": "x"}'})
    write({"boxes.csv": BOXES, "labels.csv": "image,label\na.jpg,cat"})
    found = write_manifest(tmp_path, str(tmp_path / "m"), str(tmp_path / "m")).read_as
    assert found.left_out == {
        "files like a file of annotations of COCO": 1,
        "files like a list with a row for each object": 1,
        "files like an annotation of Pascal VOC": 2,
        "images that no annotation names": 2,
    }
    rows = dict(found.to_rows())
    assert rows["left out"].endswith("images that no annotation names 2")


def test_a_folder_of_lists_is_read_as_a_pattern_of_them(write, tmp_path):
    files = {"train_labels.csv": BOXES, "val_labels.csv": BOXES}
    write({**files, "images/train/a.jpg": "", "images/val/a.jpg": "", "notes.csv": "x,y\n1,2"})
    found = [
        (source.name, source.split, source.base, source.schema.target_kind)
        for source in open_sources(tmp_path)
    ]
    assert found == [
        (f"{tmp_path}/train_labels.csv", "train", f"{tmp_path}/images/train", "boxes"),
        (f"{tmp_path}/val_labels.csv", "eval", f"{tmp_path}/images/val", "boxes"),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"lists/a.jsonl": json.dumps(VERTEX), "lists/b.jsonl": json.dumps(VERTEX)},
        {"import.csv": AUTOML},
    ],
)
def test_lists_without_a_header_are_known_in_a_folder_too(write, tmp_path, files):
    write({**files, "other/a.jpg": ""})
    sources = open_sources(tmp_path)
    assert {source.name for source in sources} == {str(tmp_path / name) for name in files}
    assert {source.schema.target_kind for source in sources} == {"boxes"}


def test_annotations_outside_the_allowed_folders_are_refused(write, tmp_path):
    write({"set/a.jpg": "", "out/list.json": json.dumps(COCO)})
    (tmp_path / "set/list.json").symlink_to(tmp_path / "out/list.json")
    options = ManifestOptions(allowed_roots=(str(tmp_path / "set"),))
    with pytest.raises(DataError, match="outside the allowed folders"):
        open_sources(tmp_path / "set", options)


def name_rows(folder):
    """Returns the paths of the images of a folder, as its lists lead to them."""
    return [
        f"{source.base}/{row.values[0]}".removeprefix(f"{folder}/")
        for source in open_sources(folder)
        for row in source.rows()
    ]


def list_images(*names):
    images = [{"id": number, "file_name": name} for number, name in enumerate(names)]
    return json.dumps({**COCO, "images": images, "annotations": []})


@pytest.mark.parametrize(
    "lists",
    [
        {"list.json": list_images("a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg")},
        {
            "a/list.json": list_images("1.jpg", "2.jpg"),
            "b/list.json": list_images("1.jpg", "2.jpg"),
        },
        {"boxes.csv": BOXES.replace("a.jpg", "b/1.jpg") + "\nb/2.jpg,cat,1,2,3,4"},
    ],
)
def test_a_missing_image_is_not_that_of_another_name(write, tmp_path, lists):
    write({**dict.fromkeys(("a/1.jpg", "a/2.jpg", "b/1.jpg"), ""), **lists})
    assert name_rows(tmp_path)[-2:] == ["b/1.jpg", "b/2.jpg"]


@pytest.mark.parametrize("folder", ["", "images/"])
def test_a_missing_image_is_not_its_copy_beside_the_folder_of_the_others(write, tmp_path, folder):
    write(dict.fromkeys(("images/1.jpg", "thumbs/1.jpg", "thumbs/2.jpg"), ""))
    write({"list.json": list_images(f"{folder}1.jpg", f"{folder}2.jpg")})
    assert name_rows(tmp_path) == ["images/1.jpg", "images/2.jpg"]


def test_what_several_files_have_is_counted_once_for_all(write, tmp_path):
    turned = [{**COCO["annotations"][0], "attributes": {"rotation": 90.0}}]
    write({name: {**COCO, "annotations": turned} for name in ("a/x.json", "b/x.json")})
    write({"a/a.jpg": "", "b/a.jpg": ""})
    read_as = write_manifest(str(tmp_path), str(tmp_path), str(tmp_path)).read_as
    found = json.loads(read_as.to_json())["counts"]
    assert found == {"rotated boxes read as the upright boxes around them": 2}


def test_images_of_another_list_are_not_those_of_a_list(write, tmp_path):
    write(dict.fromkeys(("a/images/1.jpg", "a/images/2.jpg", "b/images/2.jpg"), ""))
    write({"a/list/x.json": list_images("1.jpg"), "b/list/x.json": list_images("1.jpg", "2.jpg")})
    assert name_rows(tmp_path) == ["a/images/1.jpg", "b/images/1.jpg", "b/images/2.jpg"]


def test_images_of_two_folders_with_the_same_names_are_asked_for(write, tmp_path):
    write(dict.fromkeys(("small/1.jpg", "large/1.jpg"), ""))
    write({"list.json": list_images("1.jpg")})
    with pytest.raises(DataError, match="not found") as caught:
        open_sources(tmp_path)
    assert "--image-dir" in caught.value.hint


def test_a_moved_image_is_that_of_one_name_alone(write, tmp_path):
    write(dict.fromkeys(("a/1.jpg", "new/2.jpg", "new/3.jpg", "new/4.jpg"), ""))
    write({"list.json": list_images("a/1.jpg", "b/2.jpg", "b/3.jpg", "c/3.jpg", "a/4.jpg")})
    assert name_rows(tmp_path) == ["a/1.jpg", "new/2.jpg", "b/3.jpg", "c/3.jpg", "a/4.jpg"]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("images\\day 1.jpg", "images/day 1.jpg"),
        ("1.jpg", "PHOTOS/1.JPG"),
        ("\u00e9t\u00e9.jpg", "photos/e\u0301te\u0301.jpg"),
        ("/content/drive/set/photos/1.jpg", "pictures/1.jpg"),
        ("C:\\Users\\me\\1.jpg", "photos/1.jpg"),
    ],
)
def test_lists_of_other_machines_find_their_images(write, tmp_path, name, file):
    write({file: "", "list.json": list_images(name)})
    assert name_rows(tmp_path) == [file]


def test_a_folder_above_that_of_the_user_names_no_split(write, tmp_path):
    folder = tmp_path / "test/set"
    files = ["a.jpg", "old/train/1.jpg", "old/val/1.jpg"]
    write({f"test/set/{file}": "" for file in files})
    write({"test/set/list.json": list_images("a.jpg", "train/1.jpg", "val/1.jpg")})
    assert name_rows(folder) == files


def test_lists_of_splits_find_their_images_in_any_folder_of_their_split(write, tmp_path):
    files = ["photos/train/1.jpg", "photos/val/1.jpg"]
    write(dict.fromkeys(files, ""))
    write({f"lists/{split}.json": list_images("1.jpg") for split in ("train", "val")})
    assert name_rows(tmp_path) == files


CLASSES = tuple(f"{name}/{number}.jpg" for name in ("cat", "dog") for number in range(3))


@pytest.mark.parametrize("text", ["a photo of a cat\n", "684,8,273,116,1,4,0,0", "Cat 1 2 30 40"])
def test_other_texts_beside_images_leave_folders_classes(write, tmp_path, text):
    write(dict.fromkeys(CLASSES, ""))
    write({name.replace("jpg", "txt"): text for name in CLASSES})
    write({"classes.txt": "cat\ndog"})
    (source,) = open_sources(tmp_path)
    assert source.schema.target_kind == "label"


@pytest.mark.parametrize(
    ("form", "name", "text"),
    [
        ("coco", "dog/old.json", json.dumps(COCO).replace("a.jpg", "0.jpg")),
        ("voc", "cat/1.xml", VOC),
        ("tf_csv", "boxes.csv", BOXES.replace("a.jpg", "cat/1.jpg")),
    ],
)
def test_few_annotations_in_folders_that_may_be_classes_are_a_doubt(
    write, tmp_path, form, name, text
):
    write({**dict.fromkeys(CLASSES, ""), name: text})

    def read(**options):
        place = str(tmp_path / "m")
        made = write_manifest(tmp_path, place, place, ManifestOptions(**options)).read_as
        return made.form == "folder", [doubt.name for doubt in made.doubts]

    assert read() == (False, ["task_class"])
    assert read(accept=("task_class",)) == (True, [])
    assert read(format=form) == (False, [])


@pytest.mark.parametrize(
    "labels", [{"xml/a.xml": VOC}, {"labels/a.txt": "0 .5 .5 .1 .1", "classes.txt": "cat"}]
)
@pytest.mark.parametrize("mask", ["masks/a_mask.png", "SegmentationClass/a.png", "gt/tri/a.png"])
def test_masks_are_not_images(write, tmp_path, labels, mask):
    write({"images/a.jpg": "", mask: "", **labels})
    assert name_rows(tmp_path) == ["images/a.jpg"]


def test_images_in_a_folder_of_annotations_are_not_masks_of_others(write, tmp_path):
    write({"annotations/a.jpg": "", "annotations/a.xml": VOC, "more/b.jpg": ""})
    assert name_rows(tmp_path) == ["annotations/a.jpg", "more/b.jpg"]


def test_settings_of_yolo_are_found_below_the_folder(write, tmp_path):
    images = {f"x/set/{split}/images/{split}.jpg": "" for split in ("train", "val")}
    write(images)
    write({"x/set/obj.names": "cat\n", "x/set/train/labels/train.txt": "0 .5 .5 .1 .1"})
    write(
        {"x/set/val/labels/val.txt": "", "x/set/data.yaml": "names: [cat]\ntrain: train\nval: val"}
    )
    (source,) = open_sources(tmp_path)
    assert [row.values[1] for row in source.rows()] == ["train", "val"]
    write({"y/set/data.yaml": "names: [cat]\ntrain: train\nval: val"})
    with pytest.raises(DataError, match=r"x/set/data\.yaml, y/set/data\.yaml"):
        open_sources(tmp_path)


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        (("train/metadata.jsonl", "test/metadata.jsonl"), "convert '{}/my set/*/metadata.jsonl'"),
        (("metadata.jsonl",), "convert '{}/my set/metadata.jsonl'"),
        (("a.json", "b.json"), "-i '{}/my set' -o"),
    ],
)
def test_advice_can_be_followed(write, tmp_path, files, advice):
    text = {"jsonl": '{"file_name": "a.jpg"}', "json": '{"shapes": [], "imagePath": "a.jpg"}'}
    write({f"my set/{name}": text[name.rpartition(".")[2]] for name in files})
    write({"my set/train/a.jpg": "", "my set/test/a.jpg": ""})
    with pytest.raises(DataError) as caught:
        open_sources(tmp_path / "my set")
    assert advice.format(tmp_path) in caught.value.hint


def test_an_annotation_without_its_image_is_not_of_one_in_another_folder(write, tmp_path):
    write({"a/images/5.jpg": "", "b/images/4.jpg": "", "b/xml/4.xml": VOC, "b/xml/5.xml": VOC})
    assert name_rows(tmp_path) == ["b/images/4.jpg", "b/xml/a.jpg", "a/images/5.jpg"]


def test_a_label_file_without_its_image_is_not_of_one_in_another_folder(write, tmp_path):
    write(dict.fromkeys(("images/a/1.jpg", "images/a/2.jpg", "images/b/1.jpg"), ""))
    labels = ("labels/a/1.txt", "labels/b/1.txt", "labels/b/2.txt")
    write({"classes.txt": "cat", **dict.fromkeys(labels, "0 .5 .5 .1 .1")})
    (source,) = open_sources(tmp_path)
    found = {row.values[0]: row.values[1]["objects"] for row in source.rows()}
    assert found["images/a/2.jpg"] == []


def test_an_image_is_not_that_of_one_of_two_annotations_of_its_name(write, tmp_path):
    write({"photos/1.jpg": "", "photos/2.jpg": "", "new/2.xml": VOC})
    write(dict.fromkeys(("backup/1.xml", "new/1.xml"), VOC.replace("a.jpg", "1.jpg")))
    assert name_rows(tmp_path)[:3] == ["backup/1.jpg", "new/1.jpg", "photos/2.jpg"]


def test_the_folder_where_others_are_goes_before_names_elsewhere(write, tmp_path):
    write(dict.fromkeys(("a/1.jpg", "a/2.JPG", "b/2.jpg", "x/train/3.jpg", "x/IMG_4.jpg"), ""))
    write({"list.json": list_images("a/1.jpg", "a/2.jpg")})
    assert name_rows(tmp_path) == ["a/1.jpg", "a/2.JPG"]
    write({"x/xml/train/3.xml": VOC, "x/xml/train/4.xml": VOC.replace("a.jpg", "IMG_4.jpg")})
    write({"x/train/IMG_4.JPG": ""})
    assert name_rows(tmp_path / "x")[:2] == ["train/3.jpg", "train/IMG_4.JPG"]


def test_a_label_file_of_no_image_is_not_taken_where_another_one_is_that_of_its_place(
    write, tmp_path
):
    write(dict.fromkeys(("a/images/1.jpg", "images/1.jpg", "a/2.jpg"), ""))
    labels = ("a/labels/1.txt", "a/1.txt", "a/labels/2.txt")
    write({"classes.txt": "cat", **dict.fromkeys(labels, "0 .5 .5 .1 .1")})
    (source,) = open_sources(tmp_path)
    found = {row.values[0]: row for row in source.rows()}
    assert found["images/1.jpg"].values[1] is None
    assert found["a/2.jpg"].values[1]["objects"]
    assert found["a/1.jpg"].fault.reason == "unknown_image"


def test_names_of_several_files_leave_a_file_to_the_one_name_that_has_no_other(write, tmp_path):
    write(dict.fromkeys(("train/images/1.jpg", "more/1.png"), ""))
    labels = ("train/1.txt", "labels/val/1.txt")
    write({"classes.txt": "cat", **dict.fromkeys(labels, "0 .5 .5 .1 .1")})
    (source,) = open_sources(tmp_path)
    found = {row.values[0]: row.values[2] for row in source.rows()}
    assert found["more/1.png"] is None
    assert len(found["train/images/1.jpg"]["objects"]) == 1
