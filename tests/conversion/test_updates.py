"""An update gives the bytes of a conversion from nothing, and reads only what is new or changed."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
import random
import shutil
import struct
from dataclasses import replace
from itertools import repeat
from operator import itemgetter
from pathlib import Path

import pytest
from PIL import Image

import darkroom
from darkroom import storage
from darkroom.conversion import base
from darkroom.conversion.job import ConversionJob
from darkroom.conversion.planned_list import list_planned_rows
from darkroom.conversion.shards import encode
from darkroom.dataset.checksums import read_sums, write_sums
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.index import read_index
from darkroom.dataset.keys import make_key
from darkroom.dataset.opening import find_damaged
from darkroom.dataset.read_as import read_read_as
from darkroom.dataset.tfrecord import frame_record
from darkroom.decisions.lines import ACTIONS, Decision, format_decisions
from darkroom.errors import DataError, OutputError, RejectError, StorageError
from darkroom.manifest import changes, writer
from darkroom.options import ConversionOptions

from ..trees import read_files

SMALL = 2_000
EDITS = (
    *("add", "many", "remove", "relabel", "label", "move", "rename", "bytes", "size"),
    *("missing", "span"),
)


class World:
    """A folder with images and a list of them, which an edit script changes."""

    def __init__(self, folder, seed=0, has_spans=False):
        self.folder, self.random, self.has_spans = folder, random.Random(seed), has_spans
        self.rows, self.number = {}, 0
        folder.mkdir()

    def write_image(self, name):
        size = self.random.randrange(4, 20), self.random.randrange(4, 20)
        Image.new("RGB", size, tuple(self.random.randbytes(3))).save(self.folder / name)

    def write_other_bytes(self, name):
        """Changes an image, but not the size of its file."""
        path = self.folder / name
        if path.exists():
            size, state = path.stat().st_size, path.stat()
            while path.stat().st_size > size or path.stat().st_mtime_ns == state.st_mtime_ns:
                self.write_image(name)
            with path.open("ab") as file:  # what follows a PNG's end counts for nothing
                file.write(bytes(size - path.stat().st_size))

    def add(self, count=1, label=None, split=None):
        for _ in range(count):
            name = f"{self.number}.png"
            self.write_image(name)
            span = str(self.number // 30)
            self.rows[name] = [label or self.random.choice("abc"), split or "", span]
            self.number += 1

    def pick(self):
        return self.random.choice([*self.rows])

    def edit(self, kind=None):
        """Makes one edit, of a random kind if none is given."""
        kind = kind or self.random.choice(EDITS)
        name = self.pick()
        if kind == "add":
            self.add()
        elif kind == "many":
            self.add(self.random.randrange(5, 15))
        elif kind == "remove" and len(self.rows) > 20:
            del self.rows[name]
        elif kind == "relabel":
            self.rows[name][0] = self.random.choice("abc")
        elif kind == "label":
            self.rows[name][0] = f"n{self.number}"
        elif kind == "move":
            self.rows[name][1] = self.random.choice(["TRAIN", "TEST", ""])
        elif kind == "rename" and (self.folder / name).exists():
            os.rename(self.folder / name, self.folder / f"r{name}")
            self.rows[f"r{name}"] = self.rows.pop(name)
        elif kind == "bytes":
            self.write_image(name)
        elif kind == "size":
            self.write_other_bytes(name)
        elif kind == "span":
            self.rows[name][2] = str(self.random.randrange(4))
        elif kind == "missing":
            (self.folder / name).unlink(missing_ok=True)
        return kind

    def write_list(self):
        names = sorted(self.rows)
        self.random.shuffle(names)
        path = self.folder / "list.csv"
        columns = ["label", "split", "span"][: 3 if self.has_spans else 2]
        lines = [",".join([name, *self.rows[name][: len(columns)]]) + "\n" for name in names]
        path.write_text(",".join(["image_uri", *columns]) + "\n" + "".join(lines))
        return path


def convert(source, output, **more):
    return darkroom.convert(source, output, max_rejects=0.9, **{"shard_bytes": SMALL, **more})


def read_shards(root):
    splits = json.loads((root / "dataset.json").read_text())["splits"]
    return {
        shard["file"]: shard["sha256"] for split in splits.values() for shard in split["shards"]
    }


def read_rows(root):
    return darkroom.dataset.index.read_index(str(root / "index")).to_pylist()


def decide(world, path, count=2):
    """Writes decisions about images of a world, of each action as many."""
    known = [name for name in world.rows if (world.folder / name).exists()]
    names = iter(world.random.sample(known, min(5 * count, len(known))))
    values = {"relabel": {"label": "z"}, "move": {"split": "test"}}
    images = {
        name: (make_key(name), hashlib.sha256((world.folder / name).read_bytes()).hexdigest())
        for name in known
    }
    decisions = []
    for action in (*ACTIONS, "pair"):
        for name in itertools.islice(names, count):
            key, sha256 = images[name]
            other = dict(zip(("other_key", "other_sha256"), images[known[0]], strict=True))
            given = {"key": key, "sha256": sha256, **values.get(action, {})}
            given |= {"action": "ignore", **other} if action == "pair" else {"action": action}
            decisions.append(Decision(**given))
    path.write_bytes(format_decisions(decisions))
    return str(path)


def list_decided(root):
    """What decisions can change of each row."""
    return {row["key"]: (row["split"], row["label"], row.get("ignored")) for row in read_rows(root)}


def check_like_from_nothing(root, scratch, **more):
    """Checks that the exported list, converted from nothing, gives the same shards and labels."""
    planned, again = scratch / "planned.jsonl", scratch / "again"
    list_planned_rows(root, planned, overwrite=True)
    shutil.rmtree(again, ignore_errors=True)
    options = ConversionOptions(shard_bytes=SMALL, **more)
    darkroom.convert(
        planned, again, label_map=root / "labels.txt", max_rejects=0.9, options=options
    )
    assert read_shards(again) == read_shards(root)
    assert (again / "labels.txt").read_bytes() == (root / "labels.txt").read_bytes()
    # A pair of which the update dropped one image is gone for the list.
    before, after = list_decided(root), list_decided(again)
    assert {key: each[:2] for key, each in after.items()} == {
        key: each[:2] for key, each in before.items()
    }


@pytest.fixture
def count_reads(monkeypatch):
    """The images that were read."""
    read = []
    original = encode.ImageReaders._read

    def note(self, row):
        read.append(os.path.basename(row.uri))
        return original(self, row)

    monkeypatch.setattr(encode.ImageReaders, "_read", note)
    return read


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world of 40 images, and its dataset in the folder `records` beside them."""
    folder = tmp_path_factory.mktemp("made")
    world = World(folder / "images")
    world.add(40)
    convert(world.write_list(), folder / "records", update=True)
    return world


