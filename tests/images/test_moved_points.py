"""Matrices: how they compose, and that conversion says where the points of an image went."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from PIL import Image
from tests.images.coordinates import check_points, make_coordinates

from darkroom.images.prepare import prepare_image
from darkroom.images.sandbox_child import format_answer, parse_answer
from darkroom.options.image import ImageOptions
from darkroom.targets.geometry import IDENTITY, cut, rotate, scale, turn

SOURCE = (90, 150)


def test_steps_compose_in_their_order():
    assert scale(2, 3).then(cut(10, 20)).move(7, 8) == (4, 4)
    assert cut(10, 20).then(scale(2, 3)).move(7, 8) == (-6, -36)
    assert IDENTITY.then(turn(4, 6, mirrored=1)).move(1.5, 3) == (4.5, 3)
    assert turn(6, 4, transposed=1, flipped=1).move(1, 3) == (3, 5)
    x, y = rotate(0.0, 1.0, 4, 6).move(np.array([3, 6]), np.array([2, 2]))
    assert (x.tolist(), y.tolist()) == ([3, 3], [2, -1])


def _encode(orientation: int, form: str) -> bytes:
    image = Image.fromarray(make_coordinates(*SOURCE))
    exif = image.getexif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    more = {"quality": 100, "subsampling": 0} if form == "JPEG" else {}
    image.save(file, form, exif=exif, **more)
    return file.getvalue()


@pytest.mark.parametrize("short_side", [None, 45, 37])
@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_conversion_says_where_points_went(orientation, form, short_side):
    options = ImageOptions(resize_short_side=short_side, encoding="raw")
    data = _encode(orientation, form)
    image = prepare_image(data, options)
    pixels = np.frombuffer(image.encoded, np.uint8).reshape(image.height, image.width, 3)
    check_points(pixels, image.matrix, SOURCE)
    assert parse_answer(*_send(image, data)).matrix == pytest.approx(image.matrix)


def _send(image, data):
    text, encoded = format_answer(image, data)
    return json.loads(text), encoded, data


def test_an_image_that_stays_moves_nothing():
    image = prepare_image(_encode(1, "PNG"), ImageOptions())
    assert image.matrix == IDENTITY
