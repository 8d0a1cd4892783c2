"""Records in a store are trained on, and evaluate and export a model, like those on a disk."""

from __future__ import annotations

import json
import os
import sys
import types

import keras
import numpy as np
import pytest

import darkroom
from darkroom.cli import main
from darkroom.storage import copies

from ..pictures import encode

pytestmark = [pytest.mark.heavy, pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

OPTIONS = {"model": "own_models:make", "image_size": (8, 8), "batch_size": 4, "epochs": 1}


def _make(num_classes, image_size):
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation="softmax")(means))


@pytest.fixture
def records(store, tmp_path, monkeypatch):
    """The same records on the disk and in a store, and a model to train."""
    own = types.SimpleNamespace(make=_make)
    monkeypatch.setitem(sys.modules, "own_models", own)
    monkeypatch.setenv("DARKROOM_CACHE", str(tmp_path / "cache"))
    for split, number in (("train", 8), ("eval", 4), ("test", 4)):
        for n in range(number):
            path = tmp_path / "images" / split / "ab"[n % 2] / f"{n}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encode(np.full((8, 8, 3), 100 * (n % 2) + 4 * n, np.uint8), "JPEG"))
    darkroom.convert(tmp_path / "images", tmp_path / "records")
    copies.copy_folder(str(tmp_path / "records"), f"{store[1]}/records")
    return str(tmp_path / "records"), f"{store[1]}/records"


# What a training reads is a copy, as in tests/remote/test_dataset_cache.py: here, the whole of it.
@pytest.mark.long
def test_records_in_a_store_are_trained_on(records, tmp_path):
    here, there = records
    remote = darkroom.train(there, tmp_path / "remote", **OPTIONS)
    # The same data: a training goes on with a copy of it in another place.
    again = darkroom.train(here, tmp_path / "remote", **OPTIONS)
    assert again.already_complete
    saved = json.loads((tmp_path / "remote" / "training.json").read_text())
    assert saved["result"]["evaluation"]["records"] == 4

    # The model's numbers on records of a store.
    assert darkroom.evaluate(tmp_path / "remote", there).accuracy == remote.evaluation.accuracy
    # One copy of the dataset, for all of it.
    assert len([name for name in os.listdir(tmp_path / "cache") if len(name) > 16]) == 1
    # But for what TensorFlow's AutoGraph generates.
    assert [each for each in os.listdir(tmp_path / "temporary") if each[:2] != "__"] == []


@pytest.mark.parametrize("store", ["s3", pytest.param("gs", marks=pytest.mark.long)], indirect=True)
def test_one_label_only_is_found_in_the_index_in_a_store(store, tmp_path, capsys):
    for split, label in (("train", "a"), ("eval", "a"), ("eval", "b")):
        folder = tmp_path / "images" / split / label
        folder.mkdir(parents=True)
        pixels = np.full((8, 8, 3), ord(label) + len(split), np.uint8)
        (folder / "1.jpg").write_bytes(encode(pixels, "JPEG"))
    darkroom.convert(tmp_path / "images", tmp_path / "records")
    copies.copy_folder(str(tmp_path / "records"), f"{store[1]}/records")
    command = ["train", "--data", f"{store[1]}/records", "--checkpoint-dir"]
    assert main([*command, str(tmp_path / "run")]) == 1
    assert "All 1 images of the train split have the label a" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_training_in_a_store_that_tensorflow_cannot_write_to_is_refused(s3, tmp_path, capsys):
    command = ["train", "--data", str(tmp_path), "--checkpoint-dir", "s3://photos/run"]
    assert main(command) == 2
    said = capsys.readouterr().err
    assert "--checkpoint-dir is 's3://photos/run', but this TensorFlow cannot write to s3" in said
    assert "Train in a local folder" in said
    assert s3.requests == []
