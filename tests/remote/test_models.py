"""A model in a store is asked like one on a disk."""

from __future__ import annotations

import os
from pathlib import Path

import keras
import numpy as np
import pytest

import darkroom
from darkroom import storage
from darkroom.training.export import export_model
from darkroom.training.formats import portable

from ..pictures import encode

pytestmark = [pytest.mark.heavy, pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (6, 5)
COLORS = {"blue": (40, 60, 245), "green": (70, 240, 50), "red": (250, 60, 40)}


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as that of a training: a model that finds the brightest channel, and images."""
    folder = tmp_path_factory.mktemp("local")
    inputs = keras.Input((*SIZE, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    outputs = keras.layers.Softmax()(keras.ops.flip(means, axis=1) * 5)
    export_model(keras.Model(inputs, outputs), [*COLORS], SIZE, str(folder / "run" / "model"))
    for split in ("train", "eval", "test"):
        for label, color in COLORS.items():
            place = folder / "images" / split / label
            place.mkdir(parents=True)
            (place / "a.jpg").write_bytes(encode(np.full((9, 9, 3), color, np.uint8), "JPEG"))
    return folder


@pytest.fixture
def remote(store, local: Path) -> str:
    """The URI of the same training in a store."""
    _, root = store
    for path in (local / "run").rglob("*"):
        if path.is_file():
            storage.write_bytes(f"{root}/{path.relative_to(local)}", path.read_bytes())
    return f"{root}/run"


@pytest.mark.parametrize("store", [pytest.param("s3", marks=pytest.mark.long), "gs"], indirect=True)
def test_it_is_evaluated_and_exported_and_predicts(remote, local, tmp_path, monkeypatch):
    found = darkroom.evaluate(remote, local / "images", report_dir=f"{remote}/report")
    assert (found.accuracy, found.model_dir) == (1.0, f"{remote}/model")
    assert found.report_path == f"{remote}/report/model.html"
    assert b"red" in storage.read_bytes(found.report_path)

    storage.write_bytes(f"{remote}/new/a.jpg", (local / "images/test/green/a.jpg").read_bytes())
    [prediction] = darkroom.predict(
        f"{remote}/model", f"{remote}/new", f"{remote}/new.csv"
    ).predictions
    assert (prediction.path, prediction.label) == (f"{remote}/new/a.jpg", "green")
    lines = storage.read_bytes(f"{remote}/new.csv").decode().splitlines()
    assert lines == ["image_uri,label,score", f"new/a.jpg,green,{prediction.score:.6f}"]

    made = []

    def convert(folder: str, *_: object) -> tuple[portable.Export, bytes]:
        made.append(sorted(os.listdir(folder)))
        path = str(tmp_path / "out" / "model.tflite")
        return portable.Export("tflite", path, 1, 0.0, 1.0), b"x"

    monkeypatch.setattr(portable, "_make", convert)  # the converter takes half a minute
    result = darkroom.export(remote, local / "images", tmp_path / "out", ["tflite"])
    assert made == [["assets", "fingerprint.pb", "saved_model.pb", "variables"]]
    assert (result.model_dir, result.images) == (f"{remote}/model", 3)
    assert (tmp_path / "out" / "labels.txt").read_text() == "blue\ngreen\nred\n"
    assert os.listdir(tmp_path / "temporary") == []
