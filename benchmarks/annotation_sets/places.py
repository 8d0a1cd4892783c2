"""Where objects of a list are in the picture that people see, and whether two say the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from PIL import Image

from annotation_sets.plain import Box, Picture, Thing

# Of the pixels of an image: corners that differ by less are equal.
TOLERANCE = 0.01
ORIENTATION_TAG = 0x112
# Where a point of a file of w x h pixels is shown, by the number in EXIF.
TURNS: dict[int, Callable[[float, float, float, float], tuple[float, float]]] = {
    1: lambda x, y, w, h: (x, y),
    2: lambda x, y, w, h: (w - x, y),
    3: lambda x, y, w, h: (w - x, h - y),
    4: lambda x, y, w, h: (x, h - y),
    5: lambda x, y, w, h: (y, x),
    6: lambda x, y, w, h: (h - y, x),
    7: lambda x, y, w, h: (h - y, w - x),
    8: lambda x, y, w, h: (y, w - x),
}


class Photograph(NamedTuple):
    """Width and height of a file in pixels, and the number that EXIF says of its orientation."""

    width: int
    height: int
    turn: int

    @property
    def shown(self) -> tuple[int, int]:
        """Width and height of what people see."""
        return (self.height, self.width) if self.turn > 4 else (self.width, self.height)


def open_photograph(path: Path) -> Photograph:
    """Reads the size and the orientation of an image."""
    with Image.open(path) as image:
        return Photograph(*image.size, image.getexif().get(ORIENTATION_TAG, 1))


def place_things(picture: Picture, photograph: Photograph, orientation: str | None) -> list[Thing]:
    """Returns the objects of a picture in pixels of what people see, not cut at its edges.

    Args:
        picture: What the list says.
        photograph: Its image.
        orientation: `stored` if places are in the pixels of the file where sizes do not tell it.
    """
    stored = (photograph.width, photograph.height)
    fits = [side for side in (photograph.shown, stored) if picture.size in (None, (1, 1), side)]
    is_stored = fits == [stored] or (len(fits) == 2 and orientation == "stored")
    frame, turn = (stored, photograph.turn) if is_stored else (photograph.shown, 1)
    units = picture.size or frame
    scales = frame[0] / units[0], frame[1] / units[1]
    return [each._replace(box=_turn(each.box, scales, turn, frame)) for each in picture.things]


def _turn(box: Box, scales: tuple[float, float], turn: int, frame: tuple[int, int]) -> Box:
    points = [TURNS[turn](x * scales[0], y * scales[1], *frame) for x, y in (box[:2], box[2:])]
    (left, right), (top, bottom) = (sorted(side) for side in zip(*points, strict=True))
    return left, top, right, bottom


def count_changed(found: Iterable[Thing], expected: Iterable[Thing]) -> tuple[int, int]:
    """Returns how many objects equal none that is expected, and how many of these are missing."""
    left, changed = [*expected], 0
    for each in found:
        place = next((n for n, other in enumerate(left) if is_same(each, other)), None)
        if place is None:
            changed += 1
        else:
            del left[place]
    return changed, len(left)


def is_same(one: Thing, other: Thing) -> bool:
    """Tells whether two objects have the same class, flags and corners."""
    return one._replace(box=other.box) == other and is_near(one.box, other.box)


def is_near(one: Box, other: Box) -> bool:
    """Tells whether two boxes have the same corners."""
    return all(abs(a - b) <= TOLERANCE for a, b in zip(one, other, strict=True))


def has_area(box: Box) -> bool:
    """Tells whether the corners of a box are finite and in order."""
    return all(map(math.isfinite, box)) and box[0] < box[2] and box[1] < box[3]


def cut(things: Iterable[Thing], size: tuple[int, int]) -> list[Thing]:
    """Returns objects with the parts of their boxes inside an image of a width and height."""
    width, height = map(float, size)
    found = []
    for each in things:
        left, top, right, bottom = each.box
        box = max(left, 0.0), max(top, 0.0), min(right, width), min(bottom, height)
        found.append(each._replace(box=box))
    return found
