"""TIFFs of every kind become what they mean, or are rejected; never other pixels."""

from __future__ import annotations

import numpy as np
import pytest

from darkroom.errors import RejectError
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions

from ..tiff_files import make_tiff

RAW = ImageOptions(encoding="raw")
WHITE_IS_ZERO, GRAY, RGB, PALETTE, CMYK, YCBCR, LAB = 0, 1, 2, 3, 5, 6, 8
CHANNELS = {WHITE_IS_ZERO: 1, GRAY: 1, RGB: 3, CMYK: 4}


def _make_samples(bits: int, channels: int) -> np.ndarray:
    rng = np.random.default_rng(bits)
    return rng.integers(0, 1 << bits, (5, 8, channels), dtype=np.uint64)


def _find_meant(samples: np.ndarray, bits: int, photometric: int) -> np.ndarray:
    """The pixels that a TIFF's values mean: of more than 8 bits the upper ones."""
    if bits > 8:
        values = (samples >> (bits - 8)).astype(int)
    else:
        values = np.rint(samples * 255.0 / ((1 << bits) - 1)).astype(int)
    if photometric == CMYK:
        return np.rint((255 - values[..., :3]) * (255 - values[..., 3:]) / 255).astype(int)
    return 255 - values if photometric == WHITE_IS_ZERO else values


def _prepare(data: bytes) -> np.ndarray:
    image = prepare_image(data, RAW)
    shape = (image.height, image.width, image.channels)
    return np.frombuffer(image.encoded, np.uint8).reshape(shape).astype(int)


def _refuse(data: bytes) -> str:
    with pytest.raises(RejectError) as error:
        prepare_image(data, RAW)
    assert error.value.reason == "unsupported_format"
    return error.value.detail


def test_twelve_bits_fill_the_range():
    ramp = np.linspace(0, 4095, 64).astype(np.uint64).reshape(4, 16, 1)
    for deflated in (False, True):
        data = make_tiff(ramp, 12, GRAY, deflated=deflated)
        assert _prepare(data).tolist() == (ramp >> 4).tolist()
        assert prepare_image(data, RAW).changes == ("format:tiff", "bit_depth", "raw")
    dark = prepare_image(make_tiff(ramp >> 2, 12, GRAY), RAW)
    assert dark.changes == ("format:tiff", "bit_depth", "low_bits", "raw")


def test_white_that_is_zero_is_inverted_with_sixteen_bits_as_with_eight():
    samples = np.array([[[0], [0x1234], [0xFFFF]]])
    data = make_tiff(samples, 16, WHITE_IS_ZERO)
    assert _prepare(data)[..., 0].tolist() == [[255, 255 - 0x12, 0]]
    assert _prepare(make_tiff(samples >> 8, 8, WHITE_IS_ZERO)).tolist() == _prepare(data).tolist()


@pytest.mark.parametrize("deflated", [False, True])
@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_depth_is_right_or_rejected(order, planar, deflated):
    read, refused = set(), {}
    for bits in (1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32):
        for photometric, channels in CHANNELS.items():
            samples = _make_samples(bits, channels)
            data = make_tiff(
                samples, bits, photometric, order=order, planar=planar, deflated=deflated
            )
            try:
                found = _prepare(data)
            except RejectError as error:
                refused[bits, photometric] = error.reason
            else:
                read.add((bits, photometric))
                difference = np.abs(found - _find_meant(samples, bits, photometric)).max()
                assert difference <= (2 if photometric == CMYK else 0), (bits, photometric)
    assert set(refused.values()) == {"unsupported_format"}, refused
    assert read >= {(8, GRAY), (8, RGB), (8, CMYK)}
    if deflated or not planar:
        assert read >= {(1, GRAY), (4, WHITE_IS_ZERO), (16, GRAY), (16, RGB)}
        assert ((12, GRAY) in read) == (order == "<")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("number", "name"), [(2, "signed"), (3, "floating point")])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("photometric", [WHITE_IS_ZERO, GRAY, RGB])
def test_numbers_without_a_range_are_rejected(order, number, name, bits, photometric):
    channels = CHANNELS[photometric]
    samples = _make_samples(bits, channels)
    tags = {339: (number,) * channels}
    detail = _refuse(make_tiff(samples, bits, photometric, order=order, tags=tags))
    assert f"{name} numbers of {bits} bits" in detail


def test_a_kind_that_pillow_does_not_know_is_named_with_the_way_out():
    detail = _refuse(make_tiff(_make_samples(14, 1), 14, GRAY))
    kind = "a TIFF with numbers of 14 bits (gray, 1 a pixel)"
    assert detail == f"{kind} is not read: convert it to PNG"


@pytest.mark.parametrize(
    ("photometric", "channels", "extra"),
    [(GRAY, 2, (2,)), (GRAY, 2, (0,)), (RGB, 4, ()), (LAB, 3, ())],
)
@pytest.mark.parametrize("deflated", [False, True])
def test_planes_that_pillow_mixes_up_are_rejected(photometric, channels, extra, deflated):
    tags = {338: extra} if extra else {}
    samples = _make_samples(8, channels)
    data = make_tiff(samples, 8, photometric, planar=True, deflated=deflated, tags=tags)
    assert "is not read: convert it to PNG" in _refuse(data)


@pytest.mark.parametrize("deflated", [False, True])
def test_planes_of_colors_and_alpha_are_read(deflated):
    samples, tags = _make_samples(8, 4), {338: (2,)}
    apart = make_tiff(samples, 8, RGB, planar=True, deflated=deflated, tags=tags)
    together = make_tiff(samples, 8, RGB, tags=tags)
    assert _prepare(apart).tolist() == _prepare(together).tolist()


def test_ycbcr_without_compression_is_rejected():
    assert "YCbCr" in _refuse(make_tiff(_make_samples(8, 3), 8, YCBCR))
