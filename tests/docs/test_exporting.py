"""The code of the guide to exporting prepares pixels as the SavedModel does."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from darkroom.evaluation.predict import predict
from darkroom.input.graph.decode import view_image
from darkroom.training.export import export_model
from darkroom.training.formats.converter import ONNX, TFLITE, convert_onnx, convert_tflite

from ..pictures import encode, write_label_folders

pytestmark = pytest.mark.tensorflow

_ROOT = Path(__file__).parents[2]
_PIXELS = _ROOT / "examples/pixels.py"
_BLOCKS = re.findall(r"```python\n(.*?)```", (_ROOT / "docs/guides/exporting.md").read_text(), re.S)
# TensorFlow has LiteRT's interpreter, too: the package is not needed for a test.
_STANDING_IN = "import tensorflow as tf\n\nInterpreter = tf.lite.Interpreter\n"
SIZE = (32, 48)


def _find_block(text: str) -> str:
    [block] = [each for each in _BLOCKS if text in each]
    return block


@pytest.fixture(scope="module")
def read_pixels():
    return runpy.run_path(str(_PIXELS))["read_pixels"]


def _draw(height: int, width: int) -> Image.Image:
    """A smooth image with sharp edges, which antialiasing changes."""
    y, x = np.mgrid[0:height, 0:width]
    smooth = np.stack([x * 255 // width, y * 255 // height, (x + y) % 256], -1)
    stripes = ((x // 3 + y // 5) % 2 * 90)[..., None]
    return Image.fromarray((smooth * 0.6 + stripes).astype(np.uint8))


@pytest.mark.parametrize("resize", ["stretch", "center_crop"])
@pytest.mark.parametrize("sides", [(20, 30), (301, 402), (400, 190)])
def test_pixels_of_transparent_and_turned_pngs_are_those_of_the_model(
    tmp_path, read_pixels, sides, resize
):
    image = _draw(*sides)
    image.putalpha(Image.linear_gradient("L").resize(image.size))
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encode(image, "PNG", exif=exif)
    (tmp_path / "image").write_bytes(data)
    expected = view_image(tf.constant(data), SIZE, resize)[0].numpy()
    found = read_pixels(tmp_path / "image", *SIZE, resize)
    assert (found.shape, found.dtype) == ((1, *SIZE, 3), np.uint8)
    # One level, where the order of float32 operations decides how a half is rounded.
    assert np.abs(found[0].astype(int) - expected).max() <= 1
    assert (found[0] == expected).mean() > 0.98


@pytest.mark.parametrize("resize", ["stretch", "center_crop"])
@pytest.mark.parametrize("turn", [1, 6])
@pytest.mark.parametrize("sides", [(57, 81), (520, 611)])
def test_pixels_of_jpegs_are_almost_those_of_the_model(tmp_path, read_pixels, sides, turn, resize):
    exif = Image.Exif()
    exif[0x0112] = turn
    data = encode(_draw(*sides), "JPEG", quality=95, exif=exif)
    (tmp_path / "image").write_bytes(data)
    expected = view_image(tf.constant(data), SIZE, resize)[0].numpy()
    found = read_pixels(tmp_path / "image", *SIZE, resize)[0].astype(int)
    assert np.abs(found - expected).mean() < 1.5


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a photograph, a model with sharp opinions of it, and its exports."""
    folder = tmp_path_factory.mktemp("work")
    write_label_folders(folder / "images", 20)
    keras.utils.set_random_seed(1)
    inputs = keras.Input((*SIZE, 3), dtype="uint8")
    x = keras.layers.Conv2D(8, 5, strides=2)(keras.layers.Rescaling(1 / 64)(inputs))
    x = keras.layers.GlobalMaxPooling2D()(keras.layers.ReLU()(x))
    model = keras.Model(inputs, keras.layers.Dense(2, activation="softmax")(x))
    export_model(model, ["cat", "dog"], SIZE, str(folder / "run/model"))
    (folder / "photo.jpg").write_bytes(encode(_draw(301, 402), "JPEG", quality=95))
    shutil.copy(_PIXELS, folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        ("tflite", ()),
        # tests/training/test_portable.py exports to ONNX, too, which takes 10 s.
        pytest.param("onnx", ("tf2onnx", "onnxruntime"), marks=pytest.mark.long),
    ],
)
def test_the_code_of_the_guide_answers_as_predict_does(exported, kind, needs, monkeypatch, capsys):
    for name in needs:
        pytest.importorskip(name)
    path = exported / f"exports/model.{kind}"
    path.parent.mkdir(exist_ok=True)
    shutil.copy(exported / "run/model/assets/labels.txt", path.parent)
    model = tf.saved_model.load(str(exported / "run/model"))
    if kind == ONNX:
        convert_onnx(model, str(path))
    else:
        path.write_bytes(convert_tflite(model, TFLITE, np.empty(0)))
    code = _find_block(f"model.{kind}")
    if kind == "tflite":
        code = code.replace("from ai_edge_litert.interpreter import Interpreter\n", _STANDING_IN)
    monkeypatch.chdir(exported)
    monkeypatch.syspath_prepend(exported)
    capsys.readouterr()
    exec(code, {})
    label, score = capsys.readouterr().out.split()
    [expected] = predict(exported / "run", [str(exported / "photo.jpg")]).predictions
    assert label == expected.label
    assert float(score) == pytest.approx(expected.score, abs=0.01)
