"""Makes augmentations.png, the picture of docs/augmentation.md: one row for each augmentation.

    python docs/images/augmentations.py

The image is china.jpg of scikit-learn, reduced.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf
from PIL import Image, ImageDraw, ImageFont
from sklearn.datasets import load_sample_images

from darkroom.input.graph.augment import augment_batch, flip_image
from darkroom.input.graph.decode import view_image
from darkroom.options.augmentation import parse_augmentation

_ROWS = (
    "none",
    "crop",
    "flip",
    "color",
    "rotate=30",
    "cutout",
    "mixup=1",
    "crop,flip,color,cutout",
)
_SAMPLES = 6
_HEIGHT, _WIDTH, _GAP, _LABEL = 66, 88, 4, 18
_SEED = 5


def make_row(text: str, photos: list[np.ndarray]) -> np.ndarray:
    """Returns uint8 [samples, height, width, 3]; with mixup, the photos take turns."""
    augmentation = parse_augmentation(text)
    seeds = tf.constant([(_SEED, number) for number in range(_SAMPLES)], tf.int64)
    images = []
    for number in range(_SAMPLES):
        photo = photos[number % 2 if augmentation.mixup else 0]
        encoded = tf.io.encode_png(photo)
        size, seed = (_HEIGHT, _WIDTH), seeds[number]
        window_seed = seed if augmentation.crop else None
        image, _ = view_image(encoded, size, seed=window_seed, augmentation=augmentation)
        images.append(flip_image(image, seed)[0] if augmentation.flip else image)
    labels = tf.range(_SAMPLES, dtype=tf.int64) % 2
    return augment_batch(tf.stack(images), labels, seeds, augmentation, num_classes=2)[0].numpy()


def draw_rows(photos: list[np.ndarray]) -> Image.Image:
    """Returns the picture."""
    row_height = _LABEL + _HEIGHT + _GAP
    size = (_GAP + _SAMPLES * (_WIDTH + _GAP), len(_ROWS) * row_height)
    picture = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(picture)
    for row, text in enumerate(_ROWS):
        top = row * row_height
        draw.text((_GAP, top + 3), text, "black", ImageFont.load_default(13))
        for column, image in enumerate(make_row(text, photos)):
            left = _GAP + column * (_WIDTH + _GAP)
            picture.paste(Image.fromarray(image), (left, top + _LABEL))
    return picture


def main() -> None:
    """Writes the picture beside this file."""
    size = (_WIDTH * 2, _HEIGHT * 2)
    photos = [
        np.asarray(Image.fromarray(image).resize(size, Image.Resampling.BOX))
        for image in load_sample_images().images
    ]
    picture = draw_rows(photos)
    picture.save(Path(__file__).with_suffix(".png"), optimize=True)


if __name__ == "__main__":
    main()