@pytest.fixture
def world(made, tmp_path):
    """A copy of it in `tmp_path`."""
    shutil.copytree(made.folder.parent, tmp_path, dirs_exist_ok=True)
    copied = copy.deepcopy(made)
    copied.folder = tmp_path / "images"
    return copied


OPTIONS = (
    {},
    {"resize_short_side": 6, "seed": 7},
    {"encoding": "raw", "compression": "gzip"},
    {"num_shards": 5, "image_check": "header"},
)


def run_script(folder, seed):
    """Runs a random script of edits."""
    chosen = random.Random(seed)
    has_spans = chosen.random() < 0.4
    world = World(folder / "images", seed, has_spans)
    world.add(45)
    root, made_with = folder / "records", chosen.choice(OPTIONS)
    for step in range(4):
        given = {}
        if step and chosen.random() < 0.5:
            given["decisions"] = decide(world, folder / "decisions.jsonl")
        edits = [world.edit() for _ in range(world.random.randrange(1, 6) if step else 0)]
        if chosen.random() < 0.1:
            made_with = chosen.choice(OPTIONS)
        update = {"allow_removals": True, "merge_spans": chosen.random() < 0.1, "update": True}
        spans = {"span_column": "span"} if has_spans else {}
        result = convert(world.write_list(), root, **made_with, **update, **spans, **given)
        assert result.rows == len(world.rows), edits
        check_like_from_nothing(root, folder, **made_with, **given)
        assert darkroom.verify(root).is_sound, edits


@pytest.mark.parametrize(("has_spans", "made_with"), [(False, OPTIONS[2]), (True, OPTIONS[3])])
def test_edits_give_the_shards_of_a_conversion_from_nothing(tmp_path, has_spans, made_with):
    world, root = World(tmp_path / "images", has_spans=has_spans), tmp_path / "records"
    world.add(25)
    spans = {"span_column": "span"} if has_spans else {}
    given = {}
    for edits in ((), EDITS):
        for kind in edits:
            given["decisions"] = given.get("decisions") or decide(world, tmp_path / "decisions")
            world.edit(kind)
        result = convert(world.write_list(), root, **made_with, **spans, **given, update=True)
        assert result.rows == len(world.rows)
    assert sum(result.decisions["counts"].values()) == 10
    check_like_from_nothing(root, tmp_path, **made_with, **given)
    assert darkroom.verify(root).is_sound


