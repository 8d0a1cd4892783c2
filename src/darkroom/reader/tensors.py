"""Views and random changes of a batch in PyTorch, on any device: all images at once.

Pixels are those of `darkroom.images.views` and `darkroom.reader.augment`, but for rounding. A GPU
takes a launch for each operation, so none is for one image, but where large ones are made smaller.
Not measured on a GPU, as `darkroom.reader.gpu` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from darkroom.reader.augment import GRAY, LUMINANCE, MEAN_SIDE, Changes
from darkroom.runtime.arrays import Array


def shrink_window(image: torch.Tensor, divisor: int, window: Sequence[int]) -> torch.Tensor:
    """Returns a window of uint8 [3, H, W] at a fraction; a pixel is the mean of a square."""
    top, left, height, width = (side * divisor for side in window)
    pixels = image[:, top : top + height, left : left + width].float()
    # The squares at the lower and right edges may be incomplete.
    means = functional.avg_pool2d(pixels, divisor, ceil_mode=True, count_include_pad=False)
    return means.add_(0.5).to(torch.uint8)


def resize_windows(
    images: Sequence[torch.Tensor], windows: Array, sides: Sequence[int]
) -> torch.Tensor:
    """Resizes windows of images as OpenCV's INTER_LINEAR does.

    The pixels of all images are put into one row, in which the four neighbours of each new pixel
    are looked up: images of any sizes take as many operations as one image.

    Args:
        images: uint8 [3, H, W] each.
        windows: int [N, 4]: top, left, height and width in pixels.
        sides: Height and width of the result.

    Returns:
        uint8 [N, height, width, 3].
    """
    pixels = torch.cat([image.reshape(-1) for image in images])
    heights, strides = np.array([image.shape[1:] for image in images]).T
    planes = heights * strides
    facts = np.stack((3 * (planes.cumsum() - planes), planes, strides, *windows.T))[..., None]
    start, plane, stride, top, left, height, width = send(facts.astype(np.int32), pixels.device)
    rows, row_shares = _find_neighbours(top, height, sides[0])
    columns, column_shares = _find_neighbours(left, width, sides[1])
    colors = start + plane * torch.arange(3, dtype=torch.int32, device=pixels.device)
    total = torch.full((len(images), *sides, 3), 0.5, device=pixels.device)
    for row, row_share in zip(rows * stride, row_shares, strict=True):
        for column, column_share in zip(columns, column_shares, strict=True):
            places = row[:, :, None, None] + (column[:, :, None] + colors[:, None])[:, None]
            found = pixels.index_select(0, places.view(-1)).view_as(total)
            total.addcmul_(found, (row_share[:, :, None] * column_share[:, None])[..., None])
    return total.to(torch.uint8)


def _find_neighbours(
    start: torch.Tensor, length: torch.Tensor, size: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the places before and after each of `size` new pixels, and shares, [2, N, size]."""
    places = (torch.arange(size, device=start.device) + 0.5) * (length / size) - 0.5
    before = places.floor()
    both = torch.stack((before, before + 1)).clamp_min(0).minimum(length - 1)
    return start + both.int(), torch.stack((before + 1 - places, places - before))


def change(views: torch.Tensor, changes: Changes) -> torch.Tensor:
    """Mirrors, tints, rotates, covers and mixes the images of a batch, uint8 [B, H, W, 3]."""
    steps, device = changes.augmentation, views.device
    if steps.flip:
        is_mirrored = send(changes.is_mirrored, device)[:, None, None, None]
        views = torch.where(is_mirrored, views.flip(2), views)
    if steps.color:
        views = _change_colors(views, *send(changes.factors.T.astype(np.float32), device))
    if steps.rotate:
        views = _rotate(views, np.deg2rad(changes.degrees))
    if steps.cutout:
        views = _cut_out(views, changes.centers, steps.cutout)
    if steps.mixup:
        own = send(changes.shares, device)[:, None, None, None]
        views = (views * own + (views.roll(1, 0) * (1 - own) + 0.5)).to(torch.uint8)
    return views


def _change_colors(
    views: torch.Tensor, brightness: torch.Tensor, contrast: torch.Tensor, saturation: torch.Tensor
) -> torch.Tensor:
    step = max(1, min(views.shape[1:3]) // MEAN_SIDE)
    luminance = send(np.array(LUMINANCE, np.float32), views.device)
    means = views[:, ::step, ::step].float().mean((1, 2)) @ luminance
    own = torch.eye(3, device=views.device) * saturation[:, None, None]
    gray = luminance[:, None] * (1 - saturation)[:, None, None]
    matrix = (own + gray) * (brightness * contrast)[:, None, None]
    offset = (brightness * (1 - contrast) * means)[:, None, None]
    changed = torch.baddbmm(offset, views.flatten(1, 2).float(), matrix)
    return changed.round_().clamp_(0, 255).to(torch.uint8).view_as(views)


def _rotate(views: torch.Tensor, angles: Array) -> torch.Tensor:
    """Rotates images counterclockwise by radians. Edges are reflected."""
    height, width = views.shape[1:3]
    cosine, sine, zero = np.cos(angles), np.sin(angles), np.zeros_like(angles)
    # Where a pixel comes from, in coordinates from -1 to 1.
    x, y = (cosine, -sine * height / width, zero), (sine * width / height, cosine, zero)
    matrices = np.stack((*x, *y), 1, dtype=np.float32).reshape(-1, 2, 3)
    images = views.permute(0, 3, 1, 2).float()
    grid = functional.affine_grid(send(matrices, views.device), images.shape, align_corners=False)
    rotated = functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    return rotated.add_(0.5).to(torch.uint8).permute(0, 2, 3, 1)


def _cut_out(views: torch.Tensor, centers: Array, share: float) -> torch.Tensor:
    sides = views.shape[1:3]
    side = round(share * min(sides))
    first = send((centers * sides).astype(np.int64) - side // 2, views.device)
    down, right = (
        torch.arange(sides[each], device=views.device) - first[:, each, None] for each in (0, 1)
    )
    covers = [(each >= 0) & (each < side) for each in (down, right)]
    return views.masked_fill((covers[0][:, :, None] & covers[1][:, None])[..., None], GRAY)


def send(values: Array, device: Any) -> torch.Tensor:
    """Returns numbers on a device, without waiting for what it does."""
    return torch.from_numpy(np.ascontiguousarray(values)).to(device, non_blocking=True)
