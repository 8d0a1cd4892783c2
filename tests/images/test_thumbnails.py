"""Thumbnails: small, upright, and without any byte of the file that they are of."""

from __future__ import annotations

import base64
import io
from contextlib import closing

import numpy as np
import pytest
from PIL import Image

from darkroom.images.decoders import ImagePreparer
from darkroom.images.thumbnails import encode_thumbnail, make_thumbnails
from darkroom.options.image import ImageOptions

from ..pictures import encode


@pytest.fixture(scope="module")
def make_thumbnail():
    """Makes thumbnails by one preparer: a process of a decoder of its own takes long to start."""
    with closing(ImagePreparer(ImageOptions())) as preparer:
        yield lambda data: encode_thumbnail(data, preparer, 96)


def decode(data):
    return Image.open(io.BytesIO(data), formats=["JPEG"])


def test_thumbnail_is_small_upright_and_without_metadata(make_thumbnail):
    pixels = np.zeros((200, 400, 3), np.uint8)
    pixels[:, :200] = (255, 0, 0)  # Left half red; turned clockwise it is the upper half.
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "secret"
    made = decode(make_thumbnail(encode(pixels, "JPEG", quality=95, exif=exif.tobytes())))
    assert made.size == (48, 96)
    assert not made.getexif()
    top, bottom = made.getpixel((24, 20)), made.getpixel((24, 76))
    assert top[0] > 230
    assert max(bottom) < 25


def test_thumbnail_enlarges_tiny_images_without_smoothing(make_thumbnail):
    pixels = np.kron([[0, 255], [255, 0]], np.ones((4, 4))).astype(np.uint8)
    made = decode(make_thumbnail(encode(pixels)))
    assert made.size == (96, 96)
    assert max(made.getpixel((40, 10))) < 20
    assert min(made.getpixel((56, 10))) > 235


def test_thumbnail_of_transparency_is_on_white(make_thumbnail):
    pixels = np.zeros((300, 300, 4), np.uint8)
    made = decode(make_thumbnail(encode(pixels)))
    assert made.getpixel((48, 48)) == (255, 255, 255)


@pytest.mark.parametrize("data", [b"", b"<html>", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0junk"])
def test_a_file_that_is_not_an_image_has_no_thumbnail(make_thumbnail, data):
    with pytest.raises(ValueError, match="No thumbnail"):
        make_thumbnail(data)


def test_an_image_that_cannot_be_decoded_has_no_picture_in_a_page():
    picture = encode(np.zeros((30, 60, 3), np.uint8))
    files = [("a", picture), ("junk", b"<html>"), ("b", picture)]
    made = dict(make_thumbnails(files, {"a": 60, "b": 20, "junk": 20}.__getitem__))
    heads, bodies = zip(*(uri.split(",") for uri in made.values()), strict=True)
    assert heads == ("data:image/jpeg;base64",) * 2
    sizes = [decode(base64.b64decode(body)).size for body in bodies]
    assert dict(zip(made, sizes, strict=True)) == {"a": (60, 30), "b": (20, 10)}
