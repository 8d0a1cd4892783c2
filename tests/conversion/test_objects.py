"""Objects of images: each of the list is written, rejected, deduplicated or merged, and counted."""

from __future__ import annotations

import json
import random
from operator import itemgetter

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import darkroom
from darkroom.conversion.shards import encode
from darkroom.dataset.checksums import read_sums, sum_bytes, write_sums
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError, OutputError
from darkroom.targets.boxes.kind import BoxesKind

from ..pictures import make_noise
from ..trees import read_files

CAT = {"label": "cat", "box": [1, 2, 30, 40]}
DOG = {"label": "dog", "box": [5.5, 5, 50, 50], "area": 100, "id": 7}


@pytest.fixture
def folder(tmp_path):
    """A folder with six different images of 80 x 60 pixels, 0.png to 5.png."""
    for number in range(6):
        Image.fromarray(make_noise(number, 60, 80)).save(tmp_path / f"{number}.png")
    return tmp_path


def make_frame(folder, objects):
    """Returns a list of the first images of a folder with their objects."""
    uris = [f"{folder}/{number}.png" for number in range(len(objects))]
    return pd.DataFrame({"split": "train", "image_uri": uris, "objects": objects})


def convert(folder, objects, out="out", **options):
    frame = make_frame(folder, objects)
    return darkroom.convert(frame, folder / out, **{"max_rejects": 1, **options})


def read_examples(folder):
    """Returns the features of all records by the name of their image."""
    found = {}
    for shard in read_dataset(folder).shards:
        for record in read_records(f"{folder}/{shard.file}"):
            example = decode_example(record)
            found[example["image/filename"][0].decode().rpartition("/")[2]] = example
    return found


def test_a_dataframe_with_objects_becomes_records(folder):
    result = make_frame(folder, [[CAT, DOG], [DOG], [], None]).tensorflow.to_tfrecord(
        folder / "out"
    )
    assert (result.labels, result.objects.written) == (("cat", "dog"), 3)
    examples = read_examples(folder / "out")
    first = {name: v for name, v in examples["0.png"].items() if name.startswith("image/object/")}
    assert first.pop("image/object/bbox/xmin") == pytest.approx([1 / 80, 5.5 / 80])
    assert first.pop("image/object/bbox/ymin") == pytest.approx([2 / 60, 5 / 60])
    assert first.pop("image/object/bbox/xmax") == pytest.approx([30 / 80, 50 / 80])
    assert first.pop("image/object/bbox/ymax") == pytest.approx([40 / 60, 50 / 60])
    assert first.pop("image/object/area") == pytest.approx([29 * 38, 100])
    assert first == {
        "image/object/annotated": [1],
        "image/object/class/label": [1, 2],
        "image/object/class/text": [b"cat", b"dog"],
        "image/object/difficult": [0, 0],
        "image/object/is_crowd": [0, 0],
    }
    assert examples["1.png"]["image/object/class/label"] == [2]
    known = {name: each["image/object/annotated"] for name, each in examples.items()}
    assert known == {"0.png": [1], "1.png": [1], "2.png": [1], "3.png": [0]}
    assert darkroom.verify(folder / "out").is_sound


def test_objects_add_up(folder):
    outside, nameless = {**CAT, "box": [0, 0, 90, 9]}, {**DOG, "label": ""}
    cut = {**CAT, "box": [0, 0, 80.5, 60]}
    objects = [[CAT, CAT, DOG], [outside, DOG], [nameless], [CAT, cut], [CAT], [], [DOG, DOG, CAT]]
    result = convert(folder, objects)
    # The last image is missing.
    assert (result.written, result.rejected) == (6, {"missing": 1})
    assert result.rejected_objects == {"empty_label": 1, "missing": 3, "outside_image": 1}
    counts = {"written": 6, "rejected": 5, "merged": 1, "deduplicated": 0}
    counts |= {"alone": 2, "cut": 1, "most": 2}
    assert result.to_dict()["objects"] == counts
    commit = json.loads((folder / "out/dataset.json").read_text())
    assert commit["objects"] == counts
    assert sum(map(len, objects)) == result.objects.read == 12
    lines = [line.split(None, 2) for line in result.to_text().splitlines()]
    assert ["Objects", "in", "12"] in lines
    assert ["Objects", "out", "6  (1 cut at the edge of the image)"] in lines


