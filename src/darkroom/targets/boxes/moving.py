"""Where boxes go when the pixels of their images move: the same for NumPy and TensorFlow."""

from __future__ import annotations

from typing import Any

from darkroom.targets.geometry import Matrix

# Coordinates are rounded: by that alone, so much of a box may be outside.
_ROUNDING = 1e-3
# In pixels. What is thinner may have no width in float32, and trainings refuse that.
_THINNEST = 1e-3


def move_boxes(
    boxes: Any, matrix: Matrix, size: tuple[Any, Any], min_visible: float, ops: Any
) -> tuple[Any, Any]:
    """Moves boxes as the pixels of their images, and finds those that a view still shows.

    A box becomes the smallest upright one around its four corners, less what is outside the view.
    After a turn, this is more than the object.

    Args:
        boxes: float64 [..., 4]: left, top, right and bottom, in what the matrix takes.
        matrix: Where points go, to pixels of the view. Each value is a number, or goes with the
            boxes: [B, 1] for boxes [B, M, 4], [N] for boxes [N, 4].
        size: (height, width) of the view in pixels: numbers, or like the values of the matrix.
        min_visible: How much of the area of a moved box, 0 to 1, must be in the view.
        ops: `numpy` or `tensorflow`: their functions have the same names.

    Returns:
        The boxes in pixels of the view, float64 [..., 4], 0 where one is not shown; and whether
        each is shown, bool [...].
    """
    left, top, right, bottom = (boxes[..., side] for side in range(4))
    xs, ys = (left, right), (top, bottom)
    across = _span(matrix.xx, xs, matrix.xy, ys, matrix.x0, ops)
    down = _span(matrix.yx, xs, matrix.yy, ys, matrix.y0, ops)
    height, width = size
    (left, right), (top, bottom) = _clip(across, width, ops), _clip(down, height, ops)
    area = (across[1] - across[0]) * (down[1] - down[0])
    is_shown = (right - left) * (bottom - top) >= area * (min_visible - _ROUNDING)
    is_shown = is_shown & (right - left > _THINNEST) & (bottom - top > _THINNEST)
    moved = ops.stack((left, top, right, bottom), axis=-1)
    return ops.where(is_shown[..., None], moved, ops.zeros_like(moved)), is_shown


def _span(
    by_x: Any, xs: tuple[Any, Any], by_y: Any, ys: tuple[Any, Any], start: Any, ops: Any
) -> tuple[Any, Any]:
    """Returns the least and the greatest of a coordinate that the corners of boxes get."""
    from_x, from_y = (by_x * xs[0], by_x * xs[1]), (by_y * ys[0], by_y * ys[1])
    least = ops.minimum(*from_x) + ops.minimum(*from_y) + start
    return least, ops.maximum(*from_x) + ops.maximum(*from_y) + start


def _clip(span: tuple[Any, Any], end: Any, ops: Any) -> tuple[Any, Any]:
    """Returns the part of spans from 0 to an end."""
    least, greatest = span
    return ops.minimum(ops.maximum(least, 0), end), ops.minimum(ops.maximum(greatest, 0), end)


def are_boxes(left: Any, top: Any, right: Any, bottom: Any) -> Any:
    """Tells which boxes are inside of their image, in shares of it; NaN is not.

    Args:
        left: Arrays of NumPy or tensors, all of one shape, as the others.
        top: See above.
        right: See above.
        bottom: See above.
    """
    across = (left >= 0) & (left <= right) & (right <= 1)
    return across & (top >= 0) & (top <= bottom) & (bottom <= 1)
