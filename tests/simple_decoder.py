"""A decoder with a small graph, for tests of what is around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def _decode_any(self: Any, *_: Any) -> Any:
    import tensorflow as tf

    # The operation of PNGs reads the other formats, too.
    pixels = tf.ensure_shape(tf.io.decode_png(self.encoded, channels=3), (None, None, 3))
    return self._cut(pixels, self.window(tf.shape(pixels)[:2]) if self.window else None)


def _describe_nothing(_: Any) -> Any:
    import tensorflow as tf

    return tf.constant("")


@contextmanager
def decode_simply() -> Iterator[None]:
    """Decodes all images by one operation: order, number and options of batches are the same.

    TensorFlow optimizes the whole graph that decodes for each iterator, and writes it twice into
    each model, which takes most of the time of such a test. Files of tests/input, as those of
    graph/, and tests/training/test_served_forms.py have the whole one.
    """
    from darkroom.input.graph import decode

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode._Decoder, "decode", _decode_any)
        patch.setattr(decode, "describe_form", _describe_nothing)
        decode.make_decoder.cache_clear()
        yield
    decode.make_decoder.cache_clear()


@pytest.fixture(scope="module")
def simple_decoder() -> Iterator[None]:
    """Decodes all images of a module simply."""
    with decode_simply():
        yield
