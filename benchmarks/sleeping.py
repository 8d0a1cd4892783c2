"""A decoder and a resizer that sleep; also the program of a decoder process with them.

`decode` and `resize` let go of Python's lock as often as simplejpeg and OpenCV do: twice and once.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import cv2
import numpy as np
import simplejpeg

# What a photograph of 28 kB takes on one core of the machine that the table of 16 cores is from.
HEADER_SECONDS, DECODING_SECONDS, RESIZING_SECONDS = 2e-5, 9.8e-4, 1.7e-4
_PR_SET_TIMERSLACK = 29
_thread = threading.local()


def decode(share: float = 1) -> None:
    """Sleeps as long as reading the header of a JPEG and decoding it take, times a share."""
    _sleep(HEADER_SECONDS * share)
    _sleep(DECODING_SECONDS * share)


def resize(share: float = 1) -> None:
    """Sleeps as long as resizing takes, times a share."""
    _sleep(RESIZING_SECONDS * share)


@contextmanager
def instead_of_decoding(share: float = 1) -> Iterator[None]:
    """Replaces decoder and resizer while the block runs; by a share of their time."""

    def sleep_decoding(image: Any, *given: Any, buffer: Any = None, **options: Any) -> Any:
        if share:
            decode(share)
        return buffer

    def sleep_resizing(image: Any, *given: Any, dst: Any = None, **options: Any) -> Any:
        if share:
            resize(share)
        return dst

    with (
        mock.patch.object(simplejpeg, "decode_jpeg", sleep_decoding),
        mock.patch.object(cv2, "resize", sleep_resizing),
    ):
        yield


def serve(share: float) -> None:
    """Is the program of a decoder process that sleeps for a share of the time."""
    from darkroom.reader.decoder_child import serve as serve_really

    with instead_of_decoding(share):
        serve_really()


def list_jpegs(records: Path) -> list[bytes]:
    """Returns the files of some images of a dataset."""
    import darkroom

    data = darkroom.load(
        records, image_size=8, batch_size=64, framework="numpy", columns=["image/encoded"]
    )["train"]
    return next(iter(data))[2]["image/encoded"]


def decode_for(seconds: float, jpegs: Sequence[bytes], size: int) -> int:
    """Decodes and resizes images for some seconds; returns how many."""
    cv2.setNumThreads(1)
    view = np.empty((size, size, 3), np.uint8)
    images, stop = 0, time.perf_counter() + seconds
    while time.perf_counter() < stop:
        pixels = simplejpeg.decode_jpeg(jpegs[images % len(jpegs)], fastdct=True)
        cv2.resize(pixels, (size, size), dst=view)
        images += 1
    return images


def _sleep(seconds: float) -> None:
    if not hasattr(_thread, "is_exact"):
        # Else Linux adds 50 microseconds.
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
        _thread.is_exact = True
    time.sleep(seconds)
