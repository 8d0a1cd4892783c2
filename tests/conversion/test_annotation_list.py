"""Lists for other tools: what is written is read again, and what is not written is counted."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import darkroom
from darkroom.cli.__main__ import main
from darkroom.conversion.annotation_list import write_annotations
from darkroom.dataset.index import read_index
from darkroom.errors import OutputError, UsageError
from darkroom.sidecars.lists.coco import COCO
from darkroom.sidecars.lists.images import name_uniquely, spell_images
from darkroom.targets.boxes.kind import KIND

from ..pictures import make_noise

ORIENTATION = 0x112
COLUMNS = ["uri", "split", "label", "source_id", "changes"]
FORMS = ("coco", "voc", "yolo")
CAT = {"label": "cat", "box": [1, 2, 30, 40], "id": 7, "area": 100}


def save(path, number, orientation=1, size=(60, 80)):
    image = Image.fromarray(make_noise(number, *size))
    exif = image.getexif()
    exif[ORIENTATION] = orientation
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, exif=exif)


def convert(folder, objects, *, splits=None, names=None, turns=(), **options):
    """Converts images of 80 x 60 pixels, as they are shown, with their objects."""
    paths = [folder / (names[n] if names else f"{n}.jpg") for n in range(len(objects))]
    for number, path in enumerate(paths):
        orientation = turns[number] if turns else 1
        save(path, number, orientation, (80, 60) if orientation > 4 else (60, 80))
    rows = {"split": splits or "train", "image_uri": [*map(str, paths)], "objects": objects}
    return darkroom.convert(pd.DataFrame(rows), folder / "records", **options)


def read(records):
    """Returns the index by the names of its images, without their endings."""
    rows = read_index(f"{records}/index", COLUMNS).to_pylist()
    return {row["uri"].rpartition("/")[2].partition(".")[0]: row for row in rows}


def convert_again(folder, form, listed, **options):
    label_map = {"label_map": listed / "labels.txt"} if form == "voc" else {}
    return darkroom.convert(listed, folder / "again", **label_map, **options, accept=("odd_boxes",))


@st.composite
def images(draw):
    """Objects of an image of 80 x 60 pixels; None where nobody looked."""
    # The middle of a box of YOLO has no place for a side that is nearly nothing, as 1e-38.
    side = st.integers(0, 1 << 20).map(lambda number: number / (1 << 20))
    objects = []
    for _ in range(draw(st.integers(0, 3))):
        left, top, width, height = (draw(side) for _ in range(4))
        left, top = 70 * left, 50 * top
        box = [left, top, left + 1.5 + width * (78.5 - left), top + 1.5 + height * (58.5 - top)]
        flags = {name: draw(st.booleans()) for name in ("is_crowd", "difficult")}
        area = draw(st.none() | st.floats(1, 4800, width=32))
        objects.append(
            {"label": draw(st.sampled_from(["ba", "dog", "é<"])), "box": box, "area": area, **flags}
        )
    return draw(st.sampled_from([objects, objects, objects, None]))


def expect(objects, form):
    """Returns the objects that a form can say, with the areas of boxes where it says none."""
    if objects is None:
        return None
    found = [each for each in objects if form == "coco" or not each["is_crowd"]]
    return [{**each, "difficult": each["difficult"] and form != "yolo"} for each in found]


def compare(found, wanted, form):
    assert (found is None) == (wanted is None)
    for one, other in zip(found or (), wanted or (), strict=True):
        area, own = one.pop("area"), other.pop("area")
        assert one == other  # all bits of the boxes
        width, height = one["xmax"] - one["xmin"], one["ymax"] - one["ymin"]
        assert area == (own if form == "coco" else pytest.approx(4800 * width * height, rel=1e-5))


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_list_gives_equal_objects(form, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("lists")
    objects = data.draw(st.lists(images(), min_size=2, max_size=5))
    splits = [data.draw(st.sampled_from(["train", "eval", "test"])) for _ in objects]
    turns = [data.draw(st.integers(1, 8)) for _ in objects]
    labels = data.draw(st.permutations(["ba", "dog", "é<", "unused"]))
    first = convert(folder, objects, splits=splits, turns=turns, label_map=labels)
    written = form == "yolo" or data.draw(st.booleans())
    listed = folder / "listed"
    result = write_annotations(first.output_dir, listed, form, listed if written else None)
    wanted = read(first.output_dir)
    if form != "voc":
        wanted = {name: row for name, row in wanted.items() if row["label"] is not None}
    assert result.images == len(wanted)
    if not any(row["label"] for row in wanted.values()) or not wanted:
        return  # convert refuses lists without any object
    options = {} if written else {"box_orientation": "upright"}
    if form == "voc" and not written:
        options["image_dir"] = folder
    again = convert_again(folder, form, listed, **options)
    assert (again.rejected, again.objects.rejected) == ({}, 0)
    assert [*again.labels] == labels
    found = read(again.output_dir)
    assert found.keys() == wanted.keys()
    for name, row in found.items():
        assert row["split"] == wanted[name]["split"]
        compare(row["label"], expect(wanted[name]["label"], form), form)
        if form == "coco":
            assert row["source_id"] == wanted[name]["source_id"]
        assert not written or "orientation" not in row["changes"]
    assert result.objects == sum(len(row["label"] or ()) for row in found.values())


def test_a_list_of_coco_keeps_ids_names_and_short_numbers(tmp_path):
    other = {"label": "ant", "box": [10, 20, 15, 23.25], "difficult": True, "id": 9}
    names = ["a/0.jpg", "b/0.jpg"]
    first = convert(tmp_path, [[CAT, other], []], names=names, splits=["train", "eval"])
    result = write_annotations(first.output_dir, tmp_path / "out", "coco", tmp_path / "out")
    assert result.to_dict() == {
        "directory": f"{tmp_path}/out",
        "format": "coco",
        "images": 2,
        "objects": 2,
        "classes": {"ant": 1, "cat": 2},
        "unsaid": {},
    }
    found = json.loads((tmp_path / "out/instances_train.json").read_text())
    [image] = found["images"]
    rows = {row["uri"]: row for row in read_index(f"{first.output_dir}/index").to_pylist()}
    assert image.pop("id") == rows[f"{tmp_path}/a/0.jpg"]["source_id"]
    assert image == {"file_name": "images/train/0.jpg", "width": 80, "height": 60}
    assert (tmp_path / "out" / image["file_name"]).exists()
    assert [each["id"] for each in found["annotations"]] == [7, 9]
    assert [each["bbox"] for each in found["annotations"]] == [[1, 2, 29, 38], [10, 20, 5, 3.25]]
    assert [each["area"] for each in found["annotations"]] == [100, 16.25]
    assert found["categories"] == [{"id": 1, "name": "ant"}, {"id": 2, "name": "cat"}]
    assert (found["info"], found["licenses"]) == ({}, [])
    empty = json.loads((tmp_path / "out/instances_val.json").read_text())
    assert (len(empty["images"]), empty["annotations"]) == (1, [])


def test_boxes_are_in_the_images_that_are_named(tmp_path):
    first = convert(tmp_path, [[CAT]], resize_short_side=30)
    for folder, width, box, area in (
        ("paths", 80, [1, 2, 29, 38], 100),
        ("images", 40, [0.5, 1, 14.5, 19], 25),
    ):
        place = tmp_path / folder if folder == "images" else None
        write_annotations(first.output_dir, tmp_path / folder, "coco", place)
        found = json.loads((tmp_path / folder / "instances_train.json").read_text())
        assert found["images"][0]["width"] == width
        assert found["annotations"][0]["bbox"] == box
        assert found["annotations"][0]["area"] == area
    assert json.loads((tmp_path / "paths/instances_train.json").read_text())["images"][0][
        "file_name"
    ] == str(tmp_path / "0.jpg")


def test_what_a_form_does_not_say_is_counted(tmp_path):
    said = [{**CAT, "is_crowd": 1}, {**CAT, "difficult": 1}, {**CAT, "box": [0, 0, 99, 9]}]
    first = convert(tmp_path, [said, None], turns=[6, 1], max_rejects=1)
    unsaid = {}
    for form in FORMS:
        place = tmp_path / form if form == "yolo" else None
        result = write_annotations(first.output_dir, tmp_path / form, form, place)
        unsaid[form] = result.unsaid
    # Both objects of COCO have one id.
    assert unsaid["coco"] == {"unknown": 1, "ids": 2, "turned": 1, "rejected": 1}
    assert unsaid["voc"] == {"crowds": 1, "areas": 2, "ids": 2, "turned": 1, "rejected": 1}
    assert unsaid["yolo"] == {
        "unknown": 1,
        "crowds": 1,
        "difficult": 1,
        "areas": 2,
        "ids": 2,
        "rejected": 1,
    }
    assert not (tmp_path / "yolo/images/train/1.jpg").exists()
    lines = result.to_text().splitlines()
    assert "1 difficult object written as others: this form has no word for them" in lines[6]


@pytest.mark.parametrize(
    ("form", "numbers"), [("coco", {"cat": 17, "dog": 90}), ("yolo", {"cat": 0, "dog": 1})]
)
def test_classes_have_the_ids_of_their_source_where_the_form_has_ids(tmp_path, form, numbers):
    save(tmp_path / "1.jpg", 1)
    content = {
        "images": [{"id": 5, "file_name": "1.jpg", "width": 80, "height": 60}],
        "annotations": [{"id": 1, "image_id": 5, "category_id": 90, "bbox": [1, 2, 30, 40]}],
        "categories": [{"id": 90, "name": "dog"}, {"id": 17, "name": "cat"}],
    }
    (tmp_path / "list.json").write_text(json.dumps(content))
    first = darkroom.convert(tmp_path / "list.json", tmp_path / "records")
    result = write_annotations(first.output_dir, tmp_path / "out", form, tmp_path / "out")
    assert result.classes == numbers
    assert ", ".join(f"{number} {name}" for name, number in numbers.items()) in result.to_text()
    if form == "coco":
        [path] = (tmp_path / "out").glob("instances_*.json")
        found = json.loads(path.read_text())
        assert {each["name"]: each["id"] for each in found["categories"]} == numbers
        assert [each["category_id"] for each in found["annotations"]] == [90]


def test_a_command_writes_a_list_and_never_replaces_one(tmp_path, capsys):
    first = convert(tmp_path, [[CAT]])
    command = ["inspect", first.output_dir, "--list", f"{tmp_path}/out", "--format", "yolo"]
    assert main(command) == 2
    assert "--output-dir DIR" in capsys.readouterr().err
    command += ["--output-dir", f"{tmp_path}/out"]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 1
    label_file = tmp_path / "out/labels/train/0.txt"
    number, *box = label_file.read_text().split()
    assert number == "0"
    assert np.allclose([*map(float, box)], [15.5 / 80, 21 / 60, 29 / 80, 38 / 60])
    label_file.write_text("0 0.5 0.5 0.5 0.5\n")
    assert main(command) == 4
    assert "contains unrelated files" in capsys.readouterr().err
    assert label_file.read_text() == "0 0.5 0.5 0.5 0.5\n"
    for alone in (["--format", "coco"], ["--results", "r.json"], ["--annotations", "a.json"]):
        assert main(["inspect", first.output_dir, *alone]) == 2
        assert f"inspect takes {alone[0]} with --" in capsys.readouterr().err


def test_records_without_boxes_and_unknown_forms_are_refused(tmp_path):
    save(tmp_path / "cat/0.jpg", 0)
    save(tmp_path / "dog/1.jpg", 1)
    first = darkroom.convert(tmp_path, tmp_path / "records")
    with pytest.raises(UsageError, match=r"labelled with label.*Write JSON Lines"):
        write_annotations(first.output_dir, tmp_path / "out", "coco")
    with pytest.raises(UsageError, match="Lists are not written as 'voc2007'"):
        write_annotations(first.output_dir, tmp_path / "out", "voc2007")
    with pytest.raises(OutputError, match="in the dataset"):
        write_annotations(first.output_dir, f"{first.output_dir}/out", "coco")


def test_names_are_unique_in_their_folders_and_stay_there():
    paths = ["../../a.jpg", "/a.png", "gs://b/./c.d.jpg", "", "a/b.png"]
    assert name_uniquely(["all"] * 5, paths, ["k1", "k2", "k3", "k4", "k5"]) == [
        "a",
        "a-k2",
        "gs:/b/c.d",
        "k4",
        "a/b",
    ]
    # A folder that all have in common says nothing of an image.
    paths = ["in/val/b/1.jpg", "in/train/1.jpg", "in/val/a/1.jpg", "in/train/2.jpg"]
    names = name_uniquely(["val", "train"] * 2, paths, ["k1", "k2", "k3", "k4"])
    assert names == ["b/1", "1", "a/1", "2"]


@pytest.mark.parametrize("form", FORMS)
def test_a_list_has_the_order_of_its_source_and_no_split_twice(form, tmp_path):
    names = [f"{split}/{n}.jpg" for n in range(8) for split in ("train", "val")]
    splits = ["train", "eval"] * 8
    first = convert(tmp_path, [[CAT]] * 16, names=names, splits=splits)
    out = tmp_path / "out"
    write_annotations(first.output_dir, out, form, out)
    numbers = [str(n) for n in range(8)]
    if form == "coco":
        found = json.loads((out / "instances_val.json").read_text())
        names = [each["file_name"] for each in found["images"]]
        assert names == [f"images/val/{n}.jpg" for n in numbers]
        ids = [each["image_id"] for each in found["annotations"]]
        assert ids == [each["id"] for each in found["images"]]
        assert all((out / each).exists() for each in names)
    elif form == "voc":
        # Both splits have one folder.
        listed = (out / "ImageSets/Main/val.txt").read_text().split()
        assert listed == [f"val/{n}" for n in numbers]
    else:
        labels = sorted(path.stem for path in (out / "labels/val").iterdir())
        assert labels == numbers


def test_objects_of_a_model_are_written_likewise():
    objects = [{"label": "cat", "xmin": 0.1, "ymin": 0.2, "xmax": 0.30000001, "ymax": 0.45}]
    objects[0] |= {"is_crowd": False, "difficult": False, "area": 100.0}
    table = pa.table(
        {
            "path": ["a.jpg"],
            "name": ["a"],
            "split": ["val"],
            "source_id": [5],
            "width": [640],
            "height": [480],
            "growth": [1.0],
            "label": pa.array([objects], KIND.column),
        }
    )
    [(name, data)] = COCO.build(
        spell_images(table, COCO, Counter()), {"dog": 1, "cat": 2}, Counter()
    )
    [found] = json.loads(data)["annotations"]
    assert name == "instances_val.json"
    assert (found["image_id"], found["category_id"]) == (5, 2)
    assert found["bbox"] == pytest.approx([64, 96, 128, 120], abs=1e-4)


def test_results_of_a_detector_are_a_list_to_correct(tmp_path, capsys):
    first = convert(tmp_path, [[CAT], None, [CAT]], splits=["train", "eval", "eval"])
    found = [("1.jpg", [10, 20, 30, 30.5], 0.9), ("1.jpg", [0, 0, 99, 20], 0.4)]
    found += [("2.jpg", [1, 2, 29, 38], 0.2)]
    results = [
        {"image_id": name, "category_id": 1, "bbox": box, "score": score}
        for name, box, score in found
    ]
    (tmp_path / "results.json").write_text(json.dumps(results[::-1]))
    out = f"{tmp_path}/out"
    command = ["inspect", first.output_dir, "--list", out, "--format", "coco", "--output-dir", out]
    assert main([*command, "--results", f"{tmp_path}/results.json", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    # Those of train have no results: they are left out.
    assert (said["images"], said["objects"], said["unsaid"]) == (2, 2, {"silent": 1})
    assert [path.name for path in (tmp_path / "out").glob("*.json")] == ["instances_val.json"]
    written = json.loads((tmp_path / "out/instances_val.json").read_text())
    names = {each["id"]: each["file_name"] for each in written["images"]}
    assert sorted(names.values()) == ["images/val/1.jpg", "images/val/2.jpg"]
    assert [names[each["image_id"]] for each in written["annotations"]] == ["images/val/1.jpg"] * 2
    boxes = [each["bbox"] for each in written["annotations"]]
    assert boxes == [pytest.approx([10, 20, 30, 30.5]), pytest.approx([0, 0, 80, 20])]
    again = darkroom.convert(out, tmp_path / "again")
    assert again.objects.written == 2


def test_a_least_score_is_from_0_to_1(tmp_path, capsys):
    first = convert(tmp_path, [[CAT]])
    out = tmp_path / "out"
    command = ["inspect", first.output_dir, "--list", str(out), "--format", "coco"]
    assert main([*command, "--results", "results.json", "--min-score", "30"]) == 2
    assert "--min-score is 30.0, expected a number from 0 to 1." in capsys.readouterr().err
    for score, problem in ((1.01, "is 1.01, expected a number from 0 to 1"), ("0", "is not a nu")):
        with pytest.raises(UsageError, match=f"min_score {problem}"):
            write_annotations(first.output_dir, out, "coco", min_score=score)
    assert not out.exists()
    write_annotations(first.output_dir, out, "coco", min_score=np.float32(0.5))
