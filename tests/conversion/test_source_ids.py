"""`image/source_id` of boxes is a number, by one rule for a whole dataset, also after updates."""

from __future__ import annotations

import json

import pytest
from PIL import Image

import darkroom
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import OutputError

from ..pictures import make_noise
from ..trees import read_files

CATEGORIES = [{"id": 1, "name": "cat"}]


@pytest.fixture
def folder(tmp_path):
    """A folder with six different images of 80 x 60 pixels, 0.png to 5.png."""
    for number in range(6):
        Image.fromarray(make_noise(number, 60, 80)).save(tmp_path / f"{number}.png")
    return tmp_path


def write_coco(folder, ids, name="list.json", *, is_annotated=True):
    """Writes a file of COCO, of images by their names, which have a box each."""
    images = [
        {"id": id_, "file_name": file, "width": 80, "height": 60} for file, id_ in ids.items()
    ]
    box = {"category_id": 1, "bbox": [1, 2, 30, 40], "iscrowd": 0}
    objects = [{**box, "id": number, "image_id": id_} for number, id_ in enumerate(ids.values())]
    found = {"images": images, "categories": CATEGORIES}
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found | ({"annotations": objects} if is_annotated else {})))
    return path


def read_ids(dataset):
    """Returns `image/source_id` of the records, by the names of their images."""
    found = {}
    for shard in read_dataset(dataset).shards:
        for record in read_records(f"{dataset}/{shard.file}"):
            example = decode_example(record)
            name = example["image/filename"][0].decode().rpartition("/")[2]
            found[name] = example["image/source_id"][0].decode()
    return found


def read_rows(dataset, *columns):
    """Returns columns of the index, by the names of their images."""
    rows = read_index(f"{dataset}/index", ["id", *columns]).to_pylist()
    return {row["id"].rpartition("/")[2]: [row[name] for name in columns] for row in rows}


def number_keys(dataset):
    """Returns the first 63 bits of each key as decimal text."""
    keys = read_rows(dataset, "key").items()
    return {name: str(int(key, 16) >> 65) for name, [key] in keys}


def check_same(one, other):
    """Checks that two datasets have the same shards and the same index, but for places."""
    parts = ("Split", "dataset", "labels")
    shards = [
        {name: data for name, data in read_files(each).items() if name.startswith(parts)}
        for each in (one, other)
    ]
    assert shards[0] == shards[1]
    columns = ["key", "row", "label", "listed", "source_id", "shard", "position", "offset"]
    tables = [read_index(f"{each}/index", columns) for each in (one, other)]
    assert tables[0].equals(tables[1])


def test_records_have_the_ids_of_the_list(folder):
    given = {"0.png": 9, "1.png": 10, "2.png": 0, "3.png": (1 << 63) - 1}
    darkroom.convert(write_coco(folder, given), folder / "out")
    assert read_ids(folder / "out") == {name: str(id_) for name, id_ in given.items()}
    rows = read_rows(folder / "out", "source_id", "listed")
    assert {name: number for name, (number, _) in rows.items()} == given
    assert {name: said["image_id"] for name, (_, said) in rows.items()} == {
        name: str(id_) for name, id_ in given.items()
    }
    assert darkroom.verify(folder / "out").is_sound


@pytest.mark.parametrize("other", ["a", "010", -1, 1 << 63, 1.5, "x" * 300])
def test_one_id_that_is_not_a_number_makes_all_numbers_of_keys(folder, other):
    darkroom.convert(write_coco(folder, {"0.png": 7, "1.png": other}), folder / "out")
    assert read_ids(folder / "out") == number_keys(folder / "out")
    assert read_rows(folder / "out", "listed")["0.png"][0]["image_id"] == "7"


def test_files_of_splits_that_number_their_images_alike_have_numbers_of_keys(folder):
    for split, name in (("train", "0.png"), ("val", "1.png")):
        write_coco(folder, {name: 1}, f"annotations/instances_{split}.json")
    darkroom.convert(folder, folder / "out", format="coco")
    assert {row[0] for row in read_rows(folder / "out", "split").values()} == {"train", "eval"}
    assert read_ids(folder / "out") == number_keys(folder / "out")


def test_an_image_at_which_nobody_looked_has_its_id(folder):
    path = write_coco(folder, {"0.png": 5, "1.png": 6}, is_annotated=False)
    result = darkroom.convert(path, folder / "out", format="coco")
    rows = read_rows(folder / "out", "label", "source_id")
    assert rows == {"0.png": [None, 5], "1.png": [None, 6]}
    assert (result.labels, result.objects.read) == (("cat",), 0)
    assert read_ids(folder / "out") == {"0.png": "5", "1.png": "6"}


def test_appended_rows_at_which_nobody_looked_are_known(folder):
    more = {"update": True, "append": True, "format": "coco"}
    darkroom.convert(write_coco(folder, {"0.png": 5}), folder / "out")
    unknown = write_coco(folder, {"0.png": 5, "1.png": 6}, "unknown.json", is_annotated=False)
    darkroom.convert(unknown, folder / "out", **more)
    assert darkroom.convert(unknown, folder / "out", **more).already_complete
    # Somebody has looked since.
    darkroom.convert(write_coco(folder, {"1.png": 6}), folder / "out", **more)
    rows = read_rows(folder / "out", "label", "source_id")
    assert {
        name: ([each["label"] for each in label], id_) for name, (label, id_) in rows.items()
    } == {
        "0.png": (["cat"], 5),
        "1.png": (["cat"], 6),
    }


