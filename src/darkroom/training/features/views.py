"""The views of an image from which a frozen base computes features."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import tensorflow as tf

from darkroom.input.pipeline import decode_view
from darkroom.input.source import LabeledImage
from darkroom.options.input import RESIZES, InputOptions


class View(NamedTuple):
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


def list_views(options: InputOptions) -> list[View]:
    """Returns the views of training images. The first one is that of evaluation and serving."""
    augmentation = options.augmentation
    others = [each for each in RESIZES if each != options.resize] if augmentation.crop else []
    mirrored = (False, True) if augmentation.flip else (False,)
    return [View(resize, each) for resize in (options.resize, *others) for each in mirrored]


def decode_views(image: LabeledImage, views: list[View], options: InputOptions) -> tf.Tensor:
    """Decodes views of an image.

    Returns:
        uint8 [V, height, width, 3], RGB.
    """
    whole = {
        resize: decode_view(image, replace(options, resize=resize))
        for resize in dict.fromkeys(view.resize for view in views)
    }
    pixels = [
        tf.reverse(whole[view.resize], (1,)) if view.is_mirrored else whole[view.resize]
        for view in views
    ]
    return tf.stack(pixels)
