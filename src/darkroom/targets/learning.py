"""What every kind of target says about learning it, loaded when something reads or trains."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from darkroom.targets.geometry import Matrix

if TYPE_CHECKING:
    import tensorflow as tf


class Learning(Protocol):
    """How a kind of target is read and learned.

    A target is a tensor, or a dict of tensors by name. All records have tensors of one shape, so a
    batch of them is [B, ...]. A model of darkroom learns one value an image, [], or a vector of
    `size` values: one for each label of the label map, or for each number. A yes or no is [], too,
    not [1]. For targets with objects, `size` is the most objects of a record.

    Attributes:
        required: The features that every record has.
    """

    required: tuple[str, ...]

    def describe(self, size: int) -> Mapping[str, Any]:
        """Returns the features of a record for `tf.io.parse_single_example`, by name."""

    def parse(self, features: Mapping[str, tf.Tensor], size: int) -> Any:
        """Returns the target of a record."""

    def check(self, targets: Any, num_labels: int | None) -> Any:
        """Returns the same targets; fails with InvalidArgumentError if they cannot be right.

        Args:
            targets: What `parse` returned, [B, ...].
            num_labels: How many labels there are; None if that is not known.
        """
        return targets

    def follow(self, targets: Any, matrix: Matrix, options: Any) -> Any:
        """Returns the targets of a batch for its views. It is called if the kind `moves`.

        Args:
            targets: What `parse` returned, [B, ...].
            matrix: Where a point of each stored image is in its view: float64 [B] each.
            options: The `InputOptions` of the batch; its views have the `image_size`.
        """
        return targets


def find_learning(name: str) -> Learning:
    """Returns what a kind says about learning it."""
    learning: Learning = import_module(f"darkroom.targets.{name}.learning").LEARNING
    return learning
