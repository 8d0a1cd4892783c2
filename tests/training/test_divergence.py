"""A loss that is not a number stops a training, which says where and what to try."""

from __future__ import annotations

import re
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from darkroom.conversion.convert import convert
from darkroom.data.open import open_data
from darkroom.errors import DataError
from darkroom.input.files import open_images
from darkroom.input.opening import open_splits
from darkroom.options.training import TrainingOptions
from darkroom.training.devices.placement import make_placement
from darkroom.training.run import train

from ..pictures import encode

pytestmark = [pytest.mark.tensorflow, pytest.mark.usefixtures("simple_decoder")]

SIZE = (8, 8)


class _DivisionLayer(keras.layers.Layer):
    """Makes images of one brightness a division by zero."""

    def call(self, pixels):
        mean = keras.ops.mean(pixels, axis=(1, 2), keepdims=True)
        return pixels / keras.ops.where(keras.ops.abs(mean - 200.0) < 1.0, 0.0, 255.0)


def _make(num_classes, image_size):
    inputs = keras.Input((*image_size, 3), dtype="uint8")
    x = _DivisionLayer()(keras.layers.Rescaling(1.0)(inputs))
    x = keras.layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, keras.layers.Dense(num_classes, activation="softmax")(x))


@pytest.fixture(autouse=True)
def own_models(monkeypatch):
    module = types.ModuleType("own_models")
    module.make = _make
    monkeypatch.setitem(sys.modules, "own_models", module)


@pytest.fixture
def folder(tmp_path):
    """Images in a folder; one of them has the brightness 200."""
    for split in ("train", "eval"):
        for number in range(12):
            value = 200 if (split, number) == ("train", 7) else 10 * number
            place = tmp_path / "images" / split / "ab"[number % 2]
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number}.png").write_bytes(encode(np.full((8, 8, 3), value, np.uint8)))
    return tmp_path / "images"


def _train(splits, run_dir, **values):
    base = {"model": "own_models:make", "image_size": SIZE, "batch_size": 3, "epochs": 3}
    options = TrainingOptions(**{**base, "augment": "none", **values})
    return train(
        options,
        make_placement(options.strategy),
        training=splits["train"],
        evaluation=splits["eval"],
        run_dir=str(run_dir),
    )


def test_the_images_of_the_batch_are_named(folder, tmp_path):
    splits = open_images(str(folder)).splits
    with pytest.raises(DataError) as caught:
        _train(splits, tmp_path / "run", loop="fit", checkpoint_steps=1)
    found = re.fullmatch(
        r"The loss is nan in batch [1-4] of epoch 1, whose images are (\S+), (\S+), (\S+)\.",
        caught.value.message,
    )
    assert any(name.endswith("train/b/7.png") for name in found.groups())
    assert caught.value.hint.startswith("Use a lower --learning-rate than 0.003, or look at these")
    assert not (tmp_path / "run" / "history.json").exists()
    # No checkpoint has weights that are not numbers.
    latest = tf.train.latest_checkpoint(str(tmp_path / "run" / "checkpoints"))
    if latest:  # the image may be in the first batch
        reader = tf.train.load_checkpoint(latest)
        for name in reader.get_variable_to_shape_map():
            if name.startswith("model/"):
                assert np.isfinite(reader.get_tensor(name)).all()


def test_several_batches_of_an_execution_are_named_together(folder, tmp_path):
    """In records, and in the other loop."""
    root = str(tmp_path / "records")
    convert(str(folder), root)
    splits = open_splits(open_data([root]).splits)
    with pytest.raises(DataError) as caught:
        _train(splits, tmp_path / "run", loop="custom", steps_per_execution=4)
    message = caught.value.message
    assert "nan in one of the batches 1 to 4 of epoch 1, whose images are" in message
    assert message.endswith(" and 9 more.")
