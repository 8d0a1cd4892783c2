"""Boxes in batches of TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from darkroom.dataset.example import IMAGE_HEIGHT, IMAGE_WIDTH
from darkroom.targets.boxes.kind import (
    AREA,
    CORNERS,
    DIFFICULT,
    FIRST_NUMBER,
    IS_CROWD,
    OBJECT_NUMBER,
    OBJECTS_KNOWN,
)
from darkroom.targets.boxes.moving import are_boxes, move_boxes
from darkroom.targets.geometry import Matrix, scale
from darkroom.targets.learning import Learning

_INTEGER = tf.io.FixedLenFeature([], tf.int64)
_PLACES = (*CORNERS, AREA)
_NUMBERS = (OBJECT_NUMBER, IS_CROWD, DIFFICULT)
# What a place of no object has, as in Keras; its box is all 0.
_NO_LABEL = -1


class BoxesLearning(Learning):
    """See `darkroom.targets.learning.Learning`; `follow` returns a dict as Keras has it.

    Of B images with at most M objects each:

    - `boxes`: float32 [B, M, 4], in the `bounding_box_format` of the options.
    - `labels`: int64 [B, M], the numbers of their labels, from `first_label` on; -1 where no object
      is, or less than `min_visible` of it is in the view.
    - `is_crowd`, `difficult`: bool [B, M].
    - `area`: float32 [B, M], in pixels of the view, of the whole object.
    - `annotated`: bool [B], whether somebody has looked for objects.

    If the options say `ragged`, all but the last are ragged tensors, which have only the objects
    that are in the view.
    """

    required = (OBJECTS_KNOWN, IMAGE_HEIGHT, IMAGE_WIDTH)

    def describe(self, size: int) -> Mapping[str, Any]:
        """Returns the features of the objects, and of the size that they are shares of."""
        lists = {**dict.fromkeys(_PLACES, tf.float32), **dict.fromkeys(_NUMBERS, tf.int64)}
        return {
            **dict.fromkeys((OBJECTS_KNOWN, IMAGE_HEIGHT, IMAGE_WIDTH), _INTEGER),
            **{
                name: tf.io.FixedLenSequenceFeature([], kind, allow_missing=True)
                for name, kind in lists.items()
            },
        }

    def parse(self, features: Mapping[str, tf.Tensor], size: int) -> dict[str, tf.Tensor]:
        """Returns few tensors, because each takes time for every image; `follow` parts them."""
        places, numbers = (
            tf.stack([features[name] for name in names]) for names in (_PLACES, _NUMBERS)
        )
        # It fails, rather than lose an object, where a damaged record has more of them.
        missing = tf.stack(((0, 0), (0, size - tf.shape(places)[1])))
        return {
            "places": tf.ensure_shape(tf.pad(places, missing), (len(_PLACES), size)),
            "numbers": tf.ensure_shape(tf.pad(numbers, missing), (len(_NUMBERS), size)),
            "image": tf.stack([features[name] for name in self.required]),
        }

    def check(self, targets: Any, num_labels: int | None) -> Any:
        """Returns targets; fails where an object is not as an index may have it."""
        left, top, right, bottom, _ = tf.unstack(targets["places"], axis=1)
        numbers, *flags = tf.unstack(targets["numbers"], axis=1)
        # Places without an object have the number 0, and no area.
        is_right = are_boxes(left, top, right, bottom) & (numbers >= 0)
        is_right &= (numbers >= FIRST_NUMBER) | (left >= right) | (top >= bottom)
        if num_labels:
            is_right &= numbers < FIRST_NUMBER + num_labels
        for flag in flags:
            is_right &= (flag >= 0) & (flag <= 1)
        # A shape that does not fit fails. What no result needs is left out, and so would be a check
        # that gives nothing; an assertion would make a pipeline with state.
        num_wrong = tf.reduce_sum(tf.cast(~is_right, tf.int32))
        checked = tf.reshape(targets["numbers"], tf.shape(targets["numbers"]) + num_wrong)
        return {**targets, "numbers": tf.ensure_shape(checked, targets["numbers"].shape)}

    def follow(self, targets: Any, matrix: Matrix, options: Any) -> dict[str, Any]:
        """Returns the boxes in the views of a batch; see the class."""
        targets = self.check(targets, options.num_classes)
        known, height, width = tf.unstack(targets["image"], axis=1)
        whole = scale(tf.cast(width, tf.float64), tf.cast(height, tf.float64))
        moved, is_shown = move_boxes(
            tf.cast(tf.transpose(targets["places"][:, :4], (0, 2, 1)), tf.float64),
            Matrix(*(value[:, None] for value in whole.then(matrix))),
            options.image_size,
            options.min_visible,
            tf,
        )
        numbers, is_crowd, difficult = tf.unstack(targets["numbers"], axis=1)
        labels = numbers - FIRST_NUMBER + options.first_label
        growth = tf.cast(matrix.growth, tf.float32)
        area = targets["places"][:, 4] * tf.reshape(growth, (-1, 1))
        found = {
            "boxes": _format_boxes(moved, options.bounding_box_format, options.image_size),
            "labels": tf.where(is_shown, labels, _NO_LABEL),
            "is_crowd": is_shown & (is_crowd > 0),
            "difficult": is_shown & (difficult > 0),
            "area": tf.where(is_shown, area, 0),
        }
        if options.ragged:
            found = {name: tf.ragged.boolean_mask(each, is_shown) for name, each in found.items()}
        return {**found, "annotated": known > 0}


def _format_boxes(boxes: tf.Tensor, name: str, size: tuple[int, int]) -> tf.Tensor:
    """Returns boxes in a format of Keras, float32 [..., 4].

    Args:
        boxes: float64 [..., 4]: left, top, right and bottom in pixels of the view.
        name: The format.
        size: (height, width) of the view.
    """
    form = name.removeprefix("rel_")
    if form != name:
        boxes /= tf.constant((*size[::-1], *size[::-1]), boxes.dtype)
    left, top, right, bottom = tf.unstack(boxes, axis=-1)
    width, height = right - left, bottom - top
    values = {
        "xyxy": (left, top, right, bottom),
        "yxyx": (top, left, bottom, right),
        "xywh": (left, top, width, height),
        "center_xywh": (left + width / 2, top + height / 2, width, height),
        "center_yxhw": (top + height / 2, left + width / 2, height, width),
    }
    return tf.cast(tf.stack(values[form], axis=-1), tf.float32)


LEARNING = BoxesLearning()
