"""The pixels of the contract by TensorFlow, as decoders for TFDS; they decode only windows."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_datasets as tfds
from contract import AREA, RATIO, SHORT_SIDE, SIZE


@tfds.decode.make_decoder(output_dtype=tf.uint8)
def crop_randomly(data: tf.Tensor, feature: tfds.features.Image) -> tf.Tensor:
    """Returns a random window of a JPEG, resized: uint8 [224, 224, 3]."""
    del feature
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data),
        tf.zeros((1, 0, 4)),
        min_object_covered=0.0,
        aspect_ratio_range=RATIO,
        area_range=AREA,
        use_image_if_no_bounding_boxes=True,
    )
    window = tf.concat((begin[:2], size[:2]), axis=0)
    return _resize(tf.image.decode_and_crop_jpeg(data, window, channels=3), (SIZE, SIZE))


@tfds.decode.make_decoder(output_dtype=tf.uint8)
def crop_center(data: tf.Tensor, feature: tfds.features.Image) -> tf.Tensor:
    """Returns the middle of a JPEG resized to a short side of 256: uint8 [224, 224, 3]."""
    del feature
    pixels = tf.image.decode_jpeg(data, channels=3)
    shape = tf.cast(tf.shape(pixels)[:2], tf.float32)
    small = tf.cast(tf.round(shape * SHORT_SIDE / tf.reduce_min(shape)), tf.int32)
    top, left = tf.unstack((small - SIZE) // 2)
    return tf.image.crop_to_bounding_box(_resize(pixels, small), top, left, SIZE, SIZE)


def _resize(pixels: tf.Tensor, size: tf.Tensor | tuple[int, int]) -> tf.Tensor:
    return tf.cast(tf.round(tf.image.resize(pixels, size)), tf.uint8)
