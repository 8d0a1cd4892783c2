"""Which image of an older dataset one of a newer list is, and which split it has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

import darkroom
from darkroom.conversion.annotation_list import write_annotations
from darkroom.dataset.index import read_index
from darkroom.errors import DataError, OutputError

from ..pictures import make_noise

COUNT = 12
KEPT = ("key", "id", "split", "source_id", "sha256")


def read(result):
    return {row["key"]: row for row in read_index(f"{result.output_dir}/index").to_pylist()}


def find(old, new):
    found = darkroom.diff(old.output_dir, new.output_dir)
    return {each.check: each.message for each in found.findings}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A dataset with boxes, in splits that its list says; two images have the same bytes."""
    folder = tmp_path_factory.mktemp("first")
    rows = []
    for number in range(COUNT):
        path = folder / f"photos/{number % 2}/{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(make_noise(0 if number == 10 else number, 60, 80)).save(path)
        box = {"label": "ab"[number % 3 > 0], "box": [1, 2, 30 + number, 40]}
        split = ("train", "eval", "test")[number % 3]
        rows.append({"split": split, "image_uri": str(path), "objects": [box]})
    return darkroom.convert(pd.DataFrame(rows), folder / "records")


def correct(listed, form, *, splits):
    """Moves a box of image 7, as a person does; without `splits` all are in one file."""
    if form == "voc":
        [path] = listed.glob("Annotations/**/7.xml")
        path.write_text(path.read_text().replace("<xmin>", "<xmin>1", 1))
    elif form == "yolo":
        [path] = listed.glob("labels/**/7.txt")
        number, left, *rest = path.read_text().split()
        path.write_text(" ".join([number, str(float(left) + 0.1), *rest]) + "\n")
    else:
        files = [*listed.glob("instances_*.json")]
        parts = [json.loads(path.read_text()) for path in files]
        [image] = [i["id"] for part in parts for i in part["images"] if "/7." in i["file_name"]]
        for each in (each for part in parts for each in part["annotations"]):
            each["bbox"][0] += 10 * (each["image_id"] == image)
        if splits:
            for path, part in zip(files, parts, strict=True):
                path.write_text(json.dumps(part))
            return listed
        for number, each in enumerate(each for part in parts for each in part["annotations"]):
            each["id"] = number + 1
        both = {
            name: [each for part in parts for each in part[name]]
            for name in ("images", "annotations")
        }
        for path in files:
            path.unlink()
        path = listed / "corrected.json"
        path.write_text(json.dumps({**both, "categories": parts[0]["categories"]}))
        return path
    return listed


@pytest.mark.parametrize("form", ["coco", "voc", "yolo"])
def test_a_corrected_list_with_images_changes_what_was_corrected(form, first, tmp_path):
    listed = tmp_path / "listed"
    write_annotations(first.output_dir, listed, form, listed)
    source = correct(listed, form, splits=True)
    label_map = {"label_map": listed / "labels.txt"} if form == "voc" else {}
    based = darkroom.convert(source, tmp_path / "based", base=first.output_dir, **label_map)
    assert [*find(first, based)] == ["objects_moved"]
    before, after = read(first), read(based)
    assert all(before[key][name] == row[name] for key, row in after.items() for name in KEPT)
    # Without the base they have names of their own, and are the same images.
    plain = darkroom.convert(source, tmp_path / "plain", **label_map)
    found = find(first, plain)
    assert [*found] == ["objects_moved", "other_columns"]
    assert found["other_columns"].split("(")[1].startswith(f"id {COUNT}")


@pytest.mark.parametrize("has_images", [True, False])
def test_a_list_that_says_no_split_leaves_images_in_theirs(has_images, first, tmp_path):
    listed = tmp_path / "listed"
    write_annotations(first.output_dir, listed, "coco", listed if has_images else None)
    source = correct(listed, "coco", splits=False)
    based = darkroom.convert(source, tmp_path / "based", base=first.output_dir)
    assert [*find(first, based)] == ["objects_moved"]
    plain = darkroom.convert(source, tmp_path / "plain")
    assert {"moved", "objects_moved"} <= find(first, plain).keys()


def test_what_a_base_says_is_a_part_of_a_conversion(first, tmp_path):
    """So a base that is given later is not overlooked, and what was done with one is known."""
    listed, output = tmp_path / "listed", tmp_path / "out"
    write_annotations(first.output_dir, listed, "coco")
    source = correct(listed, "coco", splits=False)
    darkroom.convert(source, output)
    with pytest.raises(OutputError, match="another dataset"):
        darkroom.convert(source, output, base=first.output_dir)
    shutil.rmtree(output)
    for options in ({"base": first.output_dir}, {"update": True}, {"update": True, "seed": 0}):
        again = darkroom.convert(source, output, **options)
        assert again.already_complete == ("update" in options)
    assert darkroom.convert(source, output, base=first.output_dir).already_complete


def write_list(folder, rows):
    lines = [f"{name},{label},{split}\n" for name, (label, split) in rows.items()]
    (folder / "list.csv").write_text("image_uri,label,split\n" + "".join(lines))
    return folder / "list.csv"


