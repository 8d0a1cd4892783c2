"""The balance of labels: their weights in the loss, how often each is in an epoch, its prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import tensorflow as tf

from darkroom.errors import UsageError
from darkroom.input.source import EpochOrder, ImageSource, LabeledImage
from darkroom.options.input import InputOptions
from darkroom.options.recipe import PRIOR, SAMPLING, WEIGHTS
from darkroom.training.recipe.targets import list_targets

LabelCounts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Balance:
    """The class weights, or the shares of a sampling.

    Attributes:
        train_counts: Images of each label in the train split, int64 [C].
        eval_counts: The same of the eval split.
        how: As in `TrainingOptions`; not `none`.
    """

    train_counts: LabelCounts
    eval_counts: LabelCounts
    how: str

    @property
    def prior_counts(self) -> LabelCounts | None:
        """Images of each label for the prior, int64 [C]; None without `prior`."""
        return self.train_counts if self.how == PRIOR else None

    def weigh_training(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the batches, with a weight for each image if balance is by weights."""
        return _weigh(batches, self.train_counts) if self.how == WEIGHTS else batches

    def weigh_evaluation(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        """Returns the batches with weights, by which each label counts the same in the loss."""
        return _weigh(batches, self.eval_counts)

    def sample(self, source: ImageSource) -> ImageSource:
        """Returns the images of an epoch of training."""
        is_sampled = self.how == SAMPLING
        return BalancedSource(source, self.train_counts) if is_sampled else source

    def sample_rows(
        self, labels: npt.NDArray[np.int64], generator: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """Returns numbers of rows in random order: as many as there are labels.

        Args:
            labels: int64 [N], the label of each row.
            generator: Draws the rows of each label, and the order.
        """
        if self.how != SAMPLING:
            return generator.permutation(len(labels))
        quotas = compute_quotas(np.bincount(labels))
        parts = [
            np.resize(generator.permutation(np.flatnonzero(labels == label)), quota)
            for label, quota in enumerate(quotas)
            if quota
        ]
        return generator.permutation(np.concatenate(parts))


def make_balance(
    how: str,
    training: ImageSource,
    evaluation: ImageSource,
    options: InputOptions,
    size: int,
) -> Balance:
    """Counts the labels that a balance needs.

    Args:
        how: As in `TrainingOptions`; not `none`.
        training: The images of the train split.
        evaluation: The images of the eval split.
        options: How they are read.
        size: C, the number of labels.
    """
    return Balance(
        count_labels(training, options, size),
        count_labels(evaluation, options, size),
        how,
    )


def count_labels(source: ImageSource, options: InputOptions, size: int) -> LabelCounts:
    """Returns the number of images of each label. It reads records only if that is the only way.

    Args:
        source: The images.
        options: How they are read.
        size: C, the number of labels.

    Returns:
        int64 [C].
    """
    if (known := source.split.label_counts) is not None:
        return np.array(known, np.int64)
    batches = list_targets(source, options)
    return sum((np.bincount(each, minlength=size) for each in batches), np.zeros(size, np.int64))


def compute_weights(counts: LabelCounts) -> npt.NDArray[np.float32]:
    """Returns the weight of each label, float32 [C]. Over all images their mean is 1.

    So the loss keeps its scale, and with it the learning rate its meaning.
    """
    present = max(1, np.count_nonzero(counts))
    return np.where(counts, counts.sum() / (present * np.maximum(counts, 1)), 0).astype(np.float32)


def compute_quotas(counts: LabelCounts) -> LabelCounts:
    """Returns how many images of each label an epoch has. Their sum is that of the counts."""
    present = np.flatnonzero(counts)
    quotas = np.zeros_like(counts)
    if len(present):
        quotas[present], rest = divmod(int(counts.sum()), len(present))
        quotas[present[:rest]] += 1
    return quotas


class BalancedSource:
    """Images of which an epoch has as many of each label; see `ImageSource`.

    An epoch has as many images as before. Of a frequent label it leaves some out, others in each
    epoch. Those of a rare one are there several times, one after the other: shuffling parts them.

    Args:
        source: The images.
        counts: How many of each label there are, int64 [C].
    """

    def __init__(self, source: ImageSource, counts: LabelCounts) -> None:
        self.images, self.split, self._counts = source, source.split, counts
        self.element_bytes, self.is_counted = source.element_bytes, source.is_counted

    def count_images(self, part: tuple[int, int] = (0, 1)) -> int:
        """Returns the number of images in an epoch."""
        return self.images.count_images(part)

    def identify(self) -> str:
        """Returns the hash of all images."""
        return self.images.identify()

    def select(self, part: tuple[int, int]) -> ImageSource:
        """Returns the source of a part. A training reads parts by record, never by file."""
        if part[1] > 1:
            raise UsageError("Labels are balanced over all files, not in a part of them.")
        return self

    def make_elements(self, options: InputOptions, order: EpochOrder | None) -> tf.data.Dataset:
        """Returns an element for each time that an image is in the epoch."""
        elements = self.images.make_elements(options, order)
        if order is None:
            return elements
        # No label that is read has a count of 0, by which could not be divided.
        counts = np.maximum(self._counts, 1)
        generator = np.random.default_rng((order.seed, order.epoch or 0))
        # Where the rounding begins, so that each epoch leaves out other images.
        starts = tf.constant(generator.integers(counts))
        quotas, totals = tf.constant(compute_quotas(self._counts)), tf.constant(counts)

        def count(seen: tf.Tensor, element: tf.Tensor) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
            label = self.images.parse_label(element)
            # Whole numbers: the last of n images has brought exactly the quota.
            before = seen[label] * quotas[label] + starts[label]
            after = before + quotas[label]
            times = after // totals[label] - before // totals[label]
            return tf.tensor_scatter_nd_add(seen, [[label]], one), (element, times)

        seen, one = tf.zeros(len(counts), tf.int64), tf.ones(1, tf.int64)
        plain = tf.autograph.experimental.do_not_convert
        return elements.scan(seen, plain(count)).flat_map(
            plain(lambda element, times: tf.data.Dataset.from_tensors(element).repeat(times))
        )

    def make_sample(self, count: int) -> tf.data.Dataset:
        """Returns elements of some images, as they come."""
        return self.images.make_sample(count)

    def parse(self, element: tf.Tensor) -> LabeledImage:
        """Returns the image of an element."""
        return self.images.parse(element)

    def parse_label(self, element: tf.Tensor) -> tf.Tensor:
        """Returns the label of an element."""
        return self.images.parse_label(element)


class PriorShift(keras.layers.Layer):
    """Multiplies probabilities by the share of each label, and makes their sum 1 again.

    In training only. So the output of the layers before it counts every label the same.

    Args:
        counts: Training images of each label, int64 [C].
    """

    def __init__(self, counts: LabelCounts) -> None:
        # As the last layer of a model.
        super().__init__(name="prior", dtype="float32")
        self._shares = np.asarray(counts / counts.sum(), np.float32)

    def call(self, scores: Any, training: bool = False) -> Any:
        """Returns probabilities [B, C] of probabilities [B, C]."""
        if not training:
            return scores
        shifted = keras.ops.cast(scores, "float32") * self._shares
        return shifted / keras.ops.sum(shifted, axis=-1, keepdims=True)


def add_prior(model: Any, counts: LabelCounts) -> Any:
    """Returns a model with the same weights, whose answers in training have the prior.

    Args:
        model: A Keras model of one input, to probabilities [B, C].
        counts: Training images of each label, int64 [C].

    Raises:
        UsageError: The model has its own loss or training step.
    """
    if model.compiled or type(model).train_step is not keras.Model.train_step:
        raise UsageError(
            f"balance is {PRIOR!r}, but the model {model.name} has its own loss or training step.",
            "Use --balance weights.",
        )
    [given] = model.inputs
    inputs = keras.Input(given.shape[1:], dtype=given.dtype)
    return keras.Model(inputs, PriorShift(counts)(model(inputs)), name=model.name)


def _weigh(batches: tf.data.Dataset, counts: LabelCounts) -> tf.data.Dataset:
    """Returns batches (images, labels, weights float32 [B])."""
    table = tf.constant(compute_weights(counts))

    def weigh(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, ...]:
        # Of mixed labels, each counts by its share.
        is_number = labels.dtype.is_integer
        weights = tf.gather(table, labels) if is_number else tf.linalg.matvec(labels, table)
        return images, labels, weights

    return batches.map(tf.autograph.experimental.do_not_convert(weigh))
