from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from darkroom import storage
from darkroom.audit.duplicates import find_duplicates
from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.image_to_tfrecord.executor import Executor
from darkroom.components.manifest_gen.executor import Executor as ManifestExecutor
from darkroom.dataset.checksums import find_changed, read_sums, sum_bytes
from darkroom.dataset.commit import read_dataset
from darkroom.dataset.example import decode_example
from darkroom.dataset.index import read_index
from darkroom.dataset.journal import write_journal
from darkroom.dataset.layout import Folders
from darkroom.dataset.tfrecord import read_records
from darkroom.errors import DataError, OutputError, UsageError
from darkroom.features.networks.network import Network
from darkroom.features.table import find_features_file, read_features
from darkroom.options.conversion import RecordOptions
from darkroom.options.manifest import ManifestOptions
from darkroom.proof.verify import verify
from darkroom.validation.validate import validate

from ..trees import read_files
from .conftest import convert_source

pytestmark = pytest.mark.tfx

OUTPUTS = ("examples", "index", "rejects")


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
    assert written == {path.name: path.read_bytes() for path in sorted(images.parent.glob("*.jpg"))}


def test_each_artifact_lists_the_hashes_of_its_files(converted):
    for name in OUTPUTS:
        root = Path(converted[name].uri)
        paths = [p for p in root.rglob("*") if p.is_file() and p.name != "SHA256SUMS"]
        sums = {p.relative_to(root).as_posix(): sum_bytes(p.read_bytes()) for p in paths}
        assert read_sums(str(root)) == sums != {}
    result = verify(converted["examples"].uri)
    assert result.is_sound
    for read in (find_duplicates, validate):
        with pytest.raises(UsageError, match=r"The index of .* is elsewhere"):
            read(converted["examples"].uri)
    assert (result.has_index, result.has_rejects) == (False, False)


def test_rejects_of_both_stages_are_listed(images: Path, new_artifact, beam_context):
    (images.parent / "03.jpg").write_bytes(b"<html>")
    with images.open("a") as file:
        file.write("TRAIN,98.jpg,\n")
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
    before = {name: read_files(converted[name].uri) for name in OUTPUTS}
    # What an attempt leaves that was killed while it wrote another number of shards.
    left = Path(converted["examples"].uri, "Split-train", "data_tfrecord-00001-of-00002")
    folders = Folders("", "", *(converted[name].uri for name in OUTPUTS), token="0123abcd")
    Path(folders.work).mkdir(parents=True)
    write_journal(folders, [str(left)])
    left.write_bytes(b"x")
    _convert_again(converted, beam_context)
    assert {name: read_files(converted[name].uri) for name in OUTPUTS} == before


def test_the_index_gets_features_where_asked_for(converted, beam_context, monkeypatch):
    network = Network("means", "1f", (4, 4), 3, lambda images: images.mean((1, 2), np.float32))
    monkeypatch.setattr("darkroom.conversion.embed.open_network", lambda model: network)
    monkeypatch.setenv("DARKROOM_CACHE", str(Path(converted["index"].uri).parent / "cache"))
    folder = converted["index"].uri
    before = {name: read_files(converted[name].uri) for name in OUTPUTS}
    write_bytes = storage.write_bytes

    def end(path, *others):
        write_bytes(path, *others)
        if path.endswith("features.parquet"):
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storage, "write_bytes", end)
        with pytest.raises(KeyboardInterrupt):
            _convert_again(converted, beam_context, embed=1)
    _convert_again(converted, beam_context, embed=1)
    features = read_features(find_features_file(folder), folder)
    index = read_index(folder, ["row", "luminance"])
    assert (features.model, features.rows.tolist()) == ("means 1f", index["row"].to_pylist())
    gray = features.values @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(gray, index["luminance"].to_pylist(), atol=12)
    after = {name: read_files(converted[name].uri) for name in OUTPUTS}
    assert after["index"].keys() - before["index"].keys() == {"features.parquet"}
    assert [*find_changed(folder, read_sums(folder), ["features.parquet"])] == []
    assert {name for name in OUTPUTS if after[name] != before[name]} == {"index"}
    assert verify(converted["examples"].uri).is_sound