def test_each_lost_object_has_a_line_that_convert_reads(folder):
    lost = {"label": "cat", "box": [0, 0, 90, 9], "id": 42}
    convert(folder, [[CAT, lost], [{**DOG, "box": [1, 2, 3]}]])
    path = folder / "out/rejects.jsonl"
    lines = sorted(map(json.loads, path.read_text().splitlines()), key=lambda line: line["row"])
    assert [(line["row"], line["stage"], line["reason"]) for line in lines] == [
        (1, "object", "outside_image"),
        (2, "object", "bad_box"),
    ]
    assert lines[0]["detail"].startswith("object 42: ")
    lines[0]["objects"]["objects"][0]["box"] = [0, 0, 70, 9]
    lines[1]["objects"]["objects"][0]["box"] = [1, 2, 3, 4]
    fixed = folder / "fixed.jsonl"
    fixed.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    result = darkroom.convert(fixed, folder / "out", update=True, append=True)
    # Those of the dataset that were written, and the corrected ones.
    counts = result.objects.read, result.objects.written, result.objects.rejected
    assert (result.written, *counts) == (2, 3, 3, 0)
    texts = {
        name: each["image/object/class/text"]
        for name, each in read_examples(folder / "out").items()
    }
    assert texts == {"0.png": [b"cat", b"cat"], "1.png": [b"dog"]}
    again = darkroom.convert(fixed, folder / "out", update=True, append=True)
    assert again.already_complete


def test_a_part_of_a_corrected_list_is_in_place_of_its_images(folder):
    lost = {**DOG, "box": [0, 0, 90, 9]}
    convert(folder, [[CAT, DOG], [CAT, DOG], [DOG], [CAT], [DOG, lost]], max_rejects=1)
    moved, larger = {**CAT, "box": [1, 2, 33, 40]}, {**DOG, "area": 50}
    # One is moved and one deleted, one has another area, one comes in two rows.
    objects = [[moved], [CAT, larger], [DOG], [CAT], [DOG]]
    rows = make_frame(folder, [*objects[:2], [CAT], objects[4]]).iloc[[0, 1, 2, 2, 3]]
    rows["image_uri"] = [f"{folder}/{number}.png" for number in (0, 1, 3, 3, 4)]
    result = rows.tensorflow.to_tfrecord(folder / "out", update=True, append=True)
    assert (result.rows, result.written, result.deduplicated) == (6, 5, 1)
    # The area alone is not counted.
    assert (result.replaced, result.rejected_objects) == (2, {})
    assert ["Replaced", "2", "(as the list says them)"] in [
        line.split(None, 2) for line in result.to_text().splitlines()
    ]
    convert(folder, objects, out="whole")
    columns = ["id", "split", "label", "listed"]
    found, whole = (
        sorted(read_index(f"{folder}/{name}/index", columns).to_pylist(), key=itemgetter("id"))
        for name in ("out", "whole")
    )
    assert found == whole
    assert rows.tensorflow.to_tfrecord(folder / "out", update=True, append=True).already_complete


def test_an_appended_row_at_which_nobody_looked_takes_no_objects_away(folder):
    convert(folder, [[CAT], [DOG]])
    rows = make_frame(folder, [None, None])
    rows.tensorflow.to_tfrecord(folder / "out", update=True, append=True, max_rejects=1)
    labels = read_index(f"{folder}/out/index", ["label"])["label"].to_pylist()
    assert sorted(each["label"] for [each] in labels) == ["cat", "dog"]


def test_lost_objects_are_counted_until_they_are_corrected(folder):
    lost = [{"label": "cat", "box": [0, 0, 90, 9]}, {"label": "dog", "box": [1, 2, 3]}]
    convert(folder, [[CAT, *lost], [DOG]])
    new = make_frame(folder, [[CAT]] * 3)[2:]
    result = darkroom.convert(new, folder / "out", update=True, append=True, max_rejects=1)
    counts = result.objects.read, result.objects.written, result.objects.rejected
    assert (counts, result.deduplicated) == ((5, 3, 2), 0)
    assert result.rejected_objects == {"bad_box": 1, "outside_image": 1}
    lines = (folder / "out/rejects.jsonl").read_text().splitlines()
    line = next(each for each in map(json.loads, lines) if each["reason"] == "bad_box")
    line["objects"]["objects"][0]["box"] = [1, 2, 30, 40]
    (folder / "fixed.jsonl").write_text(json.dumps(line))
    result = darkroom.convert(
        folder / "fixed.jsonl", folder / "out", update=True, append=True, max_rejects=1
    )
    assert (result.objects.written, result.rejected_objects) == (4, {"outside_image": 1})


