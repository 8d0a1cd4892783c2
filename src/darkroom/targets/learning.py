"""What every kind of target says about learning it, loaded when something reads or trains."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import tensorflow as tf


class Learning(Protocol):
    """How a kind of target is read and learned.

    Its tensor is one value an image, [] and so [B] in a batch, or a vector of `size` values: one
    for each label of the label map, or for each number. A yes or no is [], too, not [1].

    Attributes:
        required: The features that every record has.
    """

    required: tuple[str, ...]

    def describe(self, size: int) -> Mapping[str, Any]:
        """Returns the features of a record for `tf.io.parse_single_example`, by name."""

    def parse(self, features: Mapping[str, tf.Tensor], size: int) -> tf.Tensor:
        """Returns the tensor of a record."""


def find_learning(name: str) -> Learning:
    """Returns what a kind says about learning it."""
    learning: Learning = import_module(f"darkroom.targets.{name}.learning").LEARNING
    return learning
