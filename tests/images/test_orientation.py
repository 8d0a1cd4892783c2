"""Which way up an image is: the same as Pillow's `ImageOps.exif_transpose`, wherever it is said."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from PIL import Image, ImageOps, features

from darkroom.images.jpeg_header import (
    ORIENTATION_TAG,
    parse_exif_orientation,
    parse_jpeg_traits,
    parse_xmp_orientation,
)
from darkroom.images.pillow import find_orientation
from darkroom.images.prepare import prepare_image, prepare_plain
from darkroom.options.image import ImageOptions

from ..pictures import encode, make_photo
from ..turned_images import (
    LONG,
    SHORT,
    exif_segment,
    make_entry,
    make_exif,
    make_jpeg,
    make_odd_jpegs,
    make_png,
    make_random_jpeg,
    make_segment,
    make_turned_pngs,
    make_xmp,
    xmp_segment,
)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

RAW, HEADER = ImageOptions(encoding="raw"), ImageOptions(image_check="header")


def _find_by_pillow(data: bytes) -> int:
    with Image.open(io.BytesIO(data)) as image:
        value = image.getexif().get(ORIENTATION_TAG, 1)
    return int(value) if value in range(1, 9) else 1


def _find_here(data: bytes) -> int:
    found = parse_jpeg_traits(data).orientation
    return find_orientation(data, "jpeg") if found is None else found


def _assert_upright(data: bytes, tolerance: int = 8) -> None:
    with Image.open(io.BytesIO(data)) as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened).convert("RGB")).astype(int)
        is_turned = _find_by_pillow(data) != 1
    image = prepare_image(data, RAW)
    found = np.frombuffer(image.encoded, np.uint8).reshape(image.height, image.width, 3)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance
    assert ("orientation" in image.changes) == is_turned
    assert is_turned


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in make_odd_jpegs()])
def test_a_jpeg_is_turned_as_by_pillow_wherever_it_says_so(data):
    _assert_upright(data)


def test_the_usual_places_need_no_other_process():
    for segment in (exif_segment(make_entry(6)), xmp_segment(6), exif_segment() + xmp_segment(6)):
        image = prepare_plain(make_jpeg(segment), ImageOptions())
        assert image
        assert image.changes == ("orientation",)
    assert prepare_plain(make_jpeg(exif_segment(make_entry(6)) * 2), ImageOptions()) is None


def test_random_metadata_says_the_same_here_and_in_pillow():
    chance, plain, turned = random.Random(3), 0, 0
    for _ in range(600):
        data = make_random_jpeg(chance)
        here = _find_here(data)
        assert here == _find_by_pillow(data), data[:700]
        plain += parse_jpeg_traits(data).orientation is not None
        turned += here != 1
    assert 100 < plain < 500  # both ways were compared
    assert turned > 100


@pytest.mark.parametrize("options", [RAW, HEADER], ids=["full", "header"])
@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in make_turned_pngs()])
def test_a_png_is_turned_as_by_pillow_wherever_it_says_so(data, options):
    _assert_upright(data, 0)
    assert "orientation" in prepare_image(data, options).changes


@pytest.mark.parametrize("text", [b"\nexif\n 8\nno hexadecimal digits\n", b"", b"\n\n\n00"])
def test_a_damaged_text_turns_nothing(text):
    data = make_png((b"tEXt", b"Raw profile type exif\0" + text))
    assert prepare_image(data, ImageOptions()).encoded == data


@pytest.mark.parametrize("kind", ["AVIF", "WEBP", "TIFF"])
def test_xmp_alone_turns_other_formats(kind):
    if kind == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow writes no AVIF")
    xmp = make_xmp(6)
    options = {"tiffinfo": {700: xmp}} if kind == "TIFF" else {"xmp": xmp, "quality": 100}
    _assert_upright(encode(make_photo(), kind, **options), 0 if kind == "TIFF" else 16)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("value", range(11))
@pytest.mark.parametrize("kind", [SHORT, LONG])
def test_an_orientation_is_read_in_both_byte_orders(order, value, kind):
    block = make_exif(make_entry(value, kind, order), order=order)
    assert parse_exif_orientation(block) == (value if 1 <= value <= 8 else 1)


def test_damaged_exif_data_is_left_to_pillow_and_turns_nothing():
    block = make_exif(make_entry(6), order="<")[:22]
    assert parse_exif_orientation(block) == 6
    for length in range(len(block)):
        assert parse_exif_orientation(block[:length]) is None
    assert parse_exif_orientation(b"XX" + block[2:]) is None
    assert parse_exif_orientation(make_exif()) == 0
    for exif in (b"", b"MM", b"XX\0*" + block[4:], block[:12]):
        data = make_jpeg(make_segment(b"Exif\0\0" + exif))
        assert prepare_image(data, ImageOptions()).encoded == data


def test_a_jpeg_that_pillow_cannot_open_is_not_turned():
    data = b"\xff\xd8" + exif_segment(make_entry(6)) * 2
    assert find_orientation(data, "jpeg") == 1
    assert parse_jpeg_traits(data).orientation is None
    assert parse_jpeg_traits(b"\xff\xd8" + b"\xff" * 50).orientation == 1


@pytest.mark.parametrize(("xmp", "value"), [(make_xmp(3), 3), (make_xmp(9), 1), (b"", 1)])
def test_an_orientation_is_found_in_xmp(xmp, value):
    assert parse_xmp_orientation(xmp) == value
