"""What input pipelines read from: encoded images with their labels, wherever they lie."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import tensorflow as tf

from darkroom.options.input import InputOptions

# Keeps the epochs of one seed apart from those of the next.
_SEED_STEP = 1_000_003


@dataclass(frozen=True)
class EpochOrder:
    """The order of an epoch, and the random numbers of its images.

    Attributes:
        seed: Seed of all epochs. TensorFlow mixes it with that of `tf.random.set_seed`.
        epoch: Number of the one epoch, from 0, on which all depends; None: every iteration of a
            dataset is another one, in every run the same ones.
        by_service: Whether a tf.data service runs the dataset, which must then begin with the list
            of its files; only their order depends on seed and epoch.
    """

    seed: int
    epoch: int | None = None
    by_service: bool = False

    def shuffle(self, elements: tf.data.Dataset, count: int) -> tf.data.Dataset:
        """Shuffles elements of which `count` wait at a time."""
        each = self.epoch is None
        return elements.shuffle(count, self._number, reshuffle_each_iteration=each)

    def shuffle_files(self, files: Sequence[str]) -> tf.data.Dataset:
        """Returns paths of files, string [] each, all of them shuffled."""
        if self.by_service:
            # A shuffle in the graph would let the first worker take all of them.
            files = random.Random(self._number).sample(files, len(files))
            return tf.data.Dataset.from_tensor_slices(files)
        return self.shuffle(tf.data.Dataset.from_tensor_slices(files), len(files))

    def number(self, elements: tf.data.Dataset) -> tf.data.Dataset:
        """Gives each element a number of its own: returns (int64 [], element)."""
        if self.by_service:
            # A second dataset beside the elements would be split among the workers, too.
            return elements.map(
                lambda element: (
                    tf.random.uniform((), maxval=tf.int64.max, dtype=tf.int64),
                    element,
                )
            )
        if self.epoch is not None:
            return elements.enumerate()
        numbers = tf.data.Dataset.random(self.seed, rerandomize_each_iteration=True)
        return tf.data.Dataset.zip((numbers, elements))

    def make_seeds(self, number: tf.Tensor) -> tf.Tensor:
        """Returns int64 [2], from which all that is random in an element follows."""
        return tf.stack((number, tf.constant(self._number, tf.int64)))

    @property
    def _number(self) -> int:
        return self.seed * _SEED_STEP + (self.epoch or 0)


class LabeledImage(NamedTuple):
    """An image as it is stored.

    Attributes:
        encoded: string [], the bytes of its file.
        label: int64 [], the number of its label.
        shape: int32 [2], (height, width) in pixels, of an image that is known to be upright; None
            where its bytes have to be looked at.
        channels: int64 [], 1 or 3, where `encoded` is the pixels themselves; None for a file.
    """

    encoded: tf.Tensor
    label: tf.Tensor
    shape: tf.Tensor | None
    channels: tf.Tensor | None = None


class ImageSource(Protocol):
    """Images that can be listed in an order that a seed decides, and then be read.

    Attributes:
        element_bytes: Mean size of an element in memory.
    """

    element_bytes: float

    @property
    def is_counted(self) -> bool:
        """Whether the number of images is known, so that nothing is read to count them."""

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of images in a part; reads everything where nothing else tells.

        Args:
            part: (index, count), as in `select`.
        """

    def identify(self) -> str:
        """Returns a hash that changes with the images and their order, not with their folder."""

    def select(self, part: tuple[int, int]) -> ImageSource:
        """Returns one of `count` parts with files of their own, the one with number `index`."""

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns what stands for the images: one tensor each, small enough to be shuffled.

        Args:
            options: How to read.
            order: Decides the order of the files; None: their own order.
        """

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Returns the image of an element, by graph operations."""
