"""Keras's loader of folders, and random windows of its batches."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from darkroom.input.graph.decode import view_image
from input_rows.contract import AREA, BATCH, RATIO, SIZE


def open_keras(folder: Path) -> tf.data.Dataset:
    """Returns batches of whole images (float32 [B, 224, 224, 3], int32 [B])."""
    return keras.utils.image_dataset_from_directory(
        folder, image_size=(SIZE, SIZE), batch_size=BATCH, shuffle=False, verbose=False
    )


def check_pixels(folder: Path) -> None:
    """Stops when the rounded pixels of Keras's loader differ from ours."""
    data = open_keras(folder)
    (images, _) = next(iter(data))
    for image, path in zip(images, data.file_paths, strict=False):
        ours, _ = view_image(tf.io.read_file(path), (SIZE, SIZE), scaled=False)
        if not np.array_equal(ours, np.floor(image.numpy() + 0.5)):
            raise SystemExit(f"Pixels of {path} differ.")


def crop_batch(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Cuts random windows out of a batch, and resizes them bilinearly."""
    count = tf.shape(images)[0]
    area = tf.random.uniform([count], *AREA)
    ratio = tf.exp(tf.random.uniform([count], *np.log(RATIO)))
    height = tf.minimum(tf.sqrt(area / ratio), 1)
    width = tf.minimum(tf.sqrt(area * ratio), 1)
    top = tf.random.uniform([count]) * (1 - height)
    left = tf.random.uniform([count]) * (1 - width)
    boxes = tf.stack((top, left, top + height, left + width), axis=1)
    return tf.image.crop_and_resize(images, boxes, tf.range(count), (SIZE, SIZE)), labels