def test_decisions_give_the_bytes_of_a_conversion_from_nothing(
    tmp_path, world, count_reads, monkeypatch
):
    root, again, source = tmp_path / "records", tmp_path / "again", world.write_list()
    before = list_decided(root)
    decisions = decide(world, tmp_path / "decisions.jsonl")
    hashed = []
    monkeypatch.setattr(changes, "hash_files", lambda files: hashed.extend(files) or [])
    count_reads.clear()
    result = convert(source, root, update=True, decisions=decisions)
    # The base knows all images, and no other record is made again.
    assert (count_reads, hashed) == ([], [])
    monkeypatch.undo()
    convert(source, again, decisions=decisions)
    assert read_files(again) == read_files(root)
    committed = json.loads((root / "dataset.json").read_text())["decisions"]
    assert committed == {
        "sha256": hashlib.sha256(Path(decisions).read_bytes()).hexdigest(),
        "counts": {"drop": 2, "relabel": 2, "move": 2, "ignore": 4, "changed": 0, "gone": 0},
    }
    assert (result.excluded, result.labels) == (2, ("a", "b", "c", "z"))
    assert result.to_dict()["decisions"] == committed
    after = list_decided(root)
    assert len(before.keys() - after.keys()) == 2
    assert sum(after[key][:2] != before[key][:2] for key in after) == 4
    assert sum(ignored is not None for _, _, ignored in after.values()) == 4


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 400))
def test_many_edits_give_the_shards_of_a_conversion_from_nothing(tmp_path, seed):
    run_script(tmp_path, seed)


def test_merged_spans_are_one(tmp_path, world, count_reads):
    root = tmp_path / "records"
    world.add(10)
    convert(world.write_list(), root, update=True)
    assert {row["span"] for row in read_rows(root)} == {0, 1}
    count_reads.clear()
    convert(world.write_list(), root, update=True, merge_spans=True)
    assert {row["span"] for row in read_rows(root)} == {0}
    assert not count_reads


def test_a_list_that_only_got_another_number_is_of_another_span(tmp_path, world, count_reads):
    root, folder = tmp_path / "by week", world.folder
    world.write_list().rename(folder / "week-3.csv")
    convert(folder / "week-{SPAN}.csv", root, update=True)
    (folder / "week-3.csv").rename(folder / "week-7.csv")
    count_reads.clear()
    convert(folder / "week-{SPAN}.csv", root, update=True)
    assert {row["span"] for row in read_rows(root)} == {7}
    assert not count_reads


def test_only_new_and_changed_images_are_read(tmp_path, world, count_reads):
    root = tmp_path / "records"
    before = {os.stat(root / file).st_ino for file in read_shards(root)}
    count_reads.clear()
    world.add(2)
    world.write_image("7.png")
    world.rows["9.png"][0] = "z"
    convert(world.write_list(), root, update=True)
    assert sorted(count_reads) == ["40.png", "41.png", "7.png"]
    after = {os.stat(root / file).st_ino for file in read_shards(root)}
    # Two images changed a shard each, and the new span has others.
    assert len(before - after) == 2
    check_like_from_nothing(root, tmp_path)


def test_the_same_list_writes_nothing(tmp_path, count_reads):
    world = World(tmp_path / "images")
    world.add(30)
    root, source = tmp_path / "records", world.write_list()
    convert(source, root, update=True)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    count_reads.clear()
    assert convert(source, root, update=True).already_complete
    assert not count_reads
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("repeats", [0, 1])
def test_rows_of_the_same_list_are_compared_only_where_some_were_left_out(
    tmp_path, monkeypatch, repeats
):
    world = World(tmp_path / "images")
    world.add(30)
    root, source = tmp_path / "records", world.write_list()
    source.write_text(source.read_text() + source.read_text().splitlines()[-1] * repeats)
    first = convert(source, root, update=True)
    compared = []
    real = writer.complete
    monkeypatch.setattr(writer, "complete", lambda *a: compared.append(1) or real(*a))
    again = convert(source, root, update=True)
    assert again == replace(first, already_complete=True)
    assert (again.deduplicated, len(compared)) == (repeats, repeats)
    # What is not in the source may ask for more than it.
    assert not convert(source, root, update=True, label_map=["c", "b", "a"]).already_complete
    assert len(compared) == repeats + 1


def test_an_update_of_nothing_is_a_first_run_and_says_so(tmp_path, world, monkeypatch):
    root = tmp_path / "recrods"
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    for _ in range(2):
        assert convert(world.write_list(), root, update=True, append=True).written == 40
    assert notes == [f"There is no dataset in {root} yet: this is the first run."]


def test_a_list_that_lacks_most_of_a_dataset_is_refused(tmp_path, world, monkeypatch):
    root = tmp_path / "records"
    before = read_shards(root)
    for name in list(world.rows)[:5]:
        del world.rows[name]
    with pytest.raises(DataError, match=r"5 of 40 images of .* are not in the list") as caught:
        convert(world.write_list(), root, update=True)
    assert "--allow-removals" in caught.value.hint
    assert read_shards(root) == before
    notes: list[str] = []
    monkeypatch.setattr("darkroom.runtime.progress.note", notes.append)
    for _ in range(2):
        result = convert(world.write_list(), root, update=True, allow_removals=True)
        assert result.written == 35
    # Of the second one, which removes nothing, that is not said.
    assert [each for each in notes if "Removed" in each] == ["Removed: 5 images."]


def test_another_output_takes_from_a_base(tmp_path, world, count_reads):
    old, new = tmp_path / "records", tmp_path / "new"
    before = read_shards(old)
    world.add(1)
    count_reads.clear()
    convert(world.write_list(), new, base=old)
    assert count_reads == ["40.png"]
    assert read_shards(old) == before
    check_like_from_nothing(new, tmp_path)


