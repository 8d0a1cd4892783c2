"""Which images are copies by their pixels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFont, ImageOps

pytest.importorskip("cv2")

from darkroom.images.alignment import COVERED, compare, make_sketch

from ..pictures import decode, encode, make_drawing


def sketch(image: Image.Image, *, mirrored: bool = False):
    return make_sketch(np.asarray(image.convert("L")), mirrored=mirrored)


def crop(image: Image.Image, share: float) -> Image.Image:
    across, down = (round(side * (1 - share) / 2) for side in image.size)
    return image.crop((across, down, image.width - across, image.height - down))


def cover(image: Image.Image, box: tuple[int, int, int, int], color: str) -> Image.Image:
    image = image.copy()
    ImageDraw.Draw(image).rectangle(box, fill=color)
    return image


def write(image: Image.Image) -> Image.Image:
    image = image.copy()
    font = ImageFont.load_default(40)
    ImageDraw.Draw(image).multiline_text((10, 70), "NOT FOR SALE\n2026 11 28", "white", font)
    return image


EDITS = {
    "compressed": lambda image: decode(encode(image, "JPEG", quality=30)),
    "half": lambda image: image.resize((image.width // 2, image.height // 2)),
    "cropped": lambda image: crop(image, 0.75),
    "turned": lambda image: image.rotate(5, Image.Resampling.BICUBIC),
    "on its side": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.4),
    "in a border": lambda image: ImageOps.expand(image, 30, "white"),
    "under a bar": lambda image: cover(image, (0, 190, 319, 239), "black"),
    "under a logo": lambda image: cover(image, (200, 10, 310, 80), "navy"),
    "under text": write,
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_copy_is_alike_from_both_sides_and_also_mirrored(edit):
    image = make_drawing(1)
    copy = EDITS[edit](image)
    for found in (compare(sketch(image), sketch(copy)), compare(sketch(copy), sketch(image))):
        assert found % COVERED > 0.85
        # Text may be too thin to be told from other edits.
        assert (found > COVERED) == (edit in ("under a bar", "under a logo"))
    mirrored = ImageOps.mirror(copy)
    assert compare(sketch(image, mirrored=True), sketch(mirrored)) > 0.85
    assert compare(sketch(image), sketch(mirrored)) == 0


def test_other_things_before_the_same_wall_are_not_copies():
    walls = [make_drawing(5), make_drawing(5), make_drawing(6)]
    for wall, shape in zip(walls, ("ellipse", "rectangle", "ellipse"), strict=True):
        things = make_drawing(ord(shape[0])).resize((150, 180))
        mask = Image.new("L", things.size)
        getattr(ImageDraw.Draw(mask), shape)((0, 0, 149, 179), fill=255)
        wall.paste(things, (90, 30), mask)
    one, other, third = map(sketch, walls)
    assert compare(one, other) == 0
    assert compare(one, third) == 0


def test_an_image_without_key_points_is_not_decided():
    plain = Image.new("L", (320, 240), 128)
    assert math.isnan(compare(sketch(plain), sketch(plain)))
    assert math.isnan(compare(sketch(make_drawing(1)), sketch(plain)))
    assert math.isnan(compare(sketch(Image.new("L", (1, 2_000))), sketch(make_drawing(1))))