def _convert_again(
    made: dict[str, Any], beam_context: Any, recheck: float = 0.0, embed: int = 0, **options: Any
) -> None:
    Executor(beam_context).Do(
        {name: [made[name]] for name in ("manifest", "manifest_rejects")},
        {name: [made[name]] for name in OUTPUTS},
        {"options": RecordOptions(**options).to_json(), "recheck": recheck, "embed": embed},
    )


def test_unchanged_images_are_read_again_where_asked_for(images, new_artifact, beam_context):
    base = convert_source(str(images), new_artifact, beam_context)
    manifest, rejects = new_artifact(ImageManifest), new_artifact(Rejects)
    ManifestExecutor().Do(
        {"base_examples": [base["examples"]]},
        {"manifest": [manifest], "list_rejects": [rejects]},
        {"source": str(images), "options": ManifestOptions().to_json()},
    )
    made = {**base, "manifest": manifest, "manifest_rejects": rejects}
    made |= {name: new_artifact(type(base[name])) for name in OUTPUTS}
    path = images.parent / "07.jpg"
    state = path.stat()
    path.write_bytes(bytes(state.st_size))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises(DataError, match=r"other bytes: .*07\.jpg"):
        _convert_again(made, beam_context, recheck=1.0)
    _convert_again(made, beam_context)
    assert read_dataset(made["examples"].uri) == read_dataset(base["examples"].uri)


def test_foreign_files_in_an_output_stop_the_conversion(converted, beam_context):
    for part, name in (
        ("index", "notes.txt"),
        ("examples", "Split-mine/thesis.txt"),
        ("rejects", "rejects.jsonl"),
    ):
        path = Path(converted[part].uri, name)
        own = path.read_bytes() if path.exists() else None
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        before = [read_files(converted[output].uri) for output in OUTPUTS]
        with pytest.raises(OutputError, match="1 file that darkroom did not write") as error:
            _convert_again(converted, beam_context)
        shown = os.path.relpath(path, converted["examples"].uri)
        assert error.value.message.endswith(f": {shown}.")
        assert [read_files(converted[output].uri) for output in OUTPUTS] == before
        # As it was, for the next one.
        path.unlink()
        if own is not None:
            path.write_bytes(own)


def test_the_dataset_of_an_earlier_attempt_is_replaced(images, new_artifact, beam_context):
    made = convert_source(str(images), new_artifact, beam_context)
    Path(made["rejects"].uri, "README").write_text("mine")
    _convert_again(made, beam_context, num_shards={"train": 2})
    shards = sorted(path.name for path in Path(made["examples"].uri, "Split-train").iterdir())
    assert shards == [f"data_tfrecord-0000{number}-of-00002" for number in range(2)]
    assert verify(made["examples"].uri).findings == ()
    assert read_index(made["index"].uri).num_rows == 30
    assert len(os.listdir(made["index"].uri)) == 4
    assert sorted(os.listdir(made["rejects"].uri)) == [
        "README",
        "SHA256SUMS",
        "rejects.jsonl",
        "rejects.parquet",
    ]


def test_objects_are_counted_by_both_components(images: Path, new_artifact, beam_context):
    boxes = [{"label": "cat", "box": [1, 2, 5, 6]}, {"label": "dog", "box": [0, 0, 9, 99]}]
    lines = [
        json.dumps({"image_uri": f"{number:02d}.jpg", "objects": boxes[: number % 3]})
        for number in range(6)
    ]
    lines.append(json.dumps({"image_uri": "none.jpg", "objects": [{"label": "cat"}, boxes[0]]}))
    source = images.with_name("boxes.jsonl")
    source.write_text("\n".join(lines))
    made = convert_source(str(source), new_artifact, beam_context)
    # 0, 1 and 2 objects, twice, of which that of a dog is outside its image.
    assert made["examples"].get_int_custom_property("objects") == 4
    assert made["manifest_rejects"].get_int_custom_property("rejected_objects") == 1
    assert made["rejects"].get_int_custom_property("rejected_objects") == 4
    assert made["rejects"].get_int_custom_property("rejected") == 1
    counts = read_dataset(made["examples"].uri).objects
    assert (counts.read, counts.written, counts.rejected, counts.alone) == (8, 4, 4, 3)