def test_a_shard_may_lose_all_of_its_records(tmp_path):
    world = World(tmp_path / "images")
    world.add(2)
    root, source = tmp_path / "records", world.write_list()
    convert(source, root, num_shards={"train": 2}, split_ratios="1,0,0")
    (world.folder / "0.png").write_text("not an image")
    assert (
        convert(world.write_list(), root, update=True, num_shards=2, split_ratios="1,0,0").written
        == 1
    )
    assert darkroom.verify(root).is_sound


def test_a_dataset_that_cannot_be_exchanged_stays(tmp_path, world):
    root = tmp_path / "records"
    (root / "README").write_text("mine")
    before = read_shards(root)
    world.add(1)
    with pytest.raises(OutputError, match="cannot be replaced in one step") as caught:
        convert(world.write_list(), root, update=True)
    assert "--base" in caught.value.hint
    assert read_shards(root) == before
    assert darkroom.verify(root).is_sound
    assert convert(world.write_list(), tmp_path / "new", base=str(root)).written == 41


# An output is held when the work begins; a base elsewhere never is.
# Without a new image the list is that of the dataset: no rows are planned.
@pytest.mark.parametrize(
    ("where", "moment", "added"),
    [("update", "_plan", 1), ("update", "_plan", 0), ("base", "_begin", 1)],
)
def test_a_base_that_another_run_replaces_meanwhile_is_never_mixed_in(
    tmp_path, world, monkeypatch, where, moment, added
):
    root = tmp_path / "records"
    original, before = getattr(ConversionJob, moment), []

    def replace_meanwhile(job, *arguments):
        """Runs another update, which gives images other labels and places."""
        found = original(job, *arguments)
        if not before:
            before.append(None)
            rows = {name: list(row) for name, row in world.rows.items()}
            for name in sorted(rows)[:3]:
                del world.rows[name]
            for name in sorted(world.rows)[::2]:
                world.rows[name][0] = "other"
            convert(world.write_list(), root, update=True)
            before[:] = [read_shards(root)]
            world.rows = rows
        return found

    world.add(added)
    source = shutil.copy(world.write_list(), world.folder / "given.csv")
    if not added:
        convert(source, root, update=True)
    monkeypatch.setattr(ConversionJob, moment, replace_meanwhile)
    output = {"update": root, "base": tmp_path / "new"}[where]
    given = {"update": True} if where == "update" else {"base": str(root)}
    with pytest.raises(StorageError, match="another dataset has replaced the one"):
        convert(source, output, **given)
    assert [read_shards(root)] == before
    assert darkroom.verify(root).is_sound
    assert not (tmp_path / "new" / "dataset.json").exists()
    assert convert(source, output, **given).written == 40 + added


def test_a_damaged_record_is_made_from_its_source(tmp_path, world, count_reads):
    root = tmp_path / "records"
    rows = read_rows(root)
    row = next(each for each in rows if each["split"] == "train")
    path = root / next(file for file in read_shards(root) if "train" in file)
    data = bytearray(path.read_bytes())
    data[row["offset"] + row["length"] - 10] ^= 1
    path.write_bytes(data)
    # A neighbour changes, so the shard is written again.
    other = next(each for each in rows if each["split"] == "train" and each["position"] == 1)
    world.rows[os.path.basename(other["uri"])][0] = "z"
    count_reads.clear()
    convert(world.write_list(), root, update=True)
    assert count_reads == [os.path.basename(row["uri"])]
    check_like_from_nothing(root, tmp_path)


