"""A network that computes features, whatever library runs it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from darkroom.errors import UsageError
from darkroom.runtime.arrays import Array

# The size of images where a model takes any.
DEFAULT_SIZE = (224, 224)
# Changes when the features of a network would.
_FORM = "1"
_TYPES = ("uint8", "float32", "float16")


@dataclass(frozen=True)
class Network:
    """A network that computes features.

    Attributes:
        name: Its name for people.
        identity: A hash that names its features in the cache.
        image_size: (height, width) of its images, in pixels.
        width: How many numbers it gives for an image.
        compute: Returns the features of images, uint8 [B, height, width, 3], RGB, as float [B, D].
    """

    name: str
    identity: str
    image_size: tuple[int, int]
    width: int
    compute: Callable[[Array], Array]

    @property
    def model(self) -> str:
        """Its name and hash, as a table of features has them."""
        return f"{self.name} {self.identity}"


def identify_network(name: str, image_size: tuple[int, int], weights: Iterable[Array]) -> str:
    """Returns a hash that changes with the features that a network computes of a view.

    Args:
        name: The model and all that decides its features, besides weights and views.
        image_size: (height, width) in pixels.
        weights: Its weights.
    """
    digest = hashlib.sha256(f"{_FORM} {name} {image_size}".encode())
    for weight in weights:
        digest.update(np.ascontiguousarray(weight).tobytes())
    return digest.hexdigest()[:32]


def name_base(model: str, precision: str, *, scaled: bool) -> str:
    """Returns the name of a model for `identify_network`, as a training and `embed` have it.

    Args:
        model: As its option names it.
        precision: The dtype policy of Keras.
        scaled: Whether JPEGs are decoded at a fraction of their size.
    """
    return f"{model} {precision} {scaled}"


class Input(NamedTuple):
    """What a model says of one of its inputs.

    Attributes:
        shape: Its shape; what is not a positive number is any number.
        dtype: The name of its type.
    """

    shape: Sequence[Any]
    dtype: str


def wrap_model(
    name: str,
    identity: str,
    inputs: Sequence[Input],
    run: Callable[[Array], Sequence[Array]],
) -> Network:
    """Returns a model as a network, after it was tried with a black image.

    It gets whole images that are stretched to its size, or to 224x224 if it takes any size: RGB
    from 0 to 255, in the type and the order of axes of its input.

    Args:
        name: Its name for people.
        identity: A hash of its contents.
        inputs: Its inputs.
        run: Returns its answers for a batch.

    Raises:
        UsageError: Its input is not images, or it has not one answer that is features.
    """
    shape, dtype = inputs[0] if len(inputs) == 1 else ((), "no or several inputs")
    sides = [side if isinstance(side, int) and side > 0 else None for side in shape]
    is_first = len(sides) == 4 and sides[1] == 3 and sides[3] != 3
    if is_first:
        sides = [sides[n] for n in (0, 2, 3, 1)]
    if len(sides) != 4 or sides[3] != 3 or sides[0] not in (None, 1) or dtype not in _TYPES:
        raise UsageError(
            f"The model {name} takes {_list(inputs)}, expected images in RGB: uint8 or float32, "
            "[any number, height, width, 3] or [any number, 3, height, width].",
            "Give a model of pixels from 0 to 255, of which their scaling is a part.",
        )
    size = sides[1] or DEFAULT_SIZE[0], sides[2] or DEFAULT_SIZE[1]

    def answer(images: Array) -> Sequence[Array]:
        batch = images.astype(dtype)
        return run(np.ascontiguousarray(batch.transpose(0, 3, 1, 2)) if is_first else batch)

    tried = answer(np.zeros((1, *size, 3), np.uint8))
    found = [n for n, each in enumerate(tried) if each.ndim in (2, 4) and each.dtype.kind == "f"]
    if len(found) != 1 or len(tried[found[0]]) != 1:
        answers = _list([Input(each.shape, each.dtype.name) for each in tried])
        raise UsageError(
            f"The model {name} gives {answers} for one image, expected one answer of floats: "
            "[1, numbers], or [1, height, width, channels], of which the mean is taken.",
            "Give a model that ends in its features.",
        )

    def compute(images: Array) -> Array:
        most = sides[0] or len(images)
        batches = [images[first : first + most] for first in range(0, len(images), most)]
        features: Array = np.concatenate([answer(batch)[found[0]] for batch in batches])
        axes = (2, 3) if is_first else (1, 2)
        return features.mean(axes) if features.ndim == 4 else features

    width = tried[found[0]].shape[1 if is_first else -1]
    return Network(name, identity, size, width, compute)


def _list(tensors: Sequence[Input]) -> str:
    return ", ".join(f"{each.dtype} {list(each.shape)}" for each in tensors) or "nothing"


def shorten(error: Exception) -> str:
    """Returns what a library says of a model it cannot read, in a line."""
    return " ".join(str(error).split())[:300].rstrip(".")
