"""Where points go in the graph: each step alone, and chains of them, pixel by pixel."""

from __future__ import annotations

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from tests.images.coordinates import check_points, make_coordinates

from darkroom.input.graph.augment import augment_batch, flip_image, locate_changes
from darkroom.input.graph.decode import locate_points, make_decoder
from darkroom.options.augmentation import Augmentation
from darkroom.targets.geometry import Matrix, cut

pytestmark = pytest.mark.tensorflow

SOURCE = (96, 170)
# Of views: a decoder is traced for each, in most of the time of these tests.
SIZES = (90, 90), (40, 33)


def _encode(form: str, orientation: int = 1, source: tuple[int, int] = SOURCE) -> bytes:
    image = Image.fromarray(make_coordinates(*source))
    exif = image.getexif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    more = {"quality": 100, "subsampling": 0} if form == "JPEG" else {}
    image.save(file, form, exif=exif, **more)
    return file.getvalue()


def _decode(data, size, resize="stretch", seed=None, **more):
    augmentation = Augmentation(crop=True) if seed else None
    decoder = make_decoder(size, resize, augmentation, scaled=True, resized=True, located=True)
    seeds = tf.constant(seed, tf.int64) if seed else None
    pixels, steps = decoder(tf.constant(data), seeds, more.get("shape"), more.get("channels"))
    return pixels, locate_points(steps, size)


@pytest.mark.parametrize(
    ("orientation", "resize"),
    [
        *((orientation, "random") for orientation in range(1, 9)),
        *((orientation, resize) for orientation in (1, 6) for resize in ("stretch", "center_crop")),
    ],
)
def test_decoding_says_where_points_went(orientation, resize):
    """Also at half the size, for which (40, 33) is small enough, and with even sides."""
    for source in ((97, 171), SOURCE)[: 2 if orientation == 1 else 1]:
        data = _encode("JPEG", orientation, source)
        for number, size in enumerate(SIZES):
            seed = (orientation, number) if resize == "random" else None
            pixels, matrix = _decode(data, size, "stretch" if seed else resize, seed)
            check_points(pixels, matrix, source)


@pytest.mark.parametrize(("form", "orientation"), [("PNG", 1), ("PNG", 6), ("RAW", 1)])
def test_other_forms_do_too(form, orientation):
    more = {"shape": tf.constant(SOURCE), "channels": tf.constant(3, tf.int64)}
    is_raw = form == "RAW"
    data = make_coordinates(*SOURCE).tobytes() if is_raw else _encode(form, orientation)
    for resize, seed in (("center_crop", None), ("stretch", (3, 4))):
        pixels, matrix = _decode(data, SIZES[0], resize, seed, **(more if is_raw else {}))
        check_points(pixels, matrix, SOURCE)


@pytest.mark.parametrize("turned", [1, 6])
def test_a_chain_is_the_product_of_its_steps(turned):
    data, size = _encode("JPEG", turned), SIZES[0]
    views, windows = zip(
        *(_decode(data, size, seed=(5, number)) for number in range(4)), strict=True
    )
    seeds = tf.constant([(5, number) for number in range(4)], tf.int64)
    mirrored = tf.stack([flip_image(*each) for each in zip(views, seeds, strict=True)])
    assert 0 < sum(np.array_equal(*each) for each in zip(views, mirrored, strict=True)) < 4
    augmentation = Augmentation(flip=True, rotate=20)
    turned, _ = augment_batch(mirrored, tf.zeros(4, tf.int64), seeds, augmentation)
    turn = locate_changes(seeds, augmentation, size)
    for number, before in enumerate(windows):
        whole = before.then(Matrix(*(value[number] for value in turn)))
        # The corners are reflected: they come from elsewhere.
        inside = turned.numpy()[number, 20:-20, 20:-20]
        check_points(inside, whole.then(cut(20, 20)), SOURCE)
