"""Bare loops that do the work of a row in two processes, without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import simplejpeg
import tensorflow as tf

from input_rows.contract import AREA, BATCH, RATIO, SHORT_SIDE, SIZE
from input_rows.processes import time_processes


def run_limit(kind: str, paths: Sequence[Path], processes: int = 2) -> float:
    """Returns images a second of the bare loops: `train`, `eval` or `full`."""
    windows = _draw_windows(paths) if kind == "train" else []
    parts = [
        (kind, [str(path) for path in paths[part::processes]], windows[part::processes])
        for part in range(processes)
    ]
    return len(paths) / time_processes(_run_ops, parts)


def _run_ops(kind: str, paths: list[str], windows: list[list[int]]) -> None:
    """Does the necessary work on files, in one of the limit's processes."""
    cv2.setNumThreads(1)
    batch = np.empty((BATCH, SIZE, SIZE, 3), np.uint8)
    for number, path in enumerate(paths):
        data = Path(path).read_bytes()
        pixels = simplejpeg.decode_jpeg(data, fastdct=True)
        if kind == "train":
            top, left, height, width = windows[number]
            window = pixels[top : top + height, left : left + width]
            batch[number % BATCH] = cv2.resize(window, (SIZE, SIZE))
        elif kind == "eval":
            height, width = pixels.shape[:2]
            scale = SHORT_SIDE / min(height, width)
            small = cv2.resize(pixels, (round(width * scale), round(height * scale)))
            top, left = (small.shape[0] - SIZE) // 2, (small.shape[1] - SIZE) // 2
            batch[number % BATCH] = small[top : top + SIZE, left : left + SIZE]


def _draw_windows(paths: Sequence[Path]) -> list[list[int]]:
    """Draws windows as TensorFlow does: top, left, height, width."""
    shapes = {}
    windows = []
    for number, path in enumerate(paths):
        inode = path.stat().st_ino
        if inode not in shapes:
            shapes[inode] = simplejpeg.decode_jpeg_header(path.read_bytes())[:2]
        begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
            (*shapes[inode], 3),
            tf.zeros((1, 0, 4)),
            (number, 0),
            min_object_covered=0.0,
            aspect_ratio_range=RATIO,
            area_range=AREA,
            use_image_if_no_bounding_boxes=True,
        )
        windows.append([*begin.numpy()[:2].tolist(), *size.numpy()[:2].tolist()])
    return windows