def flip(data):
    """Damages the record in the middle of a shard."""
    data[len(data) // 2] ^= 1


def forge(data):
    """Changes the image of the first record, whose checksums are right again."""
    [length] = struct.unpack_from("<Q", data)
    record = bytearray(data[12 : 12 + length])
    record[record.index(b"IDAT") + 9] ^= 1
    data[: length + 16] = b"".join(frame_record(bytes(record)))


def damage_shards(root, damage=flip, age=0):
    """Damages each second shard, as if so many seconds before its commit."""
    paths = [root / file for file in read_shards(root)][::2]
    for path in paths:
        data = bytearray(path.read_bytes())
        damage(data)
        path.write_bytes(data)
        if age:
            os.utime(path, (0, os.stat(root / "dataset.json").st_mtime - age))
    return paths


@pytest.mark.parametrize(
    ("damage", "given"),
    [
        (flip, {}),
        (flip, {"update": True}),
        (flip, {"base": "records"}),
        (forge, {"update": True, "recheck": 1.0}),
    ],
)
def test_damaged_shards_are_made_again(tmp_path, world, count_reads, damage, given):
    source, root = world.write_list(), tmp_path / "records"
    convert(source, root, update=True)
    whole = read_files(root)
    damaged = damage_shards(root, damage, age=60 if "recheck" in given else 0)
    if "base" in given:
        root, given = tmp_path / "new", {"base": str(root)}
    count_reads.clear()
    # Its list is the same, so that the commands would say "already complete".
    assert not convert(source, root, **given).already_complete
    assert read_files(root) == whole
    # One record of each is damaged, and the images of the others have their hashes.
    assert len(count_reads) == len(damaged)
    assert darkroom.verify(root).is_sound
    assert convert(source, root, **given).already_complete


def test_a_shard_is_read_again_where_it_is_later_than_its_commit(tmp_path, world, monkeypatch):
    source, root = world.write_list(), tmp_path / "records"
    convert(source, root, update=True)
    shards, read, real = {*read_shards(root)}, [], storage.hash_file
    monkeypatch.setattr(storage, "hash_file", lambda path: read.append(path) or real(path))

    def list_read(**given):
        read.clear()
        assert convert(source, root, **given).already_complete
        names = map(os.path.relpath, read, repeat(root))
        return {name for name in names if name.startswith("Split-")}

    assert list_read() == list_read(update=True) == set()
    assert list_read(recheck=1.0) == shards
    assert list_read(recheck=0.5) == list_read(recheck=0.5) <= shards
    read.clear()
    for seed in range(20):
        find_damaged(str(root), read_dataset(str(root)), 0.5, f"{seed}")
    assert {*map(read.count, read)}.isdisjoint((0, 20))
    touched = {min(shards), max(shards)}
    for name in touched:
        os.utime(root / name)
    assert list_read() == touched
    world.add(1)
    read.clear()
    convert(world.write_list(), root, update=True)
    assert touched < {os.path.relpath(path, root) for path in read}
    # The new commit is later than all of them.
    assert list_read() == set()


@pytest.mark.crosses
@pytest.mark.parametrize("damage", [os.unlink, lambda path: os.truncate(path, 900)])
def test_a_damaged_index_of_the_base_is_named(tmp_path, world, damage):
    root, source = tmp_path / "records", world.write_list()
    damage(sorted((root / "index").iterdir())[0])
    with pytest.raises(DataError, match=r"index-00000-of-\d+\.parquet"):
        convert(source, tmp_path / "new", base=str(root))
    with pytest.raises(DataError, match=r"index.* is"):
        darkroom.diff(root, root)


def test_other_options_read_every_image(tmp_path, world, count_reads):
    convert(world.write_list(), tmp_path / "records", update=True, resize_short_side=6)
    assert len(count_reads) == 40


def test_new_rows_alone_are_appended(tmp_path, count_reads):
    world = World(tmp_path / "images")
    world.add(40)
    root = tmp_path / "records"
    (tmp_path / "images" / "5.png").write_text("not an image")
    convert(world.write_list(), root, update=True)
    old = dict(world.rows)
    world.rows.clear()
    world.add(2, label="A")
    count_reads.clear()
    result = convert(world.write_list(), root, update=True, append=True)
    assert (result.rows, result.written) == (42, 41)
    assert [(each.name, "'A', 'a'" in each.text) for each in result.read_as.doubts] == [
        ("similar_labels", True)
    ]
    # The one that was rejected is tried again.
    assert sorted(count_reads) == ["40.png", "41.png", "5.png"]
    world.rows = {**old, **world.rows}
    assert convert(world.write_list(), root, update=True).written == 41
    check_like_from_nothing(root, tmp_path)


def test_what_an_older_version_rejected_is_tried_again(tmp_path, monkeypatch, count_reads):
    world, root = World(tmp_path / "images"), tmp_path / "records"
    world.add(40)
    source = world.write_list()
    rejected, read = RejectError("undecodable", "decoder error -2"), encode.ImageReaders._read
    with monkeypatch.context() as patch:
        patch.setattr("darkroom.dataset.index.hash_code", lambda: "older")
        patch.setattr(
            encode.ImageReaders,
            "_read",
            lambda self, row: rejected if row.uri.endswith("/7.png") else read(self, row),
        )
        assert convert(source, root).rejected == {"undecodable": 1}
    count_reads.clear()
    # Without an update, a finished dataset stays as it is.
    assert convert(source, root).already_complete
    assert convert(source, root, update=True).written == 40
    assert convert(source, root, update=True).already_complete
    assert count_reads == ["7.png"]
    check_like_from_nothing(root, tmp_path)


def test_what_keeps_its_split_is_not_said_to_be_split_by_hash(tmp_path):
    world, base = World(tmp_path / "images"), tmp_path / "base"
    world.add(9)
    source = world.folder / "list.csv"

    def say_split(rows, output, **more):
        source.write_text("\n".join(rows))
        found = convert(source, output, **more)
        return dict(read_read_as(found.output_dir).to_rows())["split"]

    rows = [f"{number}.png,a" for number in range(9)]
    own = [f"{row},{('eval', 'train')[n % 2]}" for n, row in enumerate(rows[:7])]
    assert say_split(["image_uri,label,split", *own], base) == "column split"
    given = {"output": tmp_path / "next", "base": base, "overwrite": True}
    kept = "7 rows as in the dataset that is updated"
    assert say_split(["image_uri,label", *rows[:7]], **given) == kept
    new = "; 1 row by hash, 80/10/10"
    assert say_split(["image_uri,label", *rows[:8]], **given) == kept + new
    some = [*own[:2], *(f"{row}," for row in rows[2:8]), "8.png,a,eval"]
    kept = "5 rows without one as in the dataset that is updated"
    new = "; 1 row without one by hash, 80/10/10"
    found = say_split(["image_uri,label,split", *some], **given)
    assert found == f"column split; {kept}{new}"
    # What is appended is told alone.
    found = say_split(["image_uri,label", rows[7]], base, update=True, append=True)
    assert found == "by hash, 80/10/10"


def test_columns_with_the_names_of_the_lists_of_darkroom_are_appended(tmp_path):
    world, root = World(tmp_path / "images"), tmp_path / "records"
    names = {"image_uri": "image", "label": "string_label", "phase": "split"}
    names |= {"split": "string", "id": "integer", "span": "integer"}
    for update in (False, True):
        world.add(4, label="a")
        lines = [f"{n}.png,a,train,old,{n},{n + 9}\n" for n in range(4 * update, world.number)]
        source = tmp_path / "images" / "list.csv"
        source.write_text(",".join(names) + "\n" + "".join(lines))
        convert(source, root, columns=names, update=update, append=update)
    found = {row["id"]: row["extra"] for row in read_rows(root)}
    assert found == {f"{n}.png": {"split": "old", "id": n, "span": n + 9} for n in range(8)}


@pytest.mark.parametrize("given", [{}, {"span_column": "span"}, {"label_separator": ";"}])
def test_an_appended_list_says_the_whole_of_each_image_that_it_names(tmp_path, count_reads, given):
    world, root = World(tmp_path / "images", has_spans="span_column" in given), tmp_path / "records"
    world.add(20, label="a")
    convert(world.write_list(), root, **given)
    old = {row["id"]: row for row in read_rows(root)}
    split = old["3.png"]["split"]
    world.rows = {
        "0.png": ["a", "", "9"],
        f"{tmp_path}/images/1.png": ["a", "", "9"],
        "2.png": ["b", "", "9"],
        "3.png": ["a", "test" if split == "train" else "train", "0"],
        "4.png": ["a", old["4.png"]["split"], "0"],
        # Two rows that contradict each other, where an image has one label: it stays as it is.
        "5.png": ["b", "", "0"],
        "./5.png": ["c", "", "0"],
    }
    world.add(1, label="a")
    # Two new rows that contradict each other.
    world.rows["./20.png"] = ["a", "test", "0"]
    world.rows["20.png"][1] = "train"
    world.add(1, label="a")
    count_reads.clear()
    result = convert(world.write_list(), root, update=True, append=True, **given)
    assert count_reads == ["21.png"]
    rows = {row["id"]: row for row in read_rows(root)}
    assert set(rows) == {*old, "21.png"}
    places = itemgetter("uri", "split", "span", "sha256", "label")
    is_joined = "label_separator" in given
    said = {id: dict(row) for id, row in old.items()}
    said["2.png"]["label"] = ["b"] if is_joined else "b"
    said["3.png"]["split"] = rows["3.png"]["split"]
    assert rows["3.png"]["split"] == world.rows["3.png"][1]
    if is_joined:
        said["5.png"]["label"] = ["b", "c"]
    if "span_column" in given:
        said |= {id: {**said[id], "span": 9} for id in ("0.png", "1.png", "2.png")}
    assert {id: places(rows[id]) for id in old} == {id: places(row) for id, row in said.items()}
    rejects = map(json.loads, Path(result.rejects_path).read_text().splitlines())
    conflicts = ["20.png"] * 2 if is_joined else ["20.png"] * 2 + ["5.png"] * 2
    assert sorted(each["id"] for each in rejects) == conflicts
    assert (result.rows, result.written, result.deduplicated) == (
        23 + (0 if is_joined else 2) + is_joined,
        21,
        is_joined,
    )
    assert result.replaced == 2 + is_joined
    # Again, all rows are known.
    source = tmp_path / "images" / "list.csv"
    assert convert(source, root, update=True, append=True, **given).already_complete


KINDS = {
    "label": ({"label": "string_label"}, lambda n: {"label": "ab"[n % 2]}),
    "labels": ({"label": "labels"}, lambda n: {"label": ["c", "ab"[n % 2]]}),
    "numbers": ({"x": "target", "y": "target"}, lambda n: {"x": n / 2, "y": 0.1}),
    "boxes": ({"objects": "objects"}, lambda n: {"objects": list_objects(n)}),
}


def list_objects(number):
    """Two equal objects, one at 3 that is outside, and one at 4 without an area."""
    found = [{"label": "ab"[number % 2], "box": [0, 1, 3, 4], "id": id} for id in (1, 2)]
    others = {3: [50, 50, 60, 60], 4: [2, 2, 2, 2]}
    return [*found, *({"label": "a", "box": box} for at, box in others.items() if at == number % 8)]


@pytest.mark.parametrize(
    "kind",
    [
        "label",
        "boxes",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("labels", "numbers")),
    ],
)
def test_a_list_that_is_appended_again_gives_the_same_dataset(tmp_path, kind):
    world, root = World(tmp_path / "images"), tmp_path / "records"
    world.add(17)
    columns, label = KINDS[kind]
    given = {"columns": {"split": "split", "image_uri": "image", **columns}}

    def write(*rows):
        lines = [{"split": "", "image_uri": f"{n}.png", **label(n), **more} for n, more in rows]
        path = world.folder / "list.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return path

    def append(*rows):
        return convert(write(*rows), root, update=True, append=True, **given)

    for number in (1, 9):
        (world.folder / f"{number}.png").write_text("not an image")
    convert(write(*((n, {}) for n in range(8))), root, **given)
    # New, the same twice, of the dataset, two rejected by their images, two by their rows.
    new = [(n, {}) for n in (*range(8, 16), 10, 3, 1)]
    new += [(5, {"image_uri": ""}), (15, {"split": "test"}), (15, {"split": "train"})]
    first = append(*new)
    assert (first.rows, first.written, first.num_rejected, first.deduplicated) == (20, 13, 6, 1)
    before, labels = read_files(root), {row["id"]: row["label"] for row in read_rows(root)}
    assert append(*new).already_complete
    assert read_files(root) == before
    # Images that the dataset has are not counted again, nor their objects.
    more = append(*new, (16, {}))
    assert (more.rows, more.written, more.num_rejected, more.deduplicated) == (21, 14, 6, 1)
    assert (first.replaced, more.replaced) == (0, 0)
    assert {row["id"]: row["label"] for row in read_rows(root) if row["id"] != "16.png"} == labels
    if kind == "boxes":
        lost = {"bad_box": 2, "outside_image": 2}
        assert first.rejected_objects.items() >= lost.items()
        assert more.rejected_objects == first.rejected_objects
        # Image 16 has two equal ones.
        new_objects = replace(first.objects, written=first.objects.written + 1)
        assert more.objects == replace(new_objects, merged=first.objects.merged + 1)
    # An image that changed is noticed, also one that was rejected.
    for number, written in [(10, 14), (9, 15)] if kind == "label" else ():
        world.write_image(f"{number}.png")
        changed = append(*new, (16, {}))
        assert (changed.already_complete, changed.written) == (False, written)
    assert darkroom.verify(root).is_sound


