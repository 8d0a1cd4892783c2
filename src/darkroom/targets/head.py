"""How every kind of target is trained: the end of a model, loaded when something trains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Protocol

import keras

from darkroom.errors import UsageError
from darkroom.runtime.arrays import Array
from darkroom.targets.learned import Learned

# Reads what so many training images are labelled with, from all spans, or all for None: arrays of
# many.
ReadTargets = Callable[[int | None], Iterable[Array]]
# As the option `balance` spells it.
_NO_BALANCE = "none"


class Head(Protocol):
    """The end of a model: its last layers, its loss and its metrics.

    Attributes:
        kind: The kind of target.
        size: How many numbers the model gives for an image: labels of the map, or numbers.
        metric: The metric of an epoch that is shown and judged; the higher the better.
        balances: The ways to balance labels, of the option `balance`, that make sense.
        counts_labels: Whether each image has one label, so that the images of each can be counted.
        activation: What the last layer of a user's model must be, as part of a sentence.
        refusal: The number that a server gives for an image that it does not read.
    """

    kind: ClassVar[str]
    size: int
    metric: ClassVar[str]
    balances: ClassVar[Sequence[str]]
    counts_labels: ClassVar[bool] = False
    activation: ClassVar[str]
    refusal: ClassVar[float] = 0.0

    @classmethod
    def fit(cls, names: Sequence[str], read: ReadTargets, balance: str) -> Head:
        """Returns the head for training images.

        Args:
            names: The labels of the map, or the names of the numbers.
            read: Reads their targets; called only where they are needed.
            balance: As in `TrainingOptions`.

        Raises:
            DataError: There is nothing to learn for a name.
        """

    def pool(self, features: Any) -> Any:
        """Returns a vector [B, D] of the features of a network, [B, height, width, channels]."""
        return keras.layers.GlobalAveragePooling2D()(features)

    def finish(self, outputs: Any) -> Any:
        """Returns the answers of a model whose last layer gives `outputs`, both [B, size]."""
        return outputs

    def add(self, vectors: Any) -> Any:
        """Returns the answers for vectors [B, D], by a dropout and a layer for each answer."""

    def make_loss(self, label_smoothing: float, *, has_vectors: bool) -> Any:
        """Returns the loss, for Keras's `compile`.

        Args:
            label_smoothing: The share of each label that is spread evenly over all labels.
            has_vectors: Images have shares of several labels, as mixup makes them.
        """

    def list_metrics(self) -> list[Any]:
        """Returns the metrics, for Keras's `compile`."""

    def make_example(self, *, has_vectors: bool) -> Array:
        """Returns the target of an image, as a batch of one."""

    def are_answers(self, outputs: Array, tolerance: float, *, from_logits: bool) -> bool:
        """Tells whether finite outputs of a model, [N, size], can be what they should be.

        Args:
            outputs: Them.
            tolerance: How far probabilities may be from those of float32.
            from_logits: Whether they should be logits, of which probabilities are made.
        """

    def serve(self, outputs: Any, *, from_logits: bool) -> Any:
        """Returns the answers of an exported model, float32 [N, size], of its outputs."""

    def name_answers(self, answers: Any, learned: Learned) -> Mapping[str, Any]:
        """Returns what a server says of image files, by name: tensors [N] or [N, size].

        The names are outputs of the exported signature `serving_default`; those that scores read
        are `outputs` of the kind's `Scoring`.

        Args:
            answers: What `serve` returned.
            learned: What the model has learned.
        """

    def learn(self, names: Sequence[str], answers: Array, truth: Array) -> Learned:
        """Returns what the model has learned, with what is chosen by the eval split.

        Args:
            names: The labels, or the names of the numbers.
            answers: The answers for the images of that split, [N, size]; empty if not asked for.
            truth: What they are labelled with.
        """

    @property
    def asks_for_answers(self) -> bool:
        """Whether `learn` needs answers."""
        return False


def is_half(outputs: Any) -> bool:
    """Tells whether a model gives numbers of half the precision."""
    return keras.backend.standardize_dtype(outputs.dtype) in ("float16", "bfloat16")


class KnownLoss(keras.losses.Loss):
    """The mean of a loss over all values that are known; NaN says that one is not.

    Subclasses compare `y_true` [B, C] and `y_pred` [B, C] in `compare`.
    """

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Returns values [B], whose mean is that over all values that are known."""
        ops = keras.ops
        y_pred = ops.cast(y_pred, "float32")
        is_known = ops.logical_not(ops.isnan(y_true))
        known = ops.cast(is_known, "float32")
        # A gradient that is NaN would stay NaN, multiplied by 0.
        values = self.compare(ops.where(is_known, y_true, ops.stop_gradient(y_pred)), y_pred)
        total = ops.cast(ops.size(known), "float32") / ops.maximum(ops.sum(known), 1.0)
        return ops.mean(values * known, axis=-1) * total

    def compare(self, y_true: Any, y_pred: Any) -> Any:
        """Returns the loss of each value, [B, C]."""
        raise NotImplementedError


def find_head(kind: str) -> type[Any]:
    """Returns the class of the heads of a kind."""
    found: type[Any] = import_module(f"darkroom.targets.{kind}.head").HEAD
    return found


def make_head(
    learned: Learned, read: ReadTargets = lambda _: (), balance: str = _NO_BALANCE
) -> Head:
    """Returns the head for what a model is to learn.

    Args:
        learned: The kind and its names.
        read: Reads what the training images are labelled with.
        balance: As in `TrainingOptions`.

    Raises:
        DataError: There is nothing to learn.
        UsageError: Targets of this kind cannot be balanced so.
    """
    made = find_head(learned.kind)
    if balance not in made.balances:
        raise UsageError(
            f"balance is {balance!r}, which does not go with {learned.kind}.",
            f"Use {' or '.join(made.balances)}.",
        )
    head: Head = made.fit(learned.names, read, balance)
    return head
