"""The part of an image that a view shows, in whole pixels: its middle, or a random part.

Random windows are those that TensorFlow's `stateless_sample_distorted_bounding_box` draws with the
same seeds, for many images at once.
"""

from __future__ import annotations

import numpy as np

from darkroom.options.augmentation import Augmentation
from darkroom.options.input import CENTER_SHARE
from darkroom.reader.draws import draw_words
from darkroom.runtime.arrays import Array

_ATTEMPTS = 10
_WORDS = 4 * _ATTEMPTS
# Keeps a product from being rounded up to one pixel too many.
_EPSILON = 0.0000001


def choose_centers(sizes: Array, image_size: tuple[int, int]) -> Array:
    """Returns the largest windows in the middle with an aspect ratio, less an eighth of the sides.

    Args:
        sizes: int64 [N, 2], (height, width) of the images.
        image_size: (height, width) of a view.

    Returns:
        int64 [N, 4]: top, left, height, width.
    """
    wanted = np.array(image_size, np.int64)
    by_height = sizes[:, 0] * image_size[1] <= sizes[:, 1] * image_size[0]
    side = np.where(by_height, sizes[:, 0], sizes[:, 1])[:, None]
    whole = np.where(by_height, wanted[0], wanted[1])[:, None]
    share, parts = CENTER_SHARE
    rounded = (2 * share * wanted * side + parts * whole) // (2 * parts * whole)
    chosen = np.maximum(rounded, 1)
    return np.concatenate(((sizes - chosen) // 2, chosen), axis=1)


def sample_windows(sizes: Array, positions: Array, epoch: int, augmentation: Augmentation) -> Array:
    """Returns random windows.

    Args:
        sizes: int64 [N, 2], (height, width) of the images.
        positions: int64 [N], their positions in the epoch.
        epoch: As `draws.number_epoch` gives it.
        augmentation: Its `crop_area` and `crop_ratio`.

    Returns:
        int64 [N, 4]: top, left, height, width.
    """
    windows = np.concatenate((np.zeros_like(sizes), sizes), axis=1)
    left = np.arange(len(sizes))
    # Nearly all windows are found at once, with the first four numbers.
    for count in (4, _WORDS):
        words = draw_words(positions[left], epoch, count)
        found, done = _try(sizes[left], words, augmentation)
        windows[left[done]] = found[done]
        left = left[~done]
        if not len(left):
            break
    return windows


def _try(sizes: Array, words: Array, augmentation: Augmentation) -> tuple[Array, Array]:
    """Returns windows int64 [N, 4], and for which images one was found, bool [N].

    An attempt takes one number for the ratio, and one for each of height, top and left that is not
    decided without it.
    """
    count, drawn = words.shape
    rows, place = np.arange(count), np.zeros(count, np.int64)
    windows, done = np.zeros((count, 4), np.int64), np.zeros(count, bool)
    height, width = sizes[:, 0], sizes[:, 1]
    least, most = (
        np.float32(share) * width.astype(np.float32) * height.astype(np.float32)
        for share in augmentation.crop_area
    )
    low, high = map(np.float32, augmentation.crop_ratio)

    def draw_below(limits: Array, asked: Array) -> Array:
        """Returns a random number below each limit, where it is asked for; else 0."""
        nonlocal place
        bits = words[rows, np.minimum(place, drawn - 1)]
        place = place + asked
        return np.where(asked, (bits % np.maximum(limits, 1).astype(np.uint64)), 0).astype(np.int64)

    for _ in range(drawn // 4):
        bits = words[rows, np.minimum(place, drawn - 1)] & np.uint64(0x7FFFFF)
        place = place + 1
        ratio = (bits.astype(np.float32) / np.float32(1 << 23)) * (high - low) + low
        tallest = _round(np.sqrt(most / ratio))
        is_wide = _round(tallest.astype(np.float32) * ratio) > width
        narrowed = ((width + (0.5 - _EPSILON)) / ratio.astype(np.float64)).astype(np.int64)
        narrowed -= _round(narrowed.astype(np.float32) * ratio) > width
        tallest = np.minimum(np.where(is_wide, narrowed, tallest), height)
        lowest = np.minimum(_round(np.sqrt(least / ratio)), tallest)
        tall = lowest + draw_below(tallest - lowest + 1, lowest < tallest)
        wide = _round(tall.astype(np.float32) * ratio)
        for change, wrong in ((1, np.less), (-1, np.greater)):
            limit = least if change > 0 else most
            is_off = wrong((tall * wide).astype(np.float32), limit)
            tall = tall + change * is_off
            wide = np.where(is_off, _round(tall.astype(np.float32) * ratio), wide)
        area = (tall * wide).astype(np.float32)
        fits = (area >= least) & (area <= most) & (wide <= width) & (tall <= height)
        fits &= (wide > 0) & (tall > 0)
        top = draw_below(height - tall, fits & (tall < height))
        left = draw_below(width - wide, fits & (wide < width))
        new = fits & ~done
        windows[new] = np.stack((top, left, tall, wide), axis=1)[new]
        done |= fits
        if done.all():
            break
    return windows, done


def _round(values: Array) -> Array:
    return np.rint(values).astype(np.int64)
