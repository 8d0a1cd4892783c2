"""Computes the features of images by a frozen base, of each image and view once.

A view is one way to show an image.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from darkroom import storage
from darkroom.features.cache import FeatureCache, make_cache_key
from darkroom.features.networks.network import identify_network
from darkroom.features.values import make_values
from darkroom.input.pipeline import decode_labeled_image, map_images
from darkroom.input.source import ImageSource, LabeledImage
from darkroom.options.input import NO_CACHE, RESIZES, InputOptions
from darkroom.runtime import progress
from darkroom.runtime.arrays import Array
from darkroom.runtime.text import format_count

# Images that the base sees at once, and those of which a killed training loses the features.
_BATCH_IMAGES, _KEPT_IMAGES = 32, 256
# Batches of which the time is taken where no features are computed, with the first.
_MEASURED = 3


class FeatureView(NamedTuple):
    """One way to show an image.

    Attributes:
        resize: How it gets its size; see `InputOptions`.
        is_mirrored: Whether left and right change places.
    """

    resize: str
    is_mirrored: bool

    @property
    def name(self) -> str:
        """Names the view in a cache."""
        return f"{self.resize}-mirrored" if self.is_mirrored else self.resize


class SplitFeatures(NamedTuple):
    """The features of a split.

    Attributes:
        values: float32 [N, V, D]: of N images, in V views.
        labels: What they are labelled with, [N, ...].
    """

    values: Array
    labels: Array


class Computer:
    """Computes features, or finds them in a cache.

    Args:
        base: A Keras model from uint8 [B, height, width, 3] to features [B, D].
        name: The model and all that decides its features, besides weights and views.
        options: How images are decoded.
        cache: The folder of the cache; None for none.
    """

    def __init__(self, base: Any, name: str, options: InputOptions, cache: str | None) -> None:
        # Both passes over the images must have the same order.
        self._options = replace(options, record_cache=NO_CACHE, deterministic=True, service=None)
        self._cache = cache
        self._identity = identify_network(name, options.image_size, base.get_weights())
        self._width = int(base.output_shape[-1])
        self._view_seconds: list[float] = []
        pixels = tf.TensorSpec((None, *options.image_size, 3), tf.uint8)
        self._run = tf.function(
            lambda images: tf.cast(base(images, training=False), tf.float32),
            input_signature=[pixels],
            autograph=False,
        )

    def compute(self, source: ImageSource, split: str, views: list[FeatureView]) -> SplitFeatures:
        """Returns the features of all images of a split.

        Args:
            source: The images.
            split: Its name, for the progress.
            views: The views.
        """
        keys, labels = _read_keys(source, self._options)
        rows: dict[bytes, list[int]] = {}
        for row, key in enumerate(keys):
            rows.setdefault(key, []).append(row)
        # A million images have 10 GB.
        values = make_values((len(keys), len(views), self._width))
        names = [f"{self._identity}-{view.name}" for view in views]
        caches = [FeatureCache(self._cache and storage.join(self._cache, name)) for name in names]
        found = [cache.load(rows, values[:, n]) for n, cache in enumerate(caches)]
        known = set.intersection(*found)
        missing = np.zeros(len(keys), bool)
        missing[[own[0] for key, own in rows.items() if key not in known]] = True
        if known:
            images = format_count(len(known), f"image of the {split} split", "are")
            progress.note(f"{images} known from {self._cache}.")
        with progress.step(f"Features of {split}") if missing.any() else nullcontext():
            for numbers, computed in self._compute_missing(source, missing, views):
                for number, each in zip(numbers, computed, strict=True):
                    values[rows[keys[number]]] = each
                for n, cache in enumerate(caches):
                    cache.add([keys[number] for number in numbers], computed[:, n])
        return SplitFeatures(values, labels)

    def _compute_missing(
        self, source: ImageSource, missing: Array, views: list[FeatureView]
    ) -> Iterator[tuple[list[int], Array]]:
        """Yields numbers of images, and their features [n, V, D], in the groups of the cache."""
        total, done = int(missing.sum()), 0
        numbers: list[int] = []
        computed: list[Array] = []
        for several, pixels in self._decode(source, missing, views) if total else ():
            numbers += several.numpy().tolist()
            flat = self._compute_batch(tf.reshape(pixels, (-1, *pixels.shape[2:])))
            computed.append(flat.reshape(-1, len(views), self._width))
            progress.advance(done + len(numbers), total, "images")
            if len(numbers) >= _KEPT_IMAGES:
                yield numbers, np.concatenate(computed)
                done, numbers, computed = done + len(numbers), [], []
        if numbers:
            yield numbers, np.concatenate(computed)

    def _compute_batch(self, images: Any) -> Array:
        """Returns the features of images, float32 [B, D], and keeps how long one of them took."""
        started = time.monotonic()
        found: Array = self._run(images).numpy()
        self._view_seconds.append((time.monotonic() - started) / len(found))
        return found

    def measure_view(self, *, must_run: bool) -> float:
        """Returns how long the base takes for a view, in seconds; 0 if that is not known.

        Args:
            must_run: Measure it if no features were computed.
        """
        while must_run and len(self._view_seconds) < _MEASURED:
            self._compute_batch(tf.zeros((_BATCH_IMAGES, *self._options.image_size, 3), tf.uint8))
        # Without the first batch, for which the graph is built.
        return statistics.median(self._view_seconds[1:] or [0.0])

    def _decode(
        self, source: ImageSource, missing: Array, views: list[FeatureView]
    ) -> tf.data.Dataset:
        """Returns batches of missing images: numbers int64 [B], views uint8 [B, V, H, W, 3]."""
        wanted = tf.constant(missing)
        elements = source.make_elements(self._options, None).enumerate()
        elements = elements.filter(lambda number, _: wanted[number])
        images = map_images(
            elements,
            lambda number, element: (
                number,
                decode_views(source.parse(element), views, self._options),
            ),
            self._options,
        )
        return images.batch(_BATCH_IMAGES).prefetch(1)


def list_views(options: InputOptions) -> list[FeatureView]:
    """Returns the views of training images. The first one is that of evaluation and serving."""
    augmentation = options.augmentation
    others = [each for each in RESIZES if each != options.resize] if augmentation.crop else []
    mirrored = (False, True) if augmentation.flip else (False,)
    return [FeatureView(resize, each) for resize in (options.resize, *others) for each in mirrored]


def decode_views(image: LabeledImage, views: list[FeatureView], options: InputOptions) -> tf.Tensor:
    """Returns views of an image, uint8 [V, height, width, 3], RGB."""
    whole = {
        resize: decode_labeled_image(image, replace(options, resize=resize))[0]
        for resize in dict.fromkeys(view.resize for view in views)
    }
    pixels = [
        tf.reverse(whole[view.resize], (1,)) if view.is_mirrored else whole[view.resize]
        for view in views
    ]
    return tf.stack(pixels)


def _read_keys(source: ImageSource, options: InputOptions) -> tuple[list[bytes], Array]:
    """Returns a hash of the contents of each image, 32 bytes, and what it is labelled with."""

    def parse(element: tf.Tensor) -> tuple[tf.Tensor, ...]:
        image = source.parse(element)
        shape = tf.zeros((0,), tf.int32)
        if image.channels is not None:
            shape = tf.concat((image.shape, (tf.cast(image.channels, tf.int32),)), axis=0)
        return image.encoded, shape, image.label

    keys, labels = [], []
    elements = source.make_elements(options, None)
    for encoded, shape, label in map_images(elements, parse, options).as_numpy_iterator():
        keys.append(make_cache_key(hashlib.sha256(encoded).digest(), shape.tolist() or None))
        labels.append(label)
    return keys, np.array(labels)
