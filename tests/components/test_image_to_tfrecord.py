from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.components.image_to_tfrecord.executor import Executor
from darkroom.conversion import ConversionOptions
from darkroom.dataset import read_dataset
from darkroom.errors import DataError
from darkroom.examples import decode_example
from darkroom.index import read_index
from darkroom.tfrecords import read_records

from .conftest import convert_source


def _read_files(folder: str) -> dict[str, bytes]:
    root = Path(folder)
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def test_writes_examples_with_the_users_own_bytes(images: Path, converted):
    examples = converted["examples"]
    assert json.loads(examples.split_names) == ["train", "eval"]
    assert examples.get_string_custom_property("payload_format") == "FORMAT_TF_EXAMPLE"
    assert examples.get_int_custom_property("records") == 30
    dataset = read_dataset(examples.uri)
    assert examples.get_string_custom_property("fingerprint") == dataset.fingerprint

    written = {}
    for split in dataset.splits.values():
        for shard in split.shards:
            for record in read_records(f"{examples.uri}/{shard.file}"):
                features = decode_example(record)
                written[features["image/filename"][0].decode()] = features["image/encoded"][0]
    assert written == {path.name: path.read_bytes() for path in sorted(images.parent.glob("*.png"))}


def test_nothing_but_shards_lies_in_a_split(converted):
    root = Path(converted["examples"].uri)
    assert sorted(path.name for path in root.iterdir()) == [
        "Split-eval",
        "Split-train",
        "dataset.json",
        "labels.txt",
    ]
    assert [path.name for path in (root / "Split-train").iterdir()] == [
        "data_tfrecord-00000-of-00001"
    ]


def test_rejects_of_both_stages_are_listed(images: Path, new_artifact, beam_context):
    (images.parent / "03.png").write_bytes(b"<html>")
    with images.open("a") as file:
        file.write("TRAIN,98.png,\n")
    made = convert_source(str(images), new_artifact, beam_context)
    lines = Path(made["rejects"].uri, "rejects.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert [(r["row"], r["stage"], r["reason"]) for r in found] == [
        (31, "manifest", "empty_label"),
        (4, "convert", "not_an_image"),
    ]
    assert made["rejects"].get_int_custom_property("rejected") == 2
    assert read_index(made["index"].uri).num_rows == 29
    dataset = read_dataset(made["examples"].uri)
    assert (dataset.rows, dataset.written, dataset.rejected) == (31, 29, 2)


def test_a_retry_into_the_same_folders_gives_the_same_files(converted, beam_context):
    before = {name: _read_files(converted[name].uri) for name in ("examples", "index", "rejects")}
    Path(converted["examples"].uri, "Split-train", "left-over").write_bytes(b"x")
    Executor(beam_context).Do(
        {name: [converted[name]] for name in ("manifest", "manifest_rejects")},
        {name: [converted[name]] for name in ("examples", "index", "rejects")},
        {"options": ConversionOptions().to_json()},
    )
    after = {name: _read_files(converted[name].uri) for name in ("examples", "index", "rejects")}
    assert after == before


def test_fails_with_the_first_rejects_when_nothing_can_be_written(
    images: Path, new_artifact, beam_context
):
    for path in images.parent.glob("*.png"):
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"(?s)No image could be written.*empty.*\.png"):
        convert_source(str(images), new_artifact, beam_context)
