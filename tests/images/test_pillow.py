"""Files other than plain JPEGs, intact and damaged."""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image, features

from darkroom.errors import RejectError
from darkroom.images import pillow
from darkroom.images.memory import MemoryNeededError
from darkroom.images.pillow import decode, has_reader_now, parse_header
from darkroom.images.pixels import undo_orientation
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions

from ..pictures import encode, make_photo

KINDS = ("GIF", "BMP", "WEBP", "TIFF")


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return make_photo()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("kind", [*KINDS, "PNG"])
def test_a_damaged_file_is_rejected_and_raises_nothing_else(photo, kind):
    good = encode(photo, kind)
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
        except RejectError as error:
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
    decoded = decode(encode(photo, "TIFF", exif=exif), "tiff")
    assert decoded.changes == ["format:tiff", "orientation"]
    assert np.array_equal(decoded.pixels, np.asarray(photo.rotate(-90, expand=True)))


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("kind", ["WEBP", "AVIF", "HEIF"])
def test_modern_formats_are_turned_upright(photo, kind, orientation):
    if kind == "HEIF":
        pytest.importorskip("pillow_heif.HeifImagePlugin")
    if kind == "AVIF" and not features.check("avif"):
        pytest.skip("this Pillow writes no AVIF")
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(photo, kind, exif=exif.tobytes(), quality=95)
    upright = undo_orientation(np.asarray(photo), orientation)[0].astype(int)
    decoded = decode(data, {"HEIF": "heic"}.get(kind, kind.lower()))
    assert np.abs(decoded.pixels.astype(int) - upright).mean() < 4
    assert "orientation" in decoded.changes or kind == "HEIF"  # libheif has turned it before


def test_heic_without_its_extra_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif.HeifImagePlugin", None)
    with pytest.raises(RejectError, match="extra 'heic'") as error:
        prepare_image(b"\0\0\0\x18ftypheic" + bytes(40), ImageOptions())
    assert error.value.reason == "unsupported_format"


def test_a_reader_that_was_installed_since_is_noticed(monkeypatch):
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pillow_heif.HeifImagePlugin", None)
        with pytest.raises(RejectError) as error:
            prepare_image(b"\0\0\0\x18ftypheic" + bytes(40), ImageOptions())
        assert not has_reader_now(error.value.detail)
    # As where the extra is installed.
    monkeypatch.setitem(pillow._READERS, "heic", ("PNG", "PIL.PngImagePlugin"))
    assert has_reader_now(error.value.detail)
    assert not has_reader_now("TIFF of 64 bits is not read")


def test_avif_with_an_older_pillow_names_the_version(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.AvifImagePlugin", None)
    with pytest.raises(RejectError, match=r"version 11\.3") as error:
        prepare_image(b"\0\0\0\x18ftypavif" + bytes(40), ImageOptions())
    assert error.value.reason == "unsupported_format"


def test_only_the_reader_of_the_format_is_used(photo, monkeypatch):
    asked = []
    real = Image.open
    monkeypatch.setattr(
        Image, "open", lambda file, formats: asked.append(formats) or real(file, formats=formats)
    )
    decode(encode(photo, "TIFF"), "tiff")
    with pytest.raises(RejectError):
        decode(encode(photo, "BMP"), "tiff")
    assert asked == [["TIFF"], ["TIFF"]]


def test_a_detail_is_the_same_each_time(photo):
    details = set()
    for _ in range(3):
        with pytest.raises(RejectError) as error:
            decode(b"GIF89a" + bytes(40), "gif")
        details.add(error.value.detail)
    assert details == {"its header is not one of GIF, or is damaged"}


def test_a_large_webp_is_known_before_it_is_opened(photo, monkeypatch):
    data = encode(photo, "WEBP", lossless=True)
    monkeypatch.setattr(Image, "open", lambda *_, **__: pytest.fail("it was opened"))
    with pytest.raises(MemoryNeededError) as error:
        decode(data, "webp", _refuse_all)
    assert error.value.need.num_bytes == 24 * 40 * 22


@contextmanager
def _refuse_all(need):
    raise MemoryNeededError(need)
    yield


def test_the_header_of_a_file_is_read_without_decoding(photo):
    data = encode(photo.convert("CMYK"), "JPEG", icc_profile=b"a profile")
    assert parse_header(data[: data.index(b"\xff\xda") + 20], "jpeg") == (24, 40, 4, b"a profile")


def test_a_format_that_pillow_was_not_built_with_is_named(photo, monkeypatch):
    data = encode(photo, "WEBP")
    Image.init()
    monkeypatch.delitem(Image.OPEN, "WEBP")
    with pytest.raises(RejectError, match="this Pillow was built without WEBP") as error:
        decode(data, "webp")
    assert error.value.reason == "unsupported_format"


def test_a_bomb_that_pillow_itself_rejects_is_too_large(photo):
    data = bytearray(encode(photo, "BMP"))
    data[18:26] = (40_000).to_bytes(4, "little") * 2
    with pytest.raises(RejectError) as error:
        decode(bytes(data), "bmp")
    assert error.value.reason == "too_large"
