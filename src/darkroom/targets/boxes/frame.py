"""The image in which a list says places: upright, or as the file has its pixels.

EXIF turns an image when it is shown. Some tools say places in what is shown, and some in the
pixels of the file. Who says which is believed; else the width and the height that are declared
tell it, unless both are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple

from darkroom.errors import RejectError
from darkroom.targets.form import STORED, UPRIGHT
from darkroom.targets.geometry import Matrix, Placement, scale

# Of the edge of an image: tools round corners by up to a pixel, and shares have six decimals.
_MOST_OUTSIDE_PIXELS, _LEAST_OUTSIDE_PIXELS = 1.01, 0.01
# Shares that differ by so much are not equal as floats of 32 bits.
_FINE = 2.0**-23
_AS_WRITTEN = Struct("4f")
# Why an object is not in its record.
OUTSIDE, NO_AREA = "outside_image", "bad_box"

Box = tuple[float, float, float, float]


class Frame(NamedTuple):
    """How places of a list become shares of the stored image.

    Attributes:
        width: Width of the image that the list means, in its units.
        height: Its height.
        matrix: Where a point of the list is, in shares of the stored image.
        source_size: (height, width) of the file in pixels, upright.
        area_factor: By which an area grows to pixels of the stored image.
    """

    width: float
    height: float
    matrix: Matrix
    source_size: tuple[int, int]
    area_factor: float

    @property
    def num_units(self) -> float:
        """Area of the image in the units of the list."""
        return self.width * self.height

    def place(self, boxes: Iterable[Sequence[float]]) -> tuple[list[Box], dict[int, str], int]:
        """Returns boxes in shares of the stored image.

        Args:
            boxes: (xmin, ymin, xmax, ymax) of the list, each.

        Returns:
            The boxes; why some are in no record, by their number: they are outside by over a pixel,
            or have no area in the floats of records; and how many of the others were cut at the
            edge. What decimals cut is not counted.
        """
        xx, xy, x0, yx, yy, y0 = self.matrix
        found: list[Box] = []
        reasons: dict[int, str] = {}
        cut = 0
        for xmin, ymin, xmax, ymax in boxes:
            left, right = xx * xmin + xy * ymin + x0, xx * xmax + xy * ymax + x0
            top, bottom = yx * xmin + yy * ymin + y0, yx * xmax + yy * ymax + y0
            if left > right:
                left, right = right, left
            if top > bottom:
                top, bottom = bottom, top
            box = left, top, right, bottom
            is_thin = right - left < _FINE or bottom - top < _FINE
            if is_thin or left < 0 or top < 0 or right > 1 or bottom > 1:
                box, reason, is_cut = self._fit(box)
                cut += is_cut
                if reason:
                    reasons[len(found)] = reason
            found.append(box)
        return found, reasons, cut

    def _fit(self, box: Box) -> tuple[Box, str, bool]:
        """Returns the part of a box in the image, or why there is none; and whether it was cut."""
        (left, top, right, bottom), (height, width) = box, self.source_size
        outside = max(max(-left, right - 1) * width, max(-top, bottom - 1) * height)
        is_beside = left >= 1 or right <= 0 or top >= 1 or bottom <= 0
        if is_beside or outside > _MOST_OUTSIDE_PIXELS:
            return box, OUTSIDE, False
        inside = max(left, 0.0), max(top, 0.0), min(right, 1.0), min(bottom, 1.0)
        xmin, ymin, xmax, ymax = _AS_WRITTEN.unpack(_AS_WRITTEN.pack(*inside))
        if xmin == xmax or ymin == ymax:
            return box, NO_AREA, False
        return inside, "", outside > _LEAST_OUTSIDE_PIXELS


def find_frame(
    width: float | None, height: float | None, orientation: str | None, image: Placement
) -> Frame:
    """Returns the frame of a list for an image.

    Args:
        width: Width that the list declares; 1 with a height of 1 for shares; None if it says none.
        height: Its height.
        orientation: Whether places are in the image that is shown, `upright`, or in the pixels of
            the file, `stored`, whatever size is declared; None if nobody says that.
        image: Where the pixels of the file went.

    Raises:
        RejectError: The list declares another size, or nothing says which of two images it means.
    """
    upright = image.source_size
    declared = None if height is None or width is None else (height, width)
    size, turned = upright, None
    if image.matrix.xx <= 0 or image.matrix.yy <= 0:  # EXIF turns the image.
        stored = upright[::-1] if image.matrix.xx == 0 else upright
        if (orientation or _find_orientation(declared, upright, stored)) == STORED:
            size, turned = stored, image.matrix
        if orientation and declared in (upright, stored):
            # Tools show an image turned, and let the file say its size.
            declared = size
    if declared not in (None, (1, 1), size):
        raise RejectError(
            "other_size",
            f"the list says {width:g} x {height:g}, and the image has "
            f"{upright[1]} x {upright[0]} pixels",
        )
    units = size if declared is None else declared
    matrix = scale(1 / units[1], 1 / units[0])
    if turned is not None:
        to_pixels = scale(size[1] / units[1], size[0] / units[0])
        matrix = to_pixels.then(turned).then(scale(1 / image.size[1], 1 / image.size[0]))
    factor = image.size[0] * image.size[1] / (units[0] * units[1])
    return Frame(units[1], units[0], matrix, upright, factor)


def _find_orientation(
    declared: tuple[float, float] | None, upright: tuple[int, int], stored: tuple[int, int]
) -> str:
    """Returns in which of the two images of a turned file a list says places, by its size.

    Raises:
        RejectError: It does not say it.
    """
    sizes = {UPRIGHT: upright, STORED: stored}
    fitting = [name for name, size in sizes.items() if declared in (None, (1, 1), size)]
    if len(fitting) > 1:
        raise RejectError(
            "ambiguous_orientation",
            "EXIF turns the image, and the list does not say whether its boxes are turned, too",
        )
    return fitting[0] if fitting else UPRIGHT
