"""A model whose answers are known, and pictures for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from ..pictures import encode

COLORS = {"red": (250, 60, 40), "green": (70, 240, 50), "blue": (40, 60, 245)}
LABELS = ["blue", "green", "red"]


def write_pictures(folder: Path, rows: Mapping[str, str]) -> Path:
    """Writes a picture for each path `split/label/name`, of the color that is named."""
    for number, (path, color) in enumerate(rows.items()):
        pixels = np.full((12, 9, 3), COLORS[color], np.uint8)
        pixels[0, 0] = number
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(encode(pixels))
    return folder


@pytest.fixture(scope="session")
def colors(tmp_path_factory):
    """Pictures in two splits; in test, one of five reds and both blues are green."""
    rows = {f"train/{name}/{n}.png": name for name in COLORS for n in range(4)}
    rows |= {f"test/red/{n}.png": "red" for n in range(4)}
    rows |= {"test/red/wrong.png": "green"}
    rows |= {f"test/green/{n}.png": "green" for n in range(3)}
    rows |= {f"test/blue/{n}.png": "green" for n in range(2)}
    return write_pictures(tmp_path_factory.mktemp("colors"), rows)


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """The folder of a SavedModel that finds the brightest channel, and the model as loaded."""
    import keras
    import tensorflow as tf

    from darkroom.training.export import export_model

    inputs = keras.Input((6, 5, 3), dtype="uint8")
    means = keras.layers.GlobalAveragePooling2D()(keras.layers.Rescaling(1 / 255)(inputs))
    # The label map is sorted: blue, green, red.
    reversed_means = keras.ops.flip(means, axis=1)
    outputs = keras.layers.Softmax()(reversed_means * 5)
    folder = tmp_path_factory.mktemp("exported") / "model"
    export_model(keras.Model(inputs, outputs), LABELS, (6, 5), str(folder))
    return folder, tf.saved_model.load(str(folder))


@pytest.fixture
def model(exported, monkeypatch):
    """That folder, from which no test needs to load the model again."""
    import tensorflow as tf

    folder, loaded = exported
    inner = tf.saved_model.load
    monkeypatch.setattr(
        tf.saved_model, "load", lambda path: loaded if path == str(folder) else inner(path)
    )
    return folder
