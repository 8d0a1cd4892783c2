"""Random changes of training images, as `darkroom.input.graph.augment` makes them, in NumPy.

Every image is changed by itself, in the thread that decoded it. Only mixup needs a whole batch.
"""

from __future__ import annotations

import math

import numpy as np

from darkroom.images.views import load_opencv
from darkroom.options.augmentation import Augmentation
from darkroom.reader import draws
from darkroom.runtime.arrays import Array
from darkroom.targets.geometry import IDENTITY, Matrix, rotate, turn

GRAY = 128
# Shares of red, green and blue in luminance, by ITU-R BT.601.
LUMINANCE = (0.299, 0.587, 0.114)
# The mean luminance is that of a grid with at least so many rows and columns. Over all pixels, it
# would cost more than all other changes of colors.
MEAN_SIDE = 32


class Changes:
    """The changes of the images of a batch; all random numbers are drawn at once.

    They are attributes, [B] or [B, ...], where the steps need them: `darkroom.reader.tensors` makes
    the same changes.

    Args:
        augmentation: The steps.
        positions: int64 [B], the positions of the images in the epoch.
        epoch: As `draws.number_epoch` gives it.
    """

    def __init__(self, augmentation: Augmentation, positions: Array, epoch: int) -> None:
        self.augmentation = augmentation

        def draw(purpose: int) -> Array:
            return draws.draw_uniform(positions, epoch, purpose)

        def spread(purpose: int, width: float) -> Array:
            return (2 * draw(purpose) - 1) * width

        steps = augmentation
        if steps.flip:
            self.is_mirrored = draw(draws.FLIP) < steps.flip_share
        if steps.color:
            purposes = draws.BRIGHTNESS, draws.CONTRAST, draws.SATURATION
            self.factors = np.stack([1 + spread(each, steps.color) for each in purposes], 1)
        if steps.rotate:
            self.degrees = spread(draws.ANGLE, steps.rotate)
        if steps.cutout:
            self.centers = np.stack((draw(draws.ROW), draw(draws.COLUMN)), 1)
        if steps.mixup:
            self.shares = _draw_beta(draw(draws.SHARE), draw(draws.TURN), steps.mixup)

    def change(self, number: int, view: Array) -> None:
        """Mirrors, tints, rotates and covers an image of the batch, uint8 [H, W, 3], in place."""
        steps = self.augmentation
        if steps.flip and self.is_mirrored[number]:
            load_opencv().flip(view, 1, dst=view)  # NumPy takes 40 times as long
        if steps.color:
            _change_colors(view, *self.factors[number])
        if steps.rotate:
            _rotate(view, self.degrees[number])
        if steps.cutout:
            height, width = view.shape[:2]
            side = round(steps.cutout * min(height, width))
            row, column = (self.centers[number] * (height, width)).astype(int) - side // 2
            view[max(row, 0) : max(row + side, 0), max(column, 0) : max(column + side, 0)] = GRAY

    def locate(self, height: int, width: int) -> Matrix:
        """Returns where the points of views of this size go, [B] each: a mirror and a rotation."""
        matrix = IDENTITY
        if self.augmentation.flip:
            matrix = turn(height, width, mirrored=self.is_mirrored.astype(float))
        if self.augmentation.rotate:
            angles = np.deg2rad(self.degrees)
            matrix = matrix.then(rotate(np.cos(angles), np.sin(angles), height, width))
        return matrix

    def mix(self, images: Array) -> Array:
        """Mixes each image with the one before it, if the steps have mixup: uint8 [B, H, W, 3]."""
        if not self.augmentation.mixup:
            return images
        own = self.shares[:, None, None, None]
        others = np.roll(images, 1, 0).astype(np.float32) * (1 - own)
        mixed: Array = (images.astype(np.float32) * own + (others + 0.5)).astype(np.uint8)
        return mixed

    def mix_labels(self, labels: Array, num_classes: int) -> Array:
        """Mixes the labels of a batch as its images.

        Args:
            labels: int64 [B] or float32 [B, C].
            num_classes: C.

        Returns:
            float32 [B, C] if they were mixed.
        """
        if not self.augmentation.mixup:
            return labels
        if labels.dtype.kind == "i":
            labels = np.eye(num_classes, dtype=np.float32)[labels]
        shares = self.shares[:, None]
        mixed: Array = labels * shares + np.roll(labels, 1, 0) * (1 - shares)
        return mixed


def _change_colors(view: Array, brightness: float, contrast: float, saturation: float) -> None:
    """Multiplies brightness, contrast and saturation: one linear map of (red, green, blue)."""
    step = max(1, min(view.shape[:2]) // MEAN_SIDE)
    grid = view[::step, ::step].reshape(-1, 3)
    offset = brightness * (1 - contrast) * float(grid.mean(0) @ LUMINANCE)
    matrix = np.empty((3, 4), np.float32)
    matrix[:, :3] = brightness * contrast * (1 - saturation) * np.array(LUMINANCE)
    matrix[:, :3] += np.eye(3) * brightness * contrast * saturation
    matrix[:, 3] = offset
    load_opencv().transform(view, matrix, dst=view)


def _rotate(view: Array, degrees: float) -> None:
    """Rotates an image counterclockwise about its center. Edges are reflected."""
    cv2 = load_opencv()
    height, width = view.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1)
    view[:] = cv2.warpAffine(view, matrix, (width, height), borderMode=cv2.BORDER_REFLECT)


def _draw_beta(uniform: Array, turn: Array, alpha: float) -> Array:
    """Returns random numbers of Beta(alpha, alpha), float32 [B], of two uniform ones.

    `darkroom.input.graph.augment` says how.
    """
    cosine = np.cos(2 * math.pi * turn)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = ((1 - uniform) ** (-1 / alpha) - 1) * cosine**2
        shares: Array = ((1 + np.sign(cosine) / np.sqrt(1 + 1 / ratio)) / 2).astype(np.float32)
    return shares