def test_images_keep_their_keys_when_lists_of_other_folders_come_and_go(tmp_path, count_reads):
    """Each folder has images of the same names."""

    def write(day):
        world = World(tmp_path / f"day{day}", seed=day)
        world.add(6)
        world.write_list()

    def list_ids(root):
        rows = read_index(f"{root}/index", ["uri", "id"]).to_pylist()
        return {row["uri"].removeprefix(f"{tmp_path}/"): row["id"] for row in rows}

    root, lists = tmp_path / "out", tmp_path / "day*" / "list.csv"
    write(1)
    convert(lists, root)
    for day in (2, 3):
        write(day)
        count_reads.clear()
        convert(lists, root, update=True)
        assert len(count_reads) == 6
    names = [f"{number}.png" for number in range(6)]
    expected = {f"day{day}/{name}": f"day{day}/{name}" for day in (2, 3) for name in names}
    expected |= {f"day1/{name}": name for name in names}
    assert list_ids(root) == expected
    # One list alone tells its images apart without their folder.
    count_reads.clear()
    convert(tmp_path / "day3" / "list.csv", root, update=True, allow_removals=True)
    assert list_ids(root) == {f"day3/{name}": f"day3/{name}" for name in names}
    convert(tmp_path / "day2" / "list.csv", root, update=True, append=True)
    convert(tmp_path / "day1" / "list.csv", root, update=True, append=True)
    assert len(count_reads) == 12
    assert {*list_ids(root).values()} == {
        *(f"{day}{name}" for day in ("day3/", "", "day1/") for name in names)
    }