def test_an_image_of_another_size_is_corrected_in_its_line(folder):
    lost = {**CAT, "box": [0, 0, 90, 9]}
    convert(folder, [[DOG], {"width": 8, "height": 6, "objects": [CAT, lost]}])
    (line,) = map(json.loads, (folder / "out/rejects.jsonl").read_text().splitlines())
    assert (line["reason"], len(line["objects"]["objects"])) == ("other_size", 2)
    line["objects"] |= {"width": 80, "height": 60}
    (folder / "fixed.jsonl").write_text(json.dumps(line))
    result = darkroom.convert(
        folder / "fixed.jsonl", folder / "out", update=True, append=True, max_rejects=1
    )
    assert (result.rows, result.written, result.deduplicated, result.rejected) == (2, 2, 0, {})
    assert (result.objects.written, result.rejected_objects) == (2, {"outside_image": 1})


def test_rows_of_one_image_are_joined(folder):
    frame = make_frame(folder, [[CAT], [DOG]])
    frame["image_uri"] = f"{folder}/0.png"
    result = darkroom.convert(frame, folder / "out")
    assert (result.written, result.deduplicated, result.objects.written) == (1, 1, 2)


def test_rows_that_mean_images_of_two_sizes_are_a_conflict(folder):
    sizes = [
        {"width": 80, "height": 60, "objects": [CAT]},
        {"width": 40, "height": 30, "objects": [CAT]},
    ]
    frame = make_frame(folder, sizes)
    frame["image_uri"] = f"{folder}/0.png"
    with pytest.raises(DataError, match="2 of 2 rows were rejected"):
        darkroom.convert(frame, folder / "out")


def test_too_many_lost_objects_end_a_conversion_as_too_many_rows_do(folder):
    few = [[CAT] * 3, [{**CAT, "box": [0, 0, 90, 9]}]]
    with pytest.raises(DataError, match=r"0 of 2 rows and 1 of 4 objects was rejected") as caught:
        convert(folder, few, max_rejects=0.2)
    assert "outside_image: Correct the box" in caught.value.hint
    assert not (folder / "out/dataset.json").exists()
    assert convert(folder, few, max_rejects=0.25).objects.written == 1


def test_objects_of_excluded_images_are_deduplicated(folder):
    (folder / "left-out.txt").write_text(f"{folder}/1.png\n")
    result = convert(folder, [[CAT], [CAT, DOG]], exclude=folder / "left-out.txt")
    assert (result.objects.written, result.objects.deduplicated) == (1, 2)


def test_an_update_reads_only_images_whose_objects_changed(folder, monkeypatch):
    lossy = [CAT, {**CAT, "box": [0, 0, 90, 9]}]
    objects = [[CAT, DOG], [DOG], [], None, lossy]
    convert(folder, objects)
    objects[1] = [{**DOG, "box": [5.5, 5, 50, 51]}]
    read = []
    before = encode.ImageReaders._read
    monkeypatch.setattr(
        encode.ImageReaders, "_read", lambda self, row: read.append(row.uri) or before(self, row)
    )
    updated = convert(folder, objects, update=True)
    # An object of the last image is lost again, and counted again.
    assert sorted(uri.rpartition("/")[2] for uri in read) == ["1.png", "4.png"]
    fresh = convert(folder, objects, out="fresh")
    assert updated.fingerprint == fresh.fingerprint
    assert updated.objects == fresh.objects
    ignored = ("index", "SHA256SUMS", "read-as")
    old, new = (
        {n: d for n, d in read_files(folder / name).items() if not str(n).startswith(ignored)}
        for name in ("out", "fresh")
    )
    assert old == new
    columns = ["id", "label", "listed"]
    assert read_index(f"{folder}/out/index", columns).equals(
        read_index(f"{folder}/fresh/index", columns)
    )


def test_a_run_with_the_same_objects_has_nothing_to_do(folder):
    convert(folder, [[CAT], [DOG]])
    again = convert(folder, [[CAT], [DOG]])
    assert (again.already_complete, again.objects.written) == (True, 2)
    assert not convert(folder, [[CAT], [{**DOG, "difficult": 1}]], overwrite=True).already_complete


