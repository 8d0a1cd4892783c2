"""In a store, too: darkroom deletes only what it can prove it wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

import darkroom
from darkroom import storage
from darkroom.cli import main
from darkroom.errors import UsageError
from darkroom.manifest.writer import write_manifest

from ..trees import read_files
from .test_flows import NUM_IMAGES, make_image, write_source

pytestmark = pytest.mark.heavy

SHARDS = {"train": 2, "test": 1}


def read_objects(root: str) -> dict[str, bytes]:
    """Returns all objects below a path, including hidden ones."""
    return {name: storage.read_bytes(f"{root}/{name}") for name in storage.look_up_files(root)}


def read_result(root: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Returns the objects of the dataset of an output, and all others in it."""
    found = read_objects(root)
    data = json.loads(found.pop("dataset.json"))["dataset"]
    assert json.loads(found.pop(".attempt/current.json"))["token"] == data[-8:]
    own = {name: found.pop(name) for name in list(found) if name.startswith(f"{data}/")}
    return {name.removeprefix(f"{data}/"): each for name, each in own.items()}, found


@pytest.fixture
def source(store) -> str:
    """A list of images in the store."""
    return write_source(store[1])


@pytest.fixture
def expected(source: str, tmp_path: Path) -> dict[str, bytes]:
    """The files that a conversion with seed 3 writes."""
    darkroom.convert(source, tmp_path / "local", num_shards=1, seed=3)
    return read_files(tmp_path / "local")


@pytest.mark.parametrize("store", [pytest.param("s3", marks=pytest.mark.long), "gs"], indirect=True)
def test_foreign_objects_stop_the_run_before_one_is_changed(store, source, capsys):
    root = f"{store[1]}/data"
    darkroom.convert(source, root, num_shards=SHARDS)
    names = ["Split-mine/thesis.txt", "index", "index/.hidden", "index/a/notes.txt", ".attempt/x"]
    names += ["Split-train/data_tfrecord-00007-of-00009", ".dataflow/x", ".part-x"]
    for name in names:
        storage.write_bytes(f"{root}/{name}", b"mine")
    storage.write_bytes(f"{root}/labels.txt", b"mine")
    before = read_objects(store[1])
    assert main(["convert", source, "--output-dir", root, "--json", "--overwrite"]) == 4
    shown = ", ".join(sorted([*names, "labels.txt"]))
    printed = capsys.readouterr().out
    assert f"9 files that darkroom did not write, or that changed since: {shown}." in printed
    assert read_objects(store[1]) == before


@pytest.mark.long
def test_a_dataset_is_replaced(store, source, expected):
    root = f"{store[1]}/data"
    darkroom.convert(source, root, num_shards=SHARDS)
    own = {"README": b"mine", "images/1.jpg": b"mine"}
    for name, data in own.items():
        storage.write_bytes(f"{root}/{name}", data)
    # Consoles make such empty objects for folders.
    storage.write_bytes(f"{root}/Split-old/", b"")
    darkroom.convert(source, root, num_shards=1, seed=3, overwrite=True)
    assert read_result(root) == (expected, own)
    assert darkroom.verify(root).findings == ()
    assert storage.list_folder(f"{root}/Split-old") == []


@pytest.fixture(scope="module")
def made() -> dict[str, dict[str, bytes]]:
    """Files that one test has made, for the others: the same objects give the same bytes."""
    return {}


def write_old_dataset(source: str, root: str, made: dict[str, dict[str, bytes]]) -> None:
    """Writes a dataset to the store; only the first one is converted."""
    if "old" not in made:
        darkroom.convert(source, root, num_shards=SHARDS)
        made["old"] = read_objects(root)
        made["old dataset"] = read_result(root)[0]
    for name, data in made["old"].items():
        storage.write_bytes(f"{root}/{name}", data)


def _name(request: str, state: str) -> Any:
    """Returns a fault of a request, with the name of the state that it leaves."""
    return pytest.param((request, state), id=state)


@pytest.mark.long
@pytest.mark.parametrize(
    "fault",
    [
        _name("/journal.json", "nothing was written"),
        _name("/Split-test", "no shard is there"),
        _name("/rejects.jsonl", "all shards are there"),
        _name("PUT /photos/data/data-", "the journal is there"),
        _name("PUT /photos/data/dataset.json", "all but the commit is there"),
        _name("/photos?delete", "the old dataset is not deleted"),
    ],
)
def test_a_replacement_that_fails_anywhere_is_resumed(s3, tmp_path, fault, made):
    source, root = write_source("s3://photos"), "s3://photos/data"
    arguments = {"num_shards": 1, "seed": 3, "overwrite": True}
    if "new" not in made:
        darkroom.convert(source, tmp_path / "local", **arguments)
        made["new"] = read_files(tmp_path / "local")
    write_old_dataset(source, root, made)
    old = read_objects(root)
    s3.fail(fault[0], 503)
    with pytest.raises(OSError, match="failed"):
        darkroom.convert(source, root, **arguments)
    assert s3.faults[0].times < 1_000
    s3.reset()
    if fault[1] != "the old dataset is not deleted":
        # Until the last request, the old dataset is that of the output.
        assert read_objects(root).items() >= {**old, ".attempt/current.json": ANY}.items()
    for _ in range(2):
        darkroom.convert(source, root, **arguments)
        dataset, others = read_result(root)
        assert dataset == made["new"]
        # A job may still write what a journal names, so that one goes after another run.
        assert {name.rpartition("/")[2] for name in others} <= {"journal.json", "attempt.json"}
        assert len(others) <= 2
    assert others == {}


@pytest.mark.parametrize(
    ("store", "state"),
    [
        ("s3", "finished"),
        pytest.param("gs", "failed", marks=pytest.mark.long),
    ],
    indirect=["store"],
)
def test_an_output_below_a_folder_of_images_is_left_out(store, state, tmp_path):
    root = f"{store[1]}/src"
    for number in range(NUM_IMAGES):
        name = f"{root}/{('train', 'test')[number % 2]}/{'ab'[number % 3 % 2]}/{number}.jpg"
        storage.write_bytes(name, make_image(number))
    with pytest.raises(UsageError, match="is the source itself"):
        darkroom.convert(root, root, overwrite=True)
    rows = f"{root}/train/a/0.jpg,a\nx,a\n"
    storage.write_bytes(f"{store[1]}/bad.csv", f"image_uri,label\n{rows}".encode())
    if state == "finished":
        darkroom.convert(root, f"{root}/eval", num_shards=1)
    else:
        with pytest.raises(darkroom.errors.DataError):
            darkroom.convert(f"{store[1]}/bad.csv", f"{root}/eval", num_shards=1)
    found = write_manifest(root, str(tmp_path), str(tmp_path))
    assert (found.rows, set(found.splits)) == (NUM_IMAGES, {"train", "test"})
    # Images beside the dataset count.
    storage.write_bytes(f"{root}/eval/a/0.jpg", make_image(NUM_IMAGES))
    storage.write_bytes(f"{root}/eval/index/0.jpg", make_image(NUM_IMAGES + 1))
    found = write_manifest(root, str(tmp_path), str(tmp_path))
    assert (found.rows, set(found.splits)) == (NUM_IMAGES + 1, {"train", "test", "eval"})