def test_other_lists_of_boxes_have_numbers_of_keys_and_labels_have_keys(folder):
    lists = {"boxes": {"objects": []}, "labels": {"label": "cat"}}
    for name, more in lists.items():
        path = folder / f"{name}.jsonl"
        path.write_text(json.dumps({"image_uri": "0.png", "split": "train", **more}))
        darkroom.convert(path, folder / name)
    assert read_ids(folder / "boxes") == number_keys(folder / "boxes")
    assert read_ids(folder / "labels") == {"0.png": read_rows(folder / "labels", "key")["0.png"][0]}
    assert "target_version" not in read_dataset(f"{folder}/labels").options


# From ids that are used to those that are not, the other way, and other ids alone.
EDITS = {
    "an id twice": ({"0.png": 1, "1.png": 2}, {"0.png": 1, "1.png": 2, "2.png": "b"}),
    "no id twice": ({"0.png": 1, "1.png": "b"}, {"0.png": 1, "1.png": 2, "2.png": 3}),
    "another id": ({"0.png": 1, "1.png": 2}, {"0.png": 1, "1.png": 3}),
    "an id more": ({"0.png": 1, "1.png": 2}, {"0.png": 1, "1.png": 2, "2.png": 3}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_update_gives_the_ids_of_a_conversion_from_nothing(folder, edit):
    before, after = EDITS[edit]
    darkroom.convert(write_coco(folder, before), folder / "out")
    path = write_coco(folder, after)
    darkroom.convert(path, folder / "out", update=True)
    darkroom.convert(path, folder / "fresh")
    check_same(folder / "out", folder / "fresh")
    assert darkroom.convert(path, folder / "out", update=True).already_complete


@pytest.mark.parametrize("new", [3, 2])
def test_ids_are_compared_with_those_of_the_dataset_to_which_a_list_is_appended(folder, new):
    darkroom.convert(write_coco(folder, {"0.png": 1, "1.png": 2}), folder / "out")
    more = write_coco(folder, {"2.png": new}, "more.json")
    darkroom.convert(more, folder / "out", update=True, append=True)
    own = {"0.png": "1", "1.png": "2", "2.png": "3"}
    assert read_ids(folder / "out") == (own if new == 3 else number_keys(folder / "out"))
    assert darkroom.verify(folder / "out").is_sound


NOTES = {
    "an id that another image has": (2, "1.png and 2.png both have the id '2'"),
    "an id that is not a number": (
        "b",
        "2.png has the id 'b', which is not a whole number of 63 bits",
    ),
    "an id that no other image has": (3, None),
}


@pytest.mark.parametrize("which", NOTES)
def test_an_update_says_why_all_images_get_other_ids(folder, monkeypatch, which):
    new, why = NOTES[which]
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.warn", notes.append)
    darkroom.convert(write_coco(folder, {"0.png": 1, "1.png": 2}), folder / "out")
    more = write_coco(folder, {"2.png": new}, "more.json")
    darkroom.convert(more, folder / "out", update=True, append=True)
    more = write_coco(folder, {"3.png": 2}, "again.json")
    if why:  # They are made of keys already.
        darkroom.convert(more, folder / "out", update=True, append=True)
    assert notes == [
        f"image/source_id of every record is another one now, made of its key: {why}. Results of a "
        "model with the ids of before do not fit. To keep them, give each new image a whole "
        "number that no other image has."
    ] * bool(why)


@pytest.mark.parametrize("more", [{"update": True}, {"update": True, "append": True}])
def test_an_image_without_an_id_keeps_that_of_the_dataset(folder, more):
    """A list of YOLO or Pascal VOC has none."""
    darkroom.convert(write_coco(folder, {"0.png": 5, "1.png": 6}), folder / "out")
    lines = [{"image_uri": name, "objects": []} for name in ("0.png", "1.png")]
    path = folder / "list.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    darkroom.convert(path, folder / "out", max_rejects=1, **more)
    assert read_ids(folder / "out") == {"0.png": "5", "1.png": "6"}
    assert darkroom.convert(path, folder / "out", max_rejects=1, **more).already_complete
    if "append" not in more:  # It is another conversion than one without the dataset.
        darkroom.convert(path, folder / "other")
        with pytest.raises(OutputError, match="another dataset"):
            darkroom.convert(path, folder / "other", base=folder / "out")


def test_a_list_that_is_appended_gives_no_image_another_id(folder):
    """Files number their images alike."""
    darkroom.convert(write_coco(folder, {"0.png": 5, "1.png": 6}), folder / "out")
    more = write_coco(folder, {"0.png": 6}, "more.json")
    darkroom.convert(more, folder / "out", update=True, append=True)
    assert read_ids(folder / "out") == {"0.png": "5", "1.png": "6"}


def test_a_corrected_object_leaves_the_ids_as_they_are(folder):
    path = write_coco(folder, {"0.png": 1, "1.png": 2})
    found = json.loads(path.read_text())
    found["annotations"].append({**found["annotations"][0], "id": 9, "bbox": [70, 2, 30, 4]})
    path.write_text(json.dumps(found))
    darkroom.convert(path, folder / "out", max_rejects=1)
    [line] = map(json.loads, (folder / "out/rejects.jsonl").read_text().splitlines())
    line["objects"]["objects"][0]["box"] = [7, 2, 30, 4]
    (folder / "fixed.jsonl").write_text(json.dumps(line))
    result = darkroom.convert(folder / "fixed.jsonl", folder / "out", update=True, append=True)
    assert result.objects.written == 3
    assert read_ids(folder / "out") == {"0.png": "1", "1.png": "2"}