def test_images_that_exif_turns_have_their_boxes_where_people_see_them(folder):
    exif = Image.Exif()
    exif[0x112] = 6
    # Its file is 80 x 60, and it is shown as 60 x 80.
    Image.fromarray(make_noise(0, 60, 80)).save(folder / "0.png", exif=exif)
    lists = {
        "shown": [{"label": "cat", "box": [0, 0, 30, 20]}],
        "file": {"width": 80, "height": 60, "objects": [{"label": "cat", "box": [0, 30, 20, 60]}]},
    }
    for name, objects in lists.items():
        convert(folder, [objects], out=name)
        example = read_examples(folder / name)["0.png"]
        corners = [
            example[f"image/object/bbox/{side}"][0] for side in ("xmin", "ymin", "xmax", "ymax")
        ]
        assert corners == [0, 0, 0.5, 0.25]
    shares = {"width": 1, "height": 1, "objects": [{"label": "cat", "box": [0, 0.5, 0.25, 1]}]}
    with pytest.raises(DataError, match="ambiguous_orientation"):
        convert(folder, [shares], out="shares")
    convert(folder, [shares, [DOG]])
    line = json.loads((folder / "out/rejects.jsonl").read_text())
    line["objects"]["orientation"] = "stored"
    (folder / "said.jsonl").write_text(json.dumps(line))
    result = darkroom.convert(folder / "said.jsonl", folder / "out", update=True, append=True)
    assert (result.rejected, result.objects.written) == ({}, 2)
    assert read_examples(folder / "out")["0.png"]["image/object/bbox/xmax"] == [0.5]
    convert(folder, [shares], out="stored", box_orientation="stored")
    assert read_examples(folder / "stored")["0.png"]["image/object/bbox/xmax"] == [0.5]


def move_object(row):
    row["label"][0]["xmax"] = 0.5


def number_otherwise(row):
    row["source_id"] += 1


@pytest.mark.parametrize("change", [move_object, number_otherwise])
def test_verify_finds_an_index_of_other_records(folder, change):
    convert(folder, [[CAT, DOG]])
    [path] = (folder / "out/index").glob("*.parquet")
    table = pq.read_table(path)
    [row] = table.to_pylist()
    change(row)
    pq.write_table(pa.Table.from_pylist([row], table.schema), path)
    sums = read_sums(f"{folder}/out")
    sums[f"index/{path.name}"] = sum_bytes(path.read_bytes())
    write_sums(f"{folder}/out", sums)
    found = darkroom.verify(folder / "out")
    assert "does not match the records" in str(found.findings)


@pytest.mark.parametrize("seed", range(4))
def test_no_object_is_lost_in_a_random_list(folder, seed):
    chance = random.Random(seed)

    def make_object():
        box = [chance.uniform(-3, 70), chance.uniform(-3, 50)]
        box += [box[0] + chance.uniform(-1, 20), box[1] + chance.uniform(-1, 20)]
        label = chance.choice(["cat", "dog", "", None, "x" * 2_000])
        return chance.choice([CAT, {"label": label, "box": box}, {"label": "cat"}, "no object"])

    objects = [
        chance.choice([None, [], [make_object() for _ in range(chance.randrange(9))]])
        for _ in range(9)
    ]
    result = convert(folder, objects)
    found = result.objects
    assert found.read == sum(len(each or ()) for each in objects)
    assert found.rejected == sum(result.rejected_objects.values())
    written = [
        each.get("image/object/class/text", []) for each in read_examples(folder / "out").values()
    ]
    assert found.written == sum(map(len, written))


def test_images_of_a_base_that_is_labelled_otherwise_are_read_again(folder):
    labelled = make_frame(folder, [None, None]).assign(label=["cat", "dog"]).drop(columns="objects")
    darkroom.convert(labelled, folder / "labels")
    result = convert(folder, [[CAT], [DOG]], base=str(folder / "labels"))
    assert (result.written, result.objects.written) == (2, 2)
    darkroom.convert(labelled, folder / "back", base=str(folder / "out"))
    assert read_examples(folder / "back")["1.png"]["image/class/text"] == [b"dog"]


def test_an_update_writes_records_again_that_another_version_of_the_kind_made(folder, monkeypatch):
    place = BoxesKind.place

    def place_elsewhere(kind, *given):
        placed = place(kind, *given)
        return placed._replace(value={**placed.value, "xmin": [0.0] * len(placed.numbers)})

    with monkeypatch.context() as older:
        older.setattr(BoxesKind, "version", 1)
        older.setattr(BoxesKind, "place", place_elsewhere)
        convert(folder, [[CAT], [DOG]])
    # As by older releases, which knew one version alone.
    assert "target_version" not in read_dataset(f"{folder}/out").options
    with pytest.raises(OutputError, match="holds another dataset"):
        convert(folder, [[CAT], [DOG]])
    assert not convert(folder, [[CAT], [DOG]], update=True).already_complete
    fresh = convert(folder, [[CAT], [DOG]], out="fresh")
    assert fresh.fingerprint == read_dataset(f"{folder}/out").fingerprint
    assert read_files(folder / "out", "SHA256SUMS") == read_files(folder / "fresh", "SHA256SUMS")
    assert convert(folder, [[CAT], [DOG]], update=True).already_complete
