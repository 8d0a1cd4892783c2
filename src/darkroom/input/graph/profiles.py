"""Color profiles in the graph: sRGB, which changes nothing, and that of photos of phones.

A conversion applies the profile of an image that it encodes again. TensorFlow has no operation for
that. Phones save photos in Display P3, and turned by EXIF data, so this one is computed here; from
LittleCMS, which conversion uses, values differ by at most one.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from darkroom.input.graph.parts import cut_string, find_last, split, to_numbers, trace_once

# Names are ASCII or, from version 4 of profiles on, UTF-16. In RE2, \C is any byte.
_SRGB, _DISPLAY_P3 = (r"(?s)\C*" + r"\x00?".join(name) + r"\C*" for name in ("sRGB", "Display P3"))
# Before the name of a profile in a JPEG is the length of both; then comes the number of its part.
_NAME, _FIRST_PART = b"ICC_PROFILE\0", r"(?s)\x01\C*"
# Profiles are at the beginning, or after a thumbnail, which may have another one.
_START_BYTES = 1 << 17
# From the linear values of Display P3 to those of sRGB, both relative to the white D65.
_TO_SRGB = (
    (1.22496913, -0.22496946, -0.00003183),
    (-0.04206393, 1.04206972, 0.00002396),
    (-0.01963373, -0.07862084, 1.09827252),
)
# Steps of linear values: enough for dark colors, which 8 bits resolve best.
_STEPS = 1 << 14


@trace_once
def find_jpeg_profile(encoded: tf.Tensor) -> tf.Tensor:
    """Returns the profile of a JPEG, or its first part, string []; empty if it has none."""
    parts = split(tf.strings.substr(encoded, 0, _START_BYTES), _NAME)
    last = find_last(parts, _FIRST_PART)

    def read() -> tf.Tensor:
        before = parts[last - 1]
        begin = tf.maximum(tf.strings.length(before) - 2, 0)
        high, low = tf.unstack(to_numbers(cut_string(before, begin, 2), 2))
        return cut_string(parts[last], 0, tf.maximum(256 * high + low - 2 - len(_NAME), 0))

    return tf.cond(last > 0, read, lambda: b"")


def is_srgb(profile: tf.Tensor) -> tf.Tensor:
    """Tells whether a profile, or bytes that it is in, names sRGB, bool []."""
    return tf.strings.regex_full_match(profile, _SRGB)


def is_display_p3(profile: tf.Tensor) -> tf.Tensor:
    """Tells whether a profile, or bytes that it is in, names Display P3 and not sRGB, bool []."""
    return tf.strings.regex_full_match(profile, _DISPLAY_P3) & ~is_srgb(profile)


@tf.function(input_signature=[tf.TensorSpec((None, None, 3), tf.uint8)], autograph=False)
def convert_display_p3(pixels: tf.Tensor) -> tf.Tensor:
    """Returns pixels in sRGB, of uint8 [H, W, 3] in Display P3. Both have the same curve."""
    levels = np.arange(256) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    steps = np.arange(_STEPS + 1) / _STEPS
    curved = np.where(steps <= 0.0031308, steps * 12.92, 1.055 * steps ** (1 / 2.4) - 0.055)
    given = tf.gather(tf.constant(linear * _STEPS, tf.float32), tf.cast(pixels, tf.int32))
    mixed = tf.tensordot(given, tf.constant(_TO_SRGB, tf.float32), (2, 1))
    places = tf.cast(tf.clip_by_value(mixed, 0, _STEPS) + 0.5, tf.int32)
    return tf.gather(tf.constant(np.rint(curved * 255), tf.uint8), places)
