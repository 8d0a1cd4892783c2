"""A model in other formats: the same answers, and clear errors where that cannot be."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.cli import main
from darkroom.errors import DataError, MissingExtraError, OutputError, StorageError, UsageError
from darkroom.runtime import progress
from darkroom.training.export import export_model
from darkroom.training.formats import converter, portable
from darkroom.training.formats.keras_file import write_keras_file
from darkroom.training.formats.portable import export

from ..pictures import write_label_folders

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (12, 10)


def _build() -> keras.Model:
    keras.utils.set_random_seed(1)
    inputs = keras.Input((*SIZE, 3), dtype="uint8")
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Conv2D(8, 3, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization()(x)
    x = keras.layers.GlobalAveragePooling2D()(keras.layers.ReLU()(x))
    return keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(x))


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images") / "src"
    write_label_folders(folder, 20)
    return folder


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory, images: Path) -> Path:
    labels = sorted(each.name for each in images.iterdir())
    folder = tmp_path_factory.mktemp("run")
    export_model(_build(), labels, SIZE, str(folder / "model"), resize="center_crop")
    return folder


@pytest.fixture
def warm_converter(warm_python, monkeypatch):
    """Converts in a process that has imported TensorFlow already."""

    def run(command, **_):
        return warm_python.run(*command[1:])

    monkeypatch.setattr(portable, "subprocess", SimpleNamespace(run=run))


LIMITS = {"tflite": 1e-5, "tflite-int8": 0.1, "tflite-float16": 1e-3, "tflite-dynamic": 0.05}
LIMITS |= {"onnx": 1e-5}


# Another test converts in any case: tests/docs/test_exporting.py.
@pytest.mark.long
@pytest.mark.usefixtures("warm_converter")
def test_each_format_answers_as_the_model_does(model_dir, images, tmp_path, capsys):
    pytest.importorskip("tf2onnx")
    pytest.importorskip("onnxruntime")
    out, kinds = tmp_path / "out", [*LIMITS]
    arguments = ["export", str(model_dir), str(images), "--output-dir", str(out)]
    assert main([*arguments, "--format", *kinds, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["image_size"], told["resize"]) == ([*SIZE], "center_crop")
    assert [each["format"] for each in told["exports"]] == kinds
    names = {kind.replace("tflite", "model") + ".tflite" for kind in kinds if kind != "onnx"}
    names |= {"model.onnx"}
    assert {path.name for path in out.iterdir() if path.suffix in (".tflite", ".onnx")} == names
    labels = (model_dir / "model/assets/labels.txt").read_text()
    assert (out / "labels.txt").read_text() == labels

    pixels = np.random.default_rng(0).integers(0, 256, (5, *SIZE, 3), np.uint8)
    served = tf.saved_model.load(str(model_dir / "model"))
    expected = served.classify(pixels)
    for each in told["exports"]:
        limit = LIMITS[each["format"]]
        assert each["size_bytes"] == Path(each["path"]).stat().st_size
        assert each["max_difference"] <= limit
        assert each["agreement"] >= 0.9
        open_model = (
            converter.make_onnx_function if each["format"] == "onnx" else converter.open_tflite
        )
        found = open_model(each["path"])(pixels)
        np.testing.assert_allclose(found, expected, atol=limit)
        assert found.dtype == np.float32


def test_onnx_needs_an_extra(model_dir, images, tmp_path, monkeypatch):
    monkeypatch.setattr(portable.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="The format onnx needs the extra 'onnx'"):
        export(model_dir, images, tmp_path / "out", ["onnx"])
    assert not (tmp_path / "out").exists()


def test_a_converter_that_fails_is_told_and_nothing_is_written(
    model_dir, images, tmp_path, monkeypatch
):
    """As TensorFlow's does: it ends its process."""
    python = tmp_path / "python"
    said = "LLVM ERROR: Failed to infer result type(s)."
    python.write_text(f"#!/bin/sh\necho noise >&2\necho '{said}' >&2\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(portable.sys, "executable", str(python))
    with pytest.raises(
        StorageError, match=r"cannot be converted to tflite: LLVM ERROR: Failed"
    ) as s:
        export(model_dir, images, tmp_path / "out", ["tflite"])
    assert "Leave this format out" in s.value.hint
    assert not (tmp_path / "out").exists()


def test_what_is_not_a_model_is_named(model_dir, images, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main(["export", str(tmp_path), str(images), "--output-dir", out]) == 1
    assert f"There is no saved_model.pb in {tmp_path}" in capsys.readouterr().err
    with pytest.raises(UsageError, match="Unknown format 'coreml'"):
        export(model_dir, images, tmp_path / "out", ["coreml"])
    tf.saved_model.save(tf.Module(), str(tmp_path / "other"))
    (tmp_path / "other/assets").mkdir(exist_ok=True)
    shutil.copy(model_dir / "model/assets/labels.txt", tmp_path / "other/assets")
    with pytest.raises(UsageError, match="was written by another version of darkroom, or by anot"):
        export(tmp_path / "other", images, tmp_path / "out")


def test_other_labels_are_an_error(model_dir, images, tmp_path):
    more = shutil.copytree(images, tmp_path / "more")
    shutil.copytree(next(images.iterdir()), more / "another")
    with pytest.raises(DataError, match="differ from the data's: 2 and 3"):
        export(model_dir, more, tmp_path / "out")


def test_files_of_others_stay(model_dir, images, tmp_path):
    (tmp_path / "model.tflite").write_text("mine")
    with pytest.raises(OutputError, match=r"model\.tflite"):
        export(model_dir, images, tmp_path, ["tflite"])
    assert (tmp_path / "model.tflite").read_text() == "mine"


def test_the_file_of_keras_has_no_optimizer(tmp_path):
    model = _build()
    model.compile("adam", "sparse_categorical_crossentropy")
    model.optimizer.build(model.trainable_variables)
    write_keras_file(model, str(tmp_path / "model.keras"))
    opened = keras.models.load_model(tmp_path / "model.keras")
    assert getattr(opened, "optimizer", None) is None
    pixels = np.random.default_rng(0).integers(0, 256, (3, *SIZE, 3), np.uint8)
    np.testing.assert_array_equal(opened(pixels), model(pixels))


def test_a_model_that_keras_cannot_open_again_has_no_file(tmp_path, capsys):
    class Scale(keras.layers.Layer):  # not registered
        def call(self, inputs):
            return inputs / 255

    inputs = keras.Input((*SIZE, 3))
    pooled = keras.layers.GlobalAveragePooling2D()(Scale()(inputs))
    model = keras.Model(inputs, keras.layers.Softmax()(pooled))
    path = tmp_path / "model.keras"
    path.write_text("of an earlier training")
    with progress.use(progress.make_sink(sys.stderr)):
        write_keras_file(model, str(path))
    assert "model.keras is not written, because Keras cannot open it: " in capsys.readouterr().err
    assert not path.exists()
