"""Which object of an image a finding is about: `number`, from 1, and `box`.

The box is left, top, right and bottom in pixels of the image as people see it, before any resizing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# The same by SQL: of corners in shares, the size in the file, and a number from 0.
LOCATED = """{'number': number + 1, 'box': [
    round(xmin::DOUBLE * source_width, 1), round(ymin::DOUBLE * source_height, 1),
    round(xmax::DOUBLE * source_width, 1), round(ymax::DOUBLE * source_height, 1)
]}"""


def locate_object(
    number: int | None, corners: Iterable[float], width: int, height: int
) -> dict[str, Any]:
    """Returns where an object is, or a result of a detector about none.

    Args:
        number: Its place in the list of its image, from 0; None for a result.
        corners: Left, top, right and bottom in shares of the image.
        width: The width of the image in pixels.
        height: Its height.
    """
    sides = zip(corners, (width, height) * 2, strict=True)
    box = [round(float(share) * side, 1) for share, side in sides]
    return {"number": None if number is None else number + 1, "box": box}
