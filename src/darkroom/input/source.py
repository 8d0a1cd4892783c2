"""Where input pipelines read encoded images and their labels from."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from darkroom.data.splits import Split
from darkroom.options.input import InputOptions
from darkroom.reader.draws import number_epoch


@dataclass(frozen=True)
class EpochOrder:
    """The order of an epoch, and the random numbers of its images.

    Attributes:
        seed: Seed of all epochs. TensorFlow mixes it with the seed of `tf.random.set_seed`.
        epoch: Number of the epoch, from 0; None: each iteration of a dataset is the next epoch, and
            every run has the same epochs.
        by_service: Whether a tf.data service runs the dataset. It must then begin with the list of
            its files, and only their order depends on the seed and the epoch.
    """

    seed: int
    epoch: int | None = None
    by_service: bool = False

    def shuffle(self, elements: tf.data.Dataset, count: int) -> tf.data.Dataset:
        """Shuffles elements in a buffer of `count` elements."""
        each = self.epoch is None
        return elements.shuffle(count, self._number, reshuffle_each_iteration=each)

    def shuffle_files(self, files: Sequence[str]) -> tf.data.Dataset:
        """Returns the paths of files in random order for a tf.data service, string [] each."""
        # With a shuffle in the graph, the first worker would take all files.
        files = random.Random(self._number).sample(files, len(files))
        return tf.data.Dataset.from_tensor_slices(files)

    def with_number(self, make: Callable[[tf.Tensor], tf.data.Dataset]) -> tf.data.Dataset:
        """Returns the dataset that a function makes of the number of an epoch, int64 []."""
        if self.epoch is not None:
            return make(tf.constant(self._number, tf.int64))
        numbers = tf.data.Dataset.random(self.seed, rerandomize_each_iteration=True)
        return numbers.take(1).flat_map(tf.autograph.experimental.do_not_convert(make))

    def number(self, elements: tf.data.Dataset) -> tf.data.Dataset:
        """Returns each element with its number: (int64 [], element)."""
        if self.by_service:
            # A second dataset beside the elements would be split among the workers as well.
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
        """Returns the seeds of everything random in an element, int64 [2]."""
        return tf.stack((number, tf.constant(self._number, tf.int64)))

    @property
    def _number(self) -> int:
        return number_epoch(self.seed, self.epoch or 0)


class LabeledImage(NamedTuple):
    """An image as it is stored.

    Attributes:
        encoded: string [], the bytes of its file.
        label: int64 [], the number of its label. Or float32 [C]: 1 for each of its labels, else 0;
            or float32 [K], its numbers. NaN says that it is not known. Or a dict of tensors, as
            `darkroom.targets.learning.Learning` of the kind of target says.
        shape: int32 [2], (height, width) in pixels, if the image is known to be upright; None if
            its bytes must be read to know.
        channels: int64 [], 1 or 3, if `encoded` is the pixels themselves; None for a file.
        columns: Other features of its record that batches have, by name, [] each.
    """

    encoded: tf.Tensor
    label: Any
    shape: tf.Tensor | None
    channels: tf.Tensor | None = None
    columns: Mapping[str, tf.Tensor] = MappingProxyType({})


def spread(count: int, total: int) -> npt.NDArray[np.int64]:
    """Returns `count` places of `total`, or all, that are evenly spread, int64 [N].

    The images of a split are in the order of their spans, so its first ones say nothing of others.
    """
    count = min(count, total)
    return np.arange(count, dtype=np.int64) * total // max(1, count)


class ImageSource(Protocol):
    """Images that are first listed, in the order of a seed, and then read.

    Attributes:
        element_bytes: Mean size of an element in memory.
    """

    element_bytes: float

    @property
    def split(self) -> Split:
        """The split that has them."""

    @property
    def is_counted(self) -> bool:
        """Whether the number of images is known without reading them."""

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of images in a part. It reads them all if that is the only way.

        Args:
            part: (index, count), as in `select`.
        """

    def identify(self) -> str:
        """Returns a hash of the images and their order, which does not depend on their folder."""

    def select(self, part: tuple[int, int]) -> ImageSource:
        """Returns the source of a part. Parts do not share files.

        Args:
            part: (index, count): the part with number `index` of `count`.
        """

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns an element for each image: one tensor, small enough to be shuffled.

        Args:
            options: How to read.
            order: Decides the order of the files; None: the order that they have.
        """

    def make_sample(self, count: int) -> tf.data.Dataset:
        """Returns some elements, or all if there are not so many, always the same ones.

        They are from all spans, of each as many as its share; see `spread`.
        """

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Returns the image of an element. It uses graph operations only."""

    def parse_label(self, element: tf.Tensor) -> Any:
        """Returns the label of an element, as in `LabeledImage`, and does not read its image."""
