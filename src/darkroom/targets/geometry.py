"""Where a point of an image goes: each step that moves pixels tells its matrix.

Points are (x, y) in pixels from the upper left corner of the image, at the edges of pixels: the
first pixel has its center at (0.5, 0.5), and the right edge of an image is at x = width. So a
mirror is exactly x = width - x, and a reduction exactly a product.

The same functions work for numbers, for NumPy arrays (a value an image), and for tensors in the
graph of input, because they only add and multiply.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# How an EXIF orientation is undone: by a transposition, a mirror left to right, and one top to
# bottom, in this order.
TRANSPOSED, MIRRORED, FLIPPED = (5, 6, 7, 8), (2, 3, 6, 7), (3, 4, 7, 8)


class Matrix(NamedTuple):
    """A 2x3 matrix: (x, y) goes to (xx x + xy y + x0, yx x + yy y + y0).

    Each value is a number, or an array or tensor of shape [B] for a batch of images.
    """

    xx: Any
    xy: Any
    x0: Any
    yx: Any
    yy: Any
    y0: Any

    def then(self, following: Matrix) -> Matrix:
        """Returns the matrix of this step and the following one."""
        x0, y0 = following.move(self.x0, self.y0)
        return Matrix(
            following.xx * self.xx + following.xy * self.yx,
            following.xx * self.xy + following.xy * self.yy,
            x0,
            following.yx * self.xx + following.yy * self.yx,
            following.yx * self.xy + following.yy * self.yy,
            y0,
        )

    def move(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Returns where points go.

        Args:
            x: Their x in pixels: a number, or an array or tensor.
            y: Their y, of the same shape.
        """
        return self.xx * x + self.xy * y + self.x0, self.yx * x + self.yy * y + self.y0

    @property
    def growth(self) -> Any:
        """By how much areas grow."""
        return abs(self.xx * self.yy - self.xy * self.yx)


IDENTITY = Matrix(1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


class Placement(NamedTuple):
    """Where the pixels of an image file are in the image that is stored of it.

    Attributes:
        matrix: Where a point of the file's pixels went.
        size: (height, width) of the stored image, in pixels.
        source_size: (height, width) in the file, upright, before any resizing.
    """

    matrix: Matrix
    size: tuple[int, int]
    source_size: tuple[int, int]


def scale(across: Any, down: Any) -> Matrix:
    """Returns the matrix of another size: the factors of width and height."""
    return Matrix(across, 0.0, 0.0, 0.0, down, 0.0)


def cut(left: Any, top: Any) -> Matrix:
    """Returns the matrix of a window that begins there."""
    return IDENTITY._replace(x0=-left, y0=-top)


def turn(
    height: Any, width: Any, transposed: Any = 0, mirrored: Any = 0, flipped: Any = 0
) -> Matrix:
    """Returns the matrix of a transposition, then a mirror left to right, then one top to bottom.

    Args:
        height: Height of the result in pixels.
        width: Its width.
        transposed: 1 if this is done, else 0.
        mirrored: The same for the mirror left to right.
        flipped: The same for the mirror top to bottom.
    """
    across, down = 1 - 2 * mirrored, 1 - 2 * flipped
    return Matrix(
        across * (1 - transposed),
        across * transposed,
        mirrored * width,
        down * transposed,
        down * (1 - transposed),
        flipped * height,
    )


def rotate(cosine: Any, sine: Any, height: Any, width: Any) -> Matrix:
    """Returns the matrix of a counterclockwise rotation about the center of an image."""
    x, y = width / 2, height / 2
    return Matrix(cosine, sine, x - cosine * x - sine * y, -sine, cosine, y + sine * x - cosine * y)
