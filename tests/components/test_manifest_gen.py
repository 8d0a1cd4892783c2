from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from absl import logging
from tfx.types import standard_artifacts

import darkroom
from darkroom.components.artifacts import ImageManifest, Rejects
from darkroom.components.file_state import SOURCE_STATE, accept
from darkroom.components.manifest_gen.executor import Executor
from darkroom.dataset.layout import Folders
from darkroom.dataset.manifest import read_manifest
from darkroom.errors import DataError, StorageError
from darkroom.options.manifest import ManifestOptions

pytestmark = pytest.mark.tfx


def _run(source: str, new_artifact, options: ManifestOptions, base: str = "", **inputs: Any):
    manifest, rejects = new_artifact(ImageManifest), new_artifact(Rejects)
    properties = {"source": source, "options": options.to_json(), "base": base}
    Executor().Do(inputs, {"manifest": [manifest], "list_rejects": [rejects]}, properties)
    return manifest, rejects


def test_a_base_is_a_place_or_examples_that_say_where_the_rest_is(
    images: Path, new_artifact, tmp_path: Path
):
    """tests/components/test_nightly.py has an update from Examples."""
    base, options = tmp_path / "base", ManifestOptions()
    manifest, _ = _run(str(images), new_artifact, options, str(base))
    assert read_manifest(manifest.uri).find_base() is None  # nothing is there yet
    darkroom.convert(images, base)
    manifest, _ = _run(str(images), new_artifact, options, str(base))
    found = read_manifest(manifest.uri)
    assert found.find_base() == Folders.of_dataset(str(base))
    assert manifest.get_int_custom_property("removed") == 0
    darkroom.convert(images, base, seed=3, overwrite=True)
    with pytest.raises(StorageError, match="another dataset has replaced the one"):
        found.find_base()
    examples = new_artifact(standard_artifacts.Examples)
    with pytest.raises(DataError, match="do not say where their index and rejects are"):
        _run(str(images), new_artifact, options, base_examples=[examples])


def test_what_the_gallery_saved_becomes_lines_in_the_manifest(
    images: Path, new_artifact, tmp_path: Path
):
    base = darkroom.convert(images, tmp_path / "base")
    folder = tmp_path / "decided"
    folder.mkdir()
    # Nothing is written beside it: it may be in a place that tasks only read.
    (folder / "saved.json").write_text(
        json.dumps(
            {
                "form": "darkroom decisions 1",
                "dataset": base.fingerprint,
                "decisions": [{"action": "drop", "places": [2, 7]}],
            }
        )
    )
    options = ManifestOptions(decisions=str(folder / "saved.json"))
    manifest, _ = _run(str(images), new_artifact, options, base.output_dir)
    assert read_manifest(manifest.uri).decisions["counts"]["drop"] == 2
    assert [path.name for path in folder.iterdir()] == ["saved.json"]
    kept = Path(manifest.uri, "decisions.jsonl")
    assert [json.loads(line)["action"] for line in kept.read_text().splitlines()] == ["drop"] * 2
    # The state of the source is that of the lines, which the next run may be given instead.
    properties = {"source": str(images), "base": base.output_dir}
    states = {
        SOURCE_STATE.read({**properties, "options": each.to_json()}, accept)
        for each in (options, ManifestOptions(decisions=str(kept)))
    }
    assert len(states) == 1
    with pytest.raises(DataError, match="this run knows of no dataset"):
        _run(str(images), new_artifact, options)


def test_writes_manifest_label_map_and_rejects(images: Path, new_artifact, monkeypatch):
    warned = []
    monkeypatch.setattr(logging, "warning", lambda text, *values: warned.append(text % values))
    with images.open("a") as file:
        file.write("TRAIN,00.jpg,cat\nTRAIN,99.jpg,\n")
    manifest, rejects = _run(str(images), new_artifact, ManifestOptions())

    rows = pq.read_table(Path(manifest.uri, "manifest.parquet")).to_pylist()
    assert sorted((row["id"], row["split"], row["label"], row["label_id"]) for row in rows) == [
        (
            f"{number:02d}.jpg",
            "eval" if number % 5 == 4 else "train",
            ("cat", "dog", "owl")[number % 3],
            number % 3,
        )
        for number in range(30)
    ]
    assert [row["split"] for row in rows] == ["train"] * 24 + ["eval"] * 6
    assert Path(manifest.uri, "labels.txt").read_text() == "cat\ndog\nowl\n"
    [reject] = Path(rejects.uri, "rejects.jsonl").read_text().splitlines()
    assert json.loads(reject)["row"] == 32
    assert json.loads(reject)["reason"] == "empty_label"
    counts = {n: manifest.get_int_custom_property(n) for n in ("rows", "rejected", "deduplicated")}
    assert counts == {"rows": 32, "rejected": 1, "deduplicated": 1}
    assert rejects.get_int_custom_property("rejected") == 1
    assert warned == [f"1 of 32 rows was rejected: see {rejects.uri}/rejects.jsonl."]


def test_takes_its_options_from_json(images: Path, new_artifact, tmp_path: Path):
    (tmp_path / "list.txt").write_text("00.jpg\n07.jpg\n")
    labels = ("owl", "dog", "cat")
    options = ManifestOptions(labels=labels, exclude=str(tmp_path / "list.txt"))
    manifest, _ = _run(str(images), new_artifact, options)
    rows = pq.read_table(Path(manifest.uri, "manifest.parquet")).to_pylist()
    assert {(row["label"], row["label_id"]) for row in rows} == {("owl", 0), ("dog", 1), ("cat", 2)}
    assert len(rows) == 28
    assert {"00.jpg", "07.jpg"}.isdisjoint(row["id"] for row in rows)
    assert manifest.get_int_custom_property("deduplicated") == 2
