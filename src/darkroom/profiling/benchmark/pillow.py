"""Images for training, read with Pillow in Python, to compare with darkroom's input."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from PIL import Image

from darkroom.options.input import InputOptions
from darkroom.profiling.benchmark.sample import InputSample

_Array = np.ndarray[Any, np.dtype[Any]]

_MAX_ATTEMPTS = 10


class PillowImages:
    """Random windows of the files of a sample, which are read and decoded one by one."""

    def __init__(self, sample: InputSample) -> None:
        self._sample = sample
        self._generator = random.Random(sample.options.seed)

    def __call__(self) -> Iterator[tuple[_Array, int]]:
        """Yields an epoch of (uint8 [height, width, 3], label) in random order."""
        for path, label in _shuffle(self._sample, self._generator):
            yield _cut_view(_read_image(path), self._generator, self._sample.options), label


class PreloadedBatches:
    """Batches of random windows of images. All images are decoded when this is made."""

    def __init__(self, sample: InputSample) -> None:
        self._sample = sample
        self._generator = random.Random(sample.options.seed)
        self._images = {path: _read_image(path) for path in sample.paths}

    def __iter__(self) -> Iterator[tuple[_Array, _Array]]:
        """Yields an epoch of (uint8 [B, height, width, 3], int64 [B]) in random order."""
        entries, options = _shuffle(self._sample, self._generator), self._sample.options
        for begin in range(0, len(entries), options.batch_size):
            chosen = entries[begin : begin + options.batch_size]
            views = [_cut_view(self._images[path], self._generator, options) for path, _ in chosen]
            yield np.stack(views), np.array([label for _, label in chosen], np.int64)


def measure_free_memory() -> int:
    """Returns the free memory in bytes, with the memory of cached files."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["MemAvailable"].split()[0]) << 10


def _read_image(path: str) -> Image.Image:
    with Image.open(path) as image:
        return image.convert("RGB")


def _shuffle(sample: InputSample, generator: random.Random) -> list[tuple[str, int]]:
    entries = list(zip(sample.paths, sample.labels, strict=True)) * sample.passes
    generator.shuffle(entries)
    return entries


def _cut_view(image: Image.Image, generator: random.Random, options: InputOptions) -> _Array:
    height, width = options.image_size
    box = _sample_box(image.size, generator, options)
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR, box))


def _sample_box(
    size: tuple[int, int], generator: random.Random, options: InputOptions
) -> tuple[float, float, float, float]:
    """Returns left, top, right and bottom of a random window, chosen as TensorFlow does."""
    augmentation = options.augmentation
    for _ in range(_MAX_ATTEMPTS):
        area = size[0] * size[1] * generator.uniform(*augmentation.crop_area)
        ratio = generator.uniform(*augmentation.crop_ratio)
        width, height = math.sqrt(area * ratio), math.sqrt(area / ratio)
        if width <= size[0] and height <= size[1]:
            left = generator.uniform(0, size[0] - width)
            top = generator.uniform(0, size[1] - height)
            return left, top, left + width, top + height
    return 0, 0, *size