def test_one_update_meets_images_that_share_an_id_and_one_that_was_found_elsewhere(tmp_path):
    for folder, names in (("a", "12"), ("b", "1"), ("c", "3")):
        (tmp_path / folder).mkdir()
        for name in names:
            color = ord(folder), int(name), 0
            Image.new("RGB", (9, 9), color).save(tmp_path / folder / f"{name}.png")
    root = tmp_path / "records"
    for pattern, rows in (
        ("c/list.csv", {"c": ["3.png"]}),
        ("[ab]/list.csv", {"a": ["1.png", "2.png", "../c/3.png"], "b": ["1.png"]}),
    ):
        for folder, names in rows.items():
            lines = ["image_uri,label", *(f"{name},x" for name in names)]
            (tmp_path / folder / "list.csv").write_text("\n".join(lines) + "\n")
        convert(tmp_path / pattern, root, update=True)
    ids = read_index(f"{root}/index", ["id"])["id"].to_pylist()
    assert sorted(ids) == ["2.png", "3.png", "a/1.png", "b/1.png"]


def test_spans_never_share_a_shard(tmp_path):
    world = World(tmp_path / "images")
    world.add(40)
    source = tmp_path / "images" / "spans.csv"
    lines = [
        f"{name},{label},{n % 3 + 5}\n" for n, (name, (label, *_)) in enumerate(world.rows.items())
    ]
    source.write_text(
        "image_uri,label,week\n"
        + "".join(lines)
        + f"0.png,{world.rows['0.png'][0]},9\nx.png,a,soon\ny.png,a,\n"
    )
    root = tmp_path / "records"
    result = convert(source, root, span_column="week")
    rows = read_rows(root)
    shards = {}
    for row in rows:
        shards.setdefault((row["split"], row["shard"]), set()).add(row["span"])
    assert {len(spans) for spans in shards.values()} == {1}
    assert {row["span"] for row in rows} == {5, 6, 7}
    order = [spans for (split, _), spans in sorted(shards.items()) if split == "train"]
    assert order == sorted(order, key=min)
    # An image of two spans is that of the first one.
    assert (result.written, result.deduplicated, result.rejected) == (40, 1, {"bad_value": 2})
    check_like_from_nothing(root, tmp_path)


