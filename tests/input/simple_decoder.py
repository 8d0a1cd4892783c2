"""A decoder with a small graph, for tests of what is around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import tensorflow as tf

from darkroom.input.graph import decode


def _decode_any(self, *_):
    # The operation of PNGs reads the other formats, too.
    pixels = tf.ensure_shape(tf.io.decode_png(self.encoded, channels=3), (None, None, 3))
    return self._cut(pixels, self.window(tf.shape(pixels)[:2]) if self.window else None)


@contextmanager
def decode_simply() -> Iterator[None]:
    """Decodes all images by one operation: order, number and options of batches are the same.

    TensorFlow optimizes the whole graph that decodes for each iterator, which takes most of the
    time of such a test. test_files.py, test_raw.py and the tests of graph/ have the whole one.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decode._Decoder, "decode", _decode_any)
        decode.make_decoder.cache_clear()
        yield
    decode.make_decoder.cache_clear()
