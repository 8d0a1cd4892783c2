"""Files that are no plain JPEG, sound and damaged."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
from PIL import Image

from darkroom.image_bytes import ImageError
from darkroom.images import ImageOptions, prepare_image
from darkroom.pillow_decoder import decode, read_header

KINDS = ("GIF", "BMP", "WEBP", "TIFF")


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    y, x = np.mgrid[0:24, 0:40]
    return Image.fromarray(np.stack([x * 6, y * 10, 255 - x * 3 - y * 4], -1).astype(np.uint8))


def save(image: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("kind", [*KINDS, "PNG"])
def test_a_damaged_file_is_refused_and_raises_nothing_else(photo, kind):
    good = save(photo, kind)
    chance = random.Random(5)
    reasons = set()
    for number in range(300):
        data = bytearray(good)
        for _ in range(1 + number % 3):
            # Half of the damage goes to the header.
            place = chance.randrange(4, min(len(data), 120) if number % 2 else len(data))
            data[place] ^= 1 << chance.randrange(8)
        if number % 5 == 0:
            data = data[: chance.randrange(8, len(data))]
        try:
            prepare_image(bytes(data), ImageOptions())
        except ImageError as error:
            reasons.add(error.reason)
    assert reasons <= {
        "not_an_image",
        "truncated",
        "undecodable",
        "too_large",
        "unsupported_format",
    }
    assert reasons


def test_a_turned_tiff_is_upright_and_says_so(photo):
    exif = Image.Exif()
    exif[0x0112] = 6
    decoded = decode(save(photo, "TIFF", exif=exif), "tiff")
    assert decoded.changes == ["format:tiff", "orientation"]
    assert np.array_equal(decoded.pixels, np.asarray(photo.rotate(-90, expand=True)))


def test_the_header_of_a_file_is_read_undecoded(photo):
    data = save(photo.convert("CMYK"), "JPEG", icc_profile=b"a profile")
    assert read_header(data[: data.index(b"\xff\xda") + 20], "jpeg") == (24, 40, 4, b"a profile")


def test_a_format_that_pillow_was_not_built_with_is_named(photo, monkeypatch):
    data = save(photo, "WEBP")
    Image.init()
    monkeypatch.delitem(Image.OPEN, "WEBP")
    with pytest.raises(ImageError, match="Pillow was built without webp") as error:
        decode(data, "webp")
    assert error.value.reason == "unsupported_format"


def test_a_bomb_that_pillow_itself_refuses_is_too_large(photo):
    data = bytearray(save(photo, "BMP"))
    data[18:26] = (40_000).to_bytes(4, "little") * 2
    with pytest.raises(ImageError) as error:
        decode(bytes(data), "bmp")
    assert error.value.reason == "too_large"