def test_the_name_of_a_list_says_its_span(tmp_path):
    world = World(tmp_path / "images")
    world.add(20)
    for span in (3, 12):
        names = [*world.rows][span : span + 6]
        lines = "".join(f"{name},a\n" for name in names)
        (world.folder / f"week-{span}.csv").write_text("image_uri,label\n" + lines)
    root = tmp_path / "records"
    convert(str(world.folder / "week-{SPAN}.csv"), root)
    rows = read_rows(root)
    assert {int(row["id"][:-4]): row["span"] for row in rows} == {
        **dict.fromkeys(range(3, 9), 3),
        **dict.fromkeys(range(12, 18), 12),
    }
    (world.folder / "week-x.csv").write_text("image_uri,label\na.png,a\n")
    with pytest.raises(DataError, match=r"week-x\.csv has no number where"):
        convert(str(world.folder / "week-{SPAN}.csv"), tmp_path / "other")


def test_a_source_that_lies_is_found(tmp_path):
    world = World(tmp_path / "images")
    world.add(5)
    root = tmp_path / "records"
    convert(world.write_list(), root, update=True)
    path = world.folder / "3.png"
    state, data = path.stat(), bytearray(path.read_bytes())
    Image.open(path).save(tmp_path / "other.png")
    data[-20] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    world.add(1)
    with pytest.raises(DataError, match=r"same size and time, but other bytes: .*3\.png"):
        convert(world.write_list(), root, update=True, recheck=1.0)


def test_a_doubt_that_is_accepted_later_leaves_the_dataset(tmp_path):
    world, root = World(tmp_path / "images"), tmp_path / "records"
    world.add(2, label="a")
    source = world.write_list()
    convert(source, root)
    assert [doubt.name for doubt in read_read_as(str(root)).doubts] == ["one_class"]
    result = convert(source, root, accept="one_class")
    assert result.already_complete
    assert read_read_as(str(root)) == result.read_as
    assert result.read_as.doubts == ()
    assert darkroom.verify(root).is_sound


def test_a_dataset_without_the_sidecar_of_its_source_is_complete(
    tmp_path, world, monkeypatch, count_reads
):
    """Version 0.2.0 wrote none."""
    source, root = world.write_list(), tmp_path / "records"
    convert(source, root, update=True)
    (root / "read-as.json").unlink()
    sums = read_sums(str(root))
    del sums["read-as.json"]
    write_sums(str(root), sums)
    old = read_files(root)
    assert "read-as.json" not in old
    again = convert(source, root, update=True)
    assert (again.already_complete, again.read_as.form) == (True, "CSV")
    monkeypatch.setattr("darkroom.conversion.base.hash_code", lambda: "other")
    compared, real = [], base._hash_image
    monkeypatch.setattr(base, "_hash_image", lambda *a: compared.append(1) or real(*a))
    count_reads.clear()
    assert convert(source, root).already_complete
    assert (count_reads, compared, read_files(root)) == ([], [], old)
    world.add(1)
    convert(world.write_list(), root, update=True)
    assert (count_reads, len(compared)) == (["40.png"], 40)
    assert (root / "read-as.json").exists()


@pytest.mark.parametrize("makes_others", [False, True])
def test_other_code_takes_what_it_would_make_again(
    tmp_path, world, monkeypatch, count_reads, makes_others
):
    root = tmp_path / "records"
    monkeypatch.setattr("darkroom.conversion.base.hash_code", lambda: "other")
    if makes_others:
        monkeypatch.setattr("darkroom.conversion.base._hash_image", lambda *_: ("0", "0"))
    world.add(1)
    count_reads.clear()
    convert(world.write_list(), root, update=True)
    assert len(count_reads) == (41 if makes_others else 1)