@pytest.fixture
def labelled(tmp_path):
    """The rows of a list of labels, and its dataset."""
    for number in range(40):
        Image.fromarray(make_noise(number, 9, 9)).save(tmp_path / f"{number}.png")
    rows = {f"{number}.png": ["ab"[number % 2], ""] for number in range(40)}
    return rows, darkroom.convert(write_list(tmp_path, rows), tmp_path / "records")


def test_a_renamed_file_is_the_same_image(labelled, tmp_path):
    rows, made = labelled
    old = read(made)
    for number in range(20):
        (tmp_path / f"{number}.png").rename(tmp_path / f"other-{number}.png")
        rows[f"other-{number}.png"] = rows.pop(f"{number}.png")
    Image.fromarray(make_noise(50, 9, 9)).save(tmp_path / "20.png")
    # Half of the images would be gone, were they others.
    result = darkroom.convert(write_list(tmp_path, rows), tmp_path / "records", update=True)
    new = read(result)
    assert {key: row["split"] for key, row in new.items()} == {
        key: row["split"] for key, row in old.items()
    }
    assert sum(new[key]["sha256"] != old[key]["sha256"] for key in old) == 1
    with pytest.raises(DataError, match="are not in the list"):
        darkroom.convert(
            write_list(tmp_path, dict([*rows.items()][:5])), tmp_path / "records", update=True
        )


def test_the_list_says_the_split_then_the_base_then_the_ratios(labelled, tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    rows, made = labelled
    old = {Path(row["uri"]).name: row["split"] for row in read(made).values()}
    moved = next(name for name, split in old.items() if split == "train")
    rows[moved][1] = "TEST"
    for number in range(40, 44):
        Image.fromarray(make_noise(number, 9, 9)).save(tmp_path / f"{number}.png")
        rows[f"{number}.png"] = ["a", ""]
    for split in ("TEST", ""):  # What a list said once stays said.
        rows[moved][1] = split
        source = write_list(tmp_path, rows)
        result = darkroom.convert(source, tmp_path / "records", update=True, split_ratios="0/100/0")
        new = {Path(row["uri"]).name: row["split"] for row in read(result).values()}
        added = dict.fromkeys(rows.keys() - old.keys(), "eval")
        assert new == {**old, **added, moved: "test"}
    # Of one with ratios of 0/100/0, all that are not in eval.
    kept = [sum(new[name] != "eval" for name in old) - said for said in (1, 0)]
    assert [note.partition(":")[0] for note in notes] == [
        f"The list says no split of {count} images" for count in kept
    ]


@pytest.mark.parametrize("has_splits", [True, False])
def test_an_appended_list_of_images_that_came_back_adds_none(has_splits, first, tmp_path):
    """What was corrected is in place of what was there, as of rows that name these images."""
    own, listed, output = (tmp_path / name for name in ("own", "listed", "records"))
    write_annotations(first.output_dir, own, "coco")
    before = read(darkroom.convert(own, output))
    write_annotations(output, listed, "coco", listed)
    source = correct(listed, "coco", splits=has_splits)
    Image.fromarray(make_noise(50, 60, 80)).save(listed / "new.jpg")
    [path, *_] = [source] if source.is_file() else sorted(source.glob("*.json"))
    part = json.loads(path.read_text())
    part["images"].append({"id": 99, "file_name": "new.jpg", "width": 80, "height": 60})
    path.write_text(json.dumps(part))
    result = darkroom.convert(source, output, update=True, append=True)
    after = read(result)
    [new] = after.keys() - before.keys()
    assert after[new]["uri"] == str(listed / "new.jpg")
    assert all(before[key][name] == after[key][name] for key in before for name in KEPT)
    changed = {key for key, row in before.items() if row["label"] != after[key]["label"]}
    assert [before[key]["id"][-5:] for key in changed] == ["7.jpg"]
    assert {len(row["label"]) for row in after.values()} == {0, 1}
    places = ("uri", "source_size", "source_version")
    assert all(before[key][name] == after[key][name] for key in before for name in places)
    again = darkroom.convert(source, output, update=True, append=True)
    assert again.already_complete


def test_an_appended_copy_has_the_label_of_the_list(labelled, tmp_path, monkeypatch):
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    old = read(labelled[1])
    for number in (0, 1):
        shutil.copy(tmp_path / f"{number}.png", tmp_path / f"copy-{number}.png")
    copies = {"copy-0.png": ["a", ""], "copy-1.png": ["a", ""]}  # 1.png has b.
    append = {"update": True, "append": True}
    result = darkroom.convert(write_list(tmp_path, copies), tmp_path / "records", **append)
    new = read(result)
    assert {key: row["split"] for key, row in new.items()} == {
        key: row["split"] for key, row in old.items()
    }
    assert (result.rows, result.written, result.replaced) == (40, 40, 1)
    labels = {Path(row["uri"]).name: row["label"] for row in new.values()}
    assert (labels["0.png"], labels["1.png"], labels["3.png"]) == ("a", "a", "b")
    assert notes == ["Known by their bytes: 2 images of the list."]
