"""An exported model decodes images as evaluation does."""

from __future__ import annotations

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from darkroom.input.pipeline import make_eval_dataset
from darkroom.options.input import InputOptions
from darkroom.training.export import export_model

from ..pictures import encode

pytestmark = pytest.mark.tensorflow


def _shares(size):
    """A model whose probabilities are the shares of its pixels in their sum."""
    inputs = keras.Input((*size, 3), dtype="uint8")
    flat = keras.layers.Flatten()(keras.layers.Rescaling(1.0)(inputs))
    return keras.Model(inputs, flat / keras.ops.sum(flat, axis=1, keepdims=True))


def _random_images(count):
    rng = np.random.default_rng(0)
    images = []
    for number in range(count):
        pixels = rng.integers(0, 256, (*rng.integers(20, 200, 2), 3), np.uint8)
        exif = Image.Exif()
        exif[0x0112] = number % 8 + 1
        options = {"quality": 80, "exif": exif.tobytes()} if number % 2 else {}
        images.append(encode(pixels, "JPEG" if number % 2 else "PNG", **options))
    return images


def test_served_pixels_equal_those_of_evaluation_to_the_last_bit(helpers, tmp_path):
    size, resize = (24, 16), "center_crop"
    images = _random_images(8)
    records = [
        helpers.make_example({"image/encoded": image, "image/class/label": number})
        for number, image in enumerate(images)
    ]
    files = helpers.write_split(tmp_path, "eval", records)
    model = _shares(size)
    directory = str(tmp_path / "model")
    export_model(model, [str(n) for n in range(np.prod(size) * 3)], size, directory, resize=resize)
    served = tf.saved_model.load(directory)
    by_bytes = served.signatures["serving_default"](image_bytes=tf.constant(images))["scores"]
    by_example = served.signatures["serving_examples"](examples=tf.constant(records))
    np.testing.assert_array_equal(by_bytes, by_example["probabilities"])

    seen = 0
    for pixels, numbers in make_eval_dataset(
        files, InputOptions(size, batch_size=5, resize=resize)
    ):
        expected = tf.reshape(tf.cast(pixels, tf.float32), (len(numbers), -1))
        shares = tf.gather(by_bytes, numbers)
        # Sums of whole numbers: exact, and so are the pixels.
        found = np.rint(shares * tf.reduce_sum(expected, 1, keepdims=True))
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(model(pixels), shares)
        seen += len(numbers)
    assert seen == 8
