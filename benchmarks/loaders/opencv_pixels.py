"""The pixels of the contract by OpenCV, for loaders that call Python for every image."""

from __future__ import annotations

import math

import cv2
import numpy as np
from contract import AREA, RATIO, SHORT_SIDE, SIZE

_ATTEMPTS = 10
cv2.setNumThreads(1)  # the loaders start a process for each core


def crop_randomly(data: bytes, rng: np.random.Generator) -> np.ndarray:
    """Returns a random window of a JPEG, resized: uint8 [224, 224, 3]."""
    pixels = _decode(data)
    top, left, height, width = _draw_window(pixels.shape[0], pixels.shape[1], rng)
    return cv2.resize(pixels[top : top + height, left : left + width], (SIZE, SIZE))


def crop_center(data: bytes) -> np.ndarray:
    """Returns the middle of a JPEG resized to a short side of 256: uint8 [224, 224, 3]."""
    pixels = _decode(data)
    height, width = pixels.shape[:2]
    scale = SHORT_SIDE / min(height, width)
    small = cv2.resize(pixels, (round(width * scale), round(height * scale)))
    top, left = (small.shape[0] - SIZE) // 2, (small.shape[1] - SIZE) // 2
    return small[top : top + SIZE, left : left + SIZE]


def _decode(data: bytes) -> np.ndarray:
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


def _draw_window(height: int, width: int, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """Draws a window as TensorFlow does: top, left, height, width; the whole image if none fits."""
    for _ in range(_ATTEMPTS):
        area = rng.uniform(*AREA) * height * width
        ratio = rng.uniform(*RATIO)
        rows, columns = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if 0 < rows <= height and 0 < columns <= width:
            top, left = rng.integers(height - rows + 1), rng.integers(width - columns + 1)
            return int(top), int(left), rows, columns
    return 0, 0, height, width
