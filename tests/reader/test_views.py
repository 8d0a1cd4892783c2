"""The pixels of the reader are those of the graph, for the same records and seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from darkroom.conversion.convert import convert
from darkroom.data.open import open_data
from darkroom.images.views import PNG_FORM
from darkroom.input.graph.augment import augment_batch, flip_image
from darkroom.input.graph.decode import view_image
from darkroom.options import ConversionOptions
from darkroom.options.augmentation import Augmentation, parse_augmentation
from darkroom.reader import draws
from darkroom.reader.batches import Batch, NumpyArrays
from darkroom.reader.decoding import ViewOptions
from darkroom.reader.record_files import find_image_bytes
from darkroom.reader.records import SplitRecords
from darkroom.reader.windows import sample_windows

pytest.importorskip("cv2")
pytestmark = pytest.mark.tensorflow
EPOCH = draws.number_epoch(7, 3)


@pytest.fixture(scope="module")
def stored(records: Path) -> SplitRecords:
    return open_records(records)


def open_records(folder: Path) -> SplitRecords:
    return SplitRecords(open_data([folder]).splits["train"])


def read(stored: SplitRecords, options: ViewOptions, numbers: np.ndarray) -> tuple[np.ndarray, ...]:
    batch = Batch(stored, numbers, options, NumpyArrays(), numbers + 1000, EPOCH)
    images, labels, _ = batch.wait()
    return images, labels


def read_by_graph(
    stored: SplitRecords, options: ViewOptions, numbers: np.ndarray
) -> tuple[np.ndarray, ...]:
    steps = options.augmentation
    seeds = tf.constant(np.stack((numbers + 1000, np.full(len(numbers), EPOCH)), 1))

    @tf.function(reduce_retracing=True)
    def view(encoded: tf.Tensor, shape: tf.Tensor, channels: tf.Tensor, seed: tf.Tensor):
        crops = (seed, steps) if steps.crop else ()
        is_raw = stored.facts["format"][0] > PNG_FORM
        image, _ = view_image(
            encoded,
            options.image_size,
            options.resize,
            *crops,
            shape=shape,
            channels=channels if is_raw else None,
            scaled=options.scaled_decoding,
        )
        return flip_image(image, seed, steps.flip_share) if steps.flip else image

    views, places = [], stored.find_places(numbers)
    for place, (number, seed) in enumerate(zip(numbers, seeds, strict=True)):
        image, _ = find_image_bytes(stored.files.read(places, place), places, place)
        shape = [stored.facts[name][number] for name in ("height", "width")]
        channels = tf.constant(stored.facts["channels"][number], tf.int64)
        views.append(view(tf.constant(bytes(image)), tf.constant(shape, tf.int32), channels, seed))
    labels = tf.constant(stored.take_targets(numbers))
    images, labels = augment_batch(tf.stack(views), labels, seeds, steps, 3)
    return images.numpy(), labels.numpy()


@pytest.mark.parametrize(
    ("steps", "size", "resize", "scaled", "mean"),
    [
        ("none", (96, 96), "stretch", True, 0.2),
        ("none", (40, 90), "center_crop", True, 0.3),
        ("flip,cutout=0.4", (64, 120), "stretch", False, 0.2),
        ("crop=0.5-1,flip", (40, 90), "stretch", True, 0.3),
        pytest.param("color=0.7", (64, 64), "stretch", True, 0.4, marks=pytest.mark.long),
        pytest.param("rotate=180", (64, 90), "stretch", True, 0.6, marks=pytest.mark.long),
        ("crop,flip,color,rotate,cutout,mixup", (64, 64), "stretch", True, 0.6),
    ],
)
def test_views_are_those_of_the_graph(stored, steps, size, resize, scaled, mean):
    options = ViewOptions(size, resize, parse_augmentation(steps), scaled, {}, None)
    numbers = np.arange(len(stored))
    images, labels = read(stored, options, numbers)
    expected, expected_labels = read_by_graph(stored, options, numbers)
    difference = np.abs(images.astype(int) - expected).reshape(len(images), -1).mean(axis=1)
    # Resizing and rotating round differently, and edges of windows have other colors.
    assert difference.mean() < mean
    assert difference.max() < 1
    assert np.array_equal(labels, expected_labels)


@pytest.mark.parametrize("encoding", ["keep", "raw"])
def test_pixels_that_are_not_resized_are_equal(photos, tmp_path, encoding):
    # One of each form, to train.
    convert(
        photos[:5].assign(split="train"), tmp_path, options=ConversionOptions(encoding=encoding)
    )
    stored = open_records(tmp_path)
    assert len(stored) == 5
    for number in range(5):
        size = int(stored.facts["height"][number]), int(stored.facts["width"][number])
        options = ViewOptions(size, "stretch", Augmentation(flip=True), True, {}, None)
        rows = np.array([number])
        expected, _ = read_by_graph(stored, options, rows)
        assert np.array_equal(read(stored, options, rows)[0], expected)


@pytest.mark.parametrize(
    ("area", "ratio"),
    [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.9, 1.0), (1.0, 1.0)), ((0.3, 0.3), (0.1, 9.0))],
)
def test_windows_are_those_of_tensorflow(area, ratio):
    rng = np.random.default_rng(2)
    small, large = rng.integers(1, 40, (200, 2)), rng.integers(1, 6000, (300, 2))
    sizes, places = np.concatenate((small, large)), rng.integers(0, 1 << 40, 500)
    steps = Augmentation(crop=True, crop_area=area, crop_ratio=ratio)
    found = sample_windows(sizes, places, EPOCH, steps)

    @tf.function
    def sample(size: tf.Tensor, place: tf.Tensor) -> tf.Tensor:
        begin, shape, _ = tf.image.stateless_sample_distorted_bounding_box(
            tf.concat((tf.cast(size, tf.int32), (3,)), 0),
            tf.zeros((1, 0, 4)),
            tf.stack((place, tf.constant(EPOCH, tf.int64))),
            min_object_covered=0.0,
            aspect_ratio_range=ratio,
            area_range=area,
            max_attempts=10,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.concat((begin[:2], shape[:2]), 0)

    expected = [
        sample(*each).numpy() for each in zip(tf.constant(sizes), tf.constant(places), strict=True)
    ]
    assert np.array_equal(found, expected)
