"""Pixels in memory: turned, converted, shrunk, encoded."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageCms, ImageOps

from darkroom.errors import RejectError
from darkroom.images import pixels
from darkroom.images.pixels import convert_profile, convert_to_rgb, encode, shrink, undo_orientation

CORNERS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("pixels", [CORNERS, CORNERS[..., :1]], ids=["rgb", "gray"])
def test_orientations_are_undone_as_by_pillow(orientation, pixels):
    image = Image.fromarray(CORNERS)
    image.getexif()[0x0112] = orientation
    expected = np.asarray(ImageOps.exif_transpose(image))[..., : pixels.shape[2]]
    turned, _ = undo_orientation(pixels, orientation)
    assert turned.tolist() == expected.tolist()
    assert turned.flags.c_contiguous


def test_sixteen_bits_with_a_transparent_value_become_eight_on_white():
    image = Image.fromarray(np.array([[0x0102, 0x8000, 0xFF00]], np.uint16))
    image.info["transparency"] = 0x8000
    changes: list[str] = []
    assert np.asarray(convert_to_rgb(image, changes)).tolist() == [[1, 255, 255]]
    assert changes == ["bit_depth", "alpha"]


@pytest.mark.parametrize("mode", ["F", "I"])
def test_pixels_without_a_range_are_rejected(mode):
    with pytest.raises(RejectError, match=f"mode {mode} .32 bits. have no known range") as error:
        convert_to_rgb(Image.new(mode, (2, 2)), [])
    assert error.value.reason == "unsupported_format"


def test_a_profile_is_applied_and_srgb_is_left_alone():
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    other = _exchange_red_and_green(srgb)
    assert convert_profile(CORNERS, srgb) is CORNERS
    assert convert_profile(CORNERS, None) is CORNERS
    assert convert_profile(CORNERS, b"damaged") is CORNERS
    gray = CORNERS[..., 0]
    assert convert_profile(gray, other) is gray
    red = np.full((2, 2, 3), (200, 30, 30), np.uint8)
    found_red, found_green, _ = convert_profile(red, other)[0, 0]
    assert found_green > 150 > 60 > found_red


def _exchange_red_and_green(srgb: bytes) -> bytes:
    data = srgb.replace(b"rXYZ", b"____").replace(b"gXYZ", b"rXYZ").replace(b"____", b"gXYZ")
    return data.replace("sRGB".encode("utf-16-be"), "oRGB".encode("utf-16-be"))


def test_shrinking_is_the_mean_of_an_area():
    pixels = np.array([[0, 100, 10, 20], [200, 100, 30, 40]], np.uint8)
    assert shrink(pixels, 1)[0].tolist() == [[100, 25]]
    assert shrink(np.zeros((300, 100, 3), np.uint8), 50)[0].shape == (150, 50, 3)
    assert shrink(np.zeros((1000, 3, 1), np.uint8), 1)[0].shape == (333, 1)


@pytest.mark.parametrize("target", ["jpeg", "png"])
@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3)])
def test_encoded_pixels_have_no_metadata(target, shape):
    pixels = np.full(shape, 77, np.uint8)
    with Image.open(io.BytesIO(encode(pixels, target))) as image:
        assert image.format == target.upper()
        assert np.asarray(image).tolist() == pixels.reshape(np.asarray(image).shape).tolist()
        assert not {"exif", "icc_profile", "dpi"} & image.info.keys()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "RGBX"])
def test_strips_give_the_same_pixels_as_the_whole_image(mode, monkeypatch):
    rng = np.random.default_rng(4)
    picture = Image.fromarray(rng.integers(0, 256, (23, 9, 4), np.uint8), "RGBA")
    deep = Image.fromarray(rng.integers(0, 1 << 16, (23, 9)).astype(np.uint16))
    image = deep if mode == "I;16" else picture.convert("RGB").convert(mode)
    image = picture.convert(mode) if mode in ("LA", "RGBA") else image
    whole = convert_to_rgb(image, [])
    monkeypatch.setattr(pixels, "_STRIP_PIXELS", 30)  # three rows, and two at the end
    strips = convert_to_rgb(image, [])
    assert np.array_equal(strips, whole)
    assert strips.dtype == np.uint8


def test_a_profile_is_applied_in_strips(monkeypatch):
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    other = srgb.replace(b"rXYZ", b"____").replace(b"gXYZ", b"rXYZ").replace(b"____", b"gXYZ")
    other = other.replace("sRGB".encode("utf-16-be"), "oRGB".encode("utf-16-be"))
    values = np.random.default_rng(4).integers(0, 256, (23, 9, 3), np.uint8)
    whole = convert_profile(values, other)
    assert not np.array_equal(whole, values)
    monkeypatch.setattr(pixels, "_STRIP_PIXELS", 30)
    assert np.array_equal(convert_profile(values, other), whole)
