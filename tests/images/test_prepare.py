"""Preparing an image: which bytes stay, what is changed, what is rejected."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import simplejpeg
from PIL import Image, ImageCms, ImageOps, PngImagePlugin

from darkroom.errors import RejectError, UsageError
from darkroom.images import pixels
from darkroom.images.memory import MAX_PIXELS
from darkroom.images.pixels import hash_pixels, measure_luminance
from darkroom.images.prepare import prepare_image, prepare_plain
from darkroom.images.views import JPEG_FORM, choose_part, decode_view
from darkroom.options.image import ImageOptions

from ..image_forms import chunk, insert
from ..pictures import encode, make_photo

FULL, HEADER = ImageOptions(), ImageOptions(image_check="header")


@pytest.fixture
def photo() -> Image.Image:
    return make_photo()


def _decode(data: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image)


def _refuse(data: bytes, options: ImageOptions = FULL) -> tuple[str, str]:
    with pytest.raises(RejectError) as error:
        prepare_image(data, options)
    return error.value.reason, error.value.detail


JPEGS = {
    "4:2:0": {"quality": 90, "subsampling": 2},
    "4:4:4": {"quality": 90, "subsampling": 0},
    "progressive": {"quality": 90, "progressive": True},
    "with a profile": {"quality": 90, "icc_profile": b"not looked at"},
    "with a comment": {"quality": 90, "comment": b"hello"},
}


@pytest.mark.parametrize("options", [FULL, HEADER], ids=["full", "header"])
@pytest.mark.parametrize("name", JPEGS)
def test_an_upright_jpeg_keeps_its_bytes(photo, name, options):
    data = encode(photo, "JPEG", **JPEGS[name])
    image = prepare_image(data, options)
    assert image.encoded == data
    assert (image.format, image.height, image.width, image.channels) == ("jpeg", 24, 40, 3)
    assert image.changes == ()
    assert (image.pixel_hash is None) == (options is HEADER)


@pytest.mark.parametrize("options", [FULL, HEADER], ids=["full", "header"])
def test_a_jpeg_whose_colors_are_reduced_in_a_rare_way_keeps_its_bytes(photo, options):
    # Columns of four blocks, 4:4:1, which are as many as squares of four here.
    data = encode(photo.resize((32, 32)), "JPEG", quality=90, subsampling=2)
    data = _change(data, data.index(b"\xff\xc0") + 11, 0x14)
    assert prepare_plain(data, options) is None
    image = prepare_image(data, options)
    assert (image.encoded, image.changes, image.height, image.channels) == (data, (), 32, 3)
    view = np.empty((32, 32, 3), np.uint8)
    shape = 32, 32, 3
    decode_view(data, JPEG_FORM, shape, choose_part(JPEG_FORM, shape, None, view.shape), view)
    assert np.abs(view.astype(int) - _decode(data)).max() < 6


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("options", [FULL, HEADER], ids=["full", "header"])
def test_a_gray_image_keeps_its_bytes_and_has_one_channel(photo, kind, options):
    data = encode(photo.convert("L"), kind)
    image = prepare_image(data, options)
    assert (image.encoded, image.channels, image.changes) == (data, 1, ())


@pytest.mark.parametrize("options", [FULL, HEADER], ids=["full", "header"])
def test_an_rgb_png_keeps_its_bytes(photo, options):
    data = encode(photo, "PNG")
    image = prepare_image(data, options)
    assert (image.encoded, image.format, image.channels) == (data, "png", 3)
    assert (image.height, image.width, image.source_format) == (24, 40, "png")


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize("orientation", range(2, 9))
def test_a_turned_image_is_made_upright(photo, kind, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encode(photo, kind, exif=exif.tobytes())
    with Image.open(io.BytesIO(data)) as image:
        upright = np.asarray(ImageOps.exif_transpose(image)).astype(int)
    image = prepare_image(data, FULL)
    assert image.changes == ("orientation",)
    assert (image.height, image.width) == ((40, 24) if orientation >= 5 else (24, 40))
    assert (image.source_height, image.source_width) == (image.height, image.width)
    found = _decode(image.encoded).astype(int)
    assert np.abs(found - upright).max() <= (0 if kind == "PNG" else 12)
    assert prepare_image(image.encoded, FULL).changes == ()


def test_colors_of_another_space_become_srgb_when_a_photo_is_encoded_again(photo):
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    # Red and green are swapped, and the profile gets another name.
    other = srgb.replace(b"rXYZ", b"____").replace(b"gXYZ", b"rXYZ").replace(b"____", b"gXYZ")
    other = other.replace("sRGB".encode("utf-16-be"), "oRGB".encode("utf-16-be"))
    exif = Image.Exif()
    exif[0x0112] = 3
    red = Image.new("RGB", (16, 16), (200, 20, 20))
    for profile, changes in ((other, ("orientation", "profile")), (srgb, ("orientation",))):
        data = encode(red, "JPEG", quality=95, exif=exif.tobytes(), icc_profile=profile)
        image = prepare_image(data, FULL)
        assert image.changes == changes
        red_value, green_value, _ = _decode(image.encoded).mean((0, 1))
        assert (green_value > red_value) == (profile is other)
    upright = encode(red, "JPEG", icc_profile=other)
    assert prepare_image(upright, FULL).encoded == upright


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_exif_that_turns_nothing_changes_nothing(photo, kind):
    exif = Image.Exif()
    exif[0x0112] = 1
    data = encode(photo, kind, exif=exif.tobytes())
    assert prepare_image(data, FULL).encoded == data


def _flat(image: Image.Image) -> np.ndarray:
    canvas = Image.new("RGBA", image.size, "white")
    return np.asarray(Image.alpha_composite(canvas, image.convert("RGBA")).convert("RGB"))


def test_transparent_images_are_put_on_white(photo):
    rgba = photo.convert("RGBA")
    rgba.putalpha(Image.fromarray(np.tile(np.arange(0, 240, 6, np.uint8), (24, 1))))
    image = prepare_image(encode(rgba, "PNG"), FULL)
    assert (image.changes, image.channels, image.format) == (("alpha",), 3, "png")
    assert np.array_equal(_decode(image.encoded), _flat(rgba))


def test_gray_with_transparency_stays_gray(photo):
    gray = photo.convert("L").convert("LA")
    gray.putalpha(128)
    image = prepare_image(encode(gray, "PNG"), FULL)
    assert (image.changes, image.channels) == (("alpha",), 1)
    assert _decode(image.encoded).shape == (24, 40)


def test_a_transparent_color_becomes_white(photo):
    data = encode(photo, "PNG", transparency=photo.getpixel((3, 4)))
    image = prepare_image(data, FULL)
    assert image.changes == ("alpha",)
    assert _decode(image.encoded)[4, 3].tolist() == [255, 255, 255]
    assert _decode(image.encoded)[5, 3].tolist() == list(photo.getpixel((3, 5)))


def test_a_palette_becomes_rgb(photo):
    palette = photo.quantize(16)
    image = prepare_image(encode(palette, "PNG"), FULL)
    assert image.changes == ("palette",)
    assert np.array_equal(_decode(image.encoded), np.asarray(palette.convert("RGB")))


@pytest.mark.parametrize("color", [0, 2])
@pytest.mark.parametrize(("top", "low"), [(4095, True), (16383, True), (16384, False)])
def test_sixteen_bits_of_which_the_upper_ones_are_not_used_are_marked(color, top, low):
    rows = b"\0" + np.full(3, top, ">u2").tobytes()
    image = prepare_image(_make_png(3 if color == 0 else 1, 1, 16, color, rows), FULL)
    assert image.changes == ("bit_depth", "low_bits")[: 1 + low]


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_few_bits_become_eight(photo, bits):
    # Pillow writes 1 bit only, so the PNG is put together here: one row of all values.
    values = range(1 << bits)
    row = "".join(f"{value:0{bits}b}" for value in values).ljust(8, "0")
    packed = int(row, 2).to_bytes(len(row) // 8, "big")
    data = _make_png(1 << bits, 1, bits, 0, b"\0" + packed)
    image = prepare_image(data, FULL)
    assert image.changes == ("bit_depth",)
    black = _make_png(1 << bits, 1, bits, 0, b"\0" + bytes(len(packed)))
    assert prepare_image(black, FULL).changes == ("bit_depth",)
    step = 255 // ((1 << bits) - 1)
    assert _decode(image.encoded).tolist() == [[value * step for value in values]]


def test_sixteen_bits_become_eight():
    values = np.array([[0, 0x1234, 0xFFFF]], np.uint16)
    data = _make_png(3, 1, 16, 0, b"\0" + values.astype(">u2").tobytes())
    image = prepare_image(data, FULL)
    assert image.changes == ("bit_depth",)
    assert _decode(image.encoded).tolist() == [[0, 0x12, 0xFF]]
    rgb = np.array([[[0x0102, 0x8081, 0xFFFE]]], np.uint16)
    data = _make_png(1, 1, 16, 2, b"\0" + rgb.astype(">u2").tobytes())
    image = prepare_image(data, FULL)
    assert image.changes == ("bit_depth",)
    assert _decode(image.encoded).tolist() == [[[0x01, 0x80, 0xFF]]]


def _comment(text: str) -> PngImagePlugin.PngInfo:
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", text)
    return info


def _make_png(
    width: int, height: int, depth: int, color: int, rows: bytes, *more: tuple[bytes, bytes]
) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    chunks = ((b"IHDR", header), *more, (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def test_cmyk_becomes_a_jpeg_in_rgb(photo):
    image = prepare_image(encode(photo.convert("CMYK"), "JPEG", quality=95), FULL)
    assert (image.changes, image.format, image.channels) == (("cmyk",), "jpeg", 3)
    difference = np.abs(_decode(image.encoded).astype(int) - np.asarray(photo).astype(int))
    assert difference.mean() < 6


@pytest.mark.parametrize("kind", ["GIF", "BMP", "WEBP", "TIFF"])
def test_other_formats_become_png(photo, kind):
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encode(photo, kind, **options)
    with Image.open(io.BytesIO(data)) as opened:
        expected = np.asarray(opened.convert("RGB"))
    image = prepare_image(data, FULL)
    assert image.format == "png"
    assert image.changes[0] == f"format:{kind.lower()}"
    assert image.source_format == kind.lower()
    assert np.array_equal(_decode(image.encoded), expected)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_the_first_of_several_frames_is_used(photo, kind):
    data = encode(photo, kind, save_all=True, append_images=[photo.rotate(180)], duration=100)
    image = prepare_image(data, FULL)
    assert "first_frame" in image.changes
    found = _decode(image.encoded).astype(int)
    assert np.abs(found - np.asarray(photo).astype(int)).mean() < 12


@pytest.mark.parametrize("kept", [0.95, 0.6, 0.3])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_truncated_jpeg_is_rejected_wherever_it_ends(photo, kept, progressive):
    data = encode(photo, "JPEG", quality=95, progressive=progressive)
    reason, _ = _refuse(data[: int(len(data) * kept)])
    assert reason in ("truncated", "undecodable")


def test_a_jpeg_with_a_damaged_scan_is_rejected(photo):
    data = bytearray(encode(photo, "JPEG", quality=95))
    scan = data.index(b"\xff\xda") + 14
    data[scan + 40 : scan + 44] = b"\xff\xd9\xff\xd9"
    assert _refuse(bytes(data))[0] in ("truncated", "undecodable")


def _insert(data: bytes, marker: bytes, more: bytes) -> bytes:
    place = data.rindex(marker)
    return data[:place] + more + data[place:]


def _make_odd_jpegs(photo) -> dict[str, bytes]:
    data = encode(photo, "JPEG", quality=90, subsampling=0)
    frame = data.index(b"\xff\xc0")
    plain = data[:2] + data[20:]  # without its JFIF segment
    return {
        "bytes between segments": _insert(data, b"\xff\xdb", b"\0\1\2"),
        "unknown JFIF version": data[:11] + b"\x09" + data[12:],
        "unknown Adobe code": plain[:2] + b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0\7" + plain[2:],
        "rare sampling": data[: frame + 11] + b"\x31" + data[frame + 12 :],
        "progressive parameters": _change(data, data.index(b"\xff\xda") + 12, 0),
    }


def _change(data: bytes, place: int, value: int) -> bytes:
    return data[:place] + bytes((value,)) + data[place + 1 :]


ODD = [
    "bytes between segments",
    "unknown JFIF version",
    "unknown Adobe code",
    "rare sampling",
    "progressive parameters",
]


def test_superfluous_bytes_before_the_end_of_a_jpeg_are_harmless(photo):
    good = prepare_image(encode(photo, "JPEG", quality=90, subsampling=0), FULL)
    data = _insert(good.encoded, b"\xff\xd9", bytes(9))
    image = prepare_image(data, FULL)
    assert (image.encoded, image.changes) == (data, ())
    assert image.pixel_hash == good.pixel_hash


@pytest.mark.parametrize("name", ODD)
def test_a_jpeg_that_some_decoders_accept_is_repaired(photo, name):
    data = _make_odd_jpegs(photo)[name]
    image = prepare_image(data, FULL)
    assert (image.format, image.changes) == ("jpeg", ("repaired",))
    assert (image.height, image.width, image.channels) == (24, 40, 3)
    difference = _decode(image.encoded).astype(int) - _decode(data).astype(int)
    assert np.abs(difference).mean() < 3
    assert prepare_image(image.encoded, FULL).changes == ()
    assert prepare_image(data, HEADER).encoded == data


def test_a_repaired_jpeg_is_turned_once(photo):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encode(photo, "JPEG", quality=95, exif=exif.tobytes())
    image = prepare_image(_insert(data, b"\xff\xda", b"\0\1"), FULL)
    assert image.changes == ("repaired", "orientation")
    upright = np.asarray(photo.rotate(-90, expand=True)).astype(int)
    assert np.abs(_decode(image.encoded).astype(int) - upright).mean() < 6


@pytest.mark.parametrize("name", ODD[:3])
def test_a_truncated_odd_jpeg_is_rejected(photo, name):
    assert _refuse(_make_odd_jpegs(photo)[name][:-2])[0] == "truncated"


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_jpeg_with_invented_pixels_is_rejected_in_every_orientation(photo, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    whole = encode(photo, "JPEG", quality=95, exif=exif.tobytes())
    middle = (whole.index(b"\xff\xda") + len(whole)) // 2
    assert _refuse(whole[:middle] + whole[-2:]) == (
        "truncated",
        "Corrupt JPEG data: premature end of data segment",
    )


def test_a_truncated_png_is_rejected_wherever_it_ends(photo):
    data = encode(photo, "PNG")
    for length in range(8, len(data)):
        assert _refuse(data[:length]) == ("truncated", "it ends early")


def test_a_png_with_a_flipped_bit_is_rejected_wherever_it_is(photo):
    good = encode(photo, "PNG")
    for place in range(8, len(good)):
        data = bytearray(good)
        data[place] ^= 1
        assert _refuse(bytes(data))[0] in ("undecodable", "truncated", "too_large"), place


def test_a_png_with_a_damaged_comment_is_rejected(photo):
    data = encode(photo, "PNG", pnginfo=_comment("hello"))
    assert prepare_image(data, FULL).encoded == data
    reason, detail = _refuse(data.replace(b"hello", b"hullo"))
    assert (reason, detail) == ("undecodable", "the checksum of its chunk tEXt is wrong")


@pytest.mark.parametrize(
    ("data", "reason", "detail"),
    [
        (b"", "empty", "no bytes"),
        (b"<!DOCTYPE html><p>404", "not_an_image", "HTML"),
        (b"%PDF-1.7 ...", "not_an_image", "PDF"),
        (b"<svg xmlns='x'/>", "not_an_image", "SVG"),
        (b"PK\x03\x04....", "not_an_image", "archive"),
        (b"8BPS\0\1", "unsupported_format", "format PSD, which is not read: convert it to PNG"),
        (b"split,image_uri,label\n", "not_an_image", "text"),
        (b"\0\1\2\3\4\5\6\7\x08", "not_an_image", "begins with 00 01 02"),
        (b"\xff\xd8\xff\xe0", "undecodable", ""),
        (b"\x89PNG\r\n\x1a\n", "undecodable", ""),
    ],
)
def test_other_files_are_rejected_with_what_they_seem_to_be(data, reason, detail):
    found = _refuse(data)
    assert found[0] in (reason, "truncated") if reason == "undecodable" else found[0] == reason
    assert detail in found[1]


@pytest.mark.parametrize("options", [FULL, HEADER], ids=["full", "header"])
@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        (b"CgBI", "unsupported_format", "format PNG of Xcode (CgBI), which is not read"),
        # Where the size would be are letters, which are large numbers.
        (b"tEXt", "undecodable", ""),
    ],
)
def test_a_png_that_does_not_begin_with_its_header_has_no_size(
    photo, options, name, reason, detail
):
    data = insert(encode(photo), chunk(name, b"\x50\0\x20\2Comment"), before=b"IHDR")
    found = _refuse(data, options)
    assert (found[0], detail in found[1]) == (reason, True)


@pytest.mark.parametrize("options", [FULL, HEADER], ids=["full", "header"])
def test_a_bomb_is_recognised_by_its_header(options):
    side = int(MAX_PIXELS**0.5) + 1
    data = _make_png(side, side, 8, 0, b"\0" * 100)
    reason, detail = _refuse(data, options)
    assert reason == "too_large"
    assert f"{side} x {side}" in detail


def test_header_checks_accept_a_damaged_body(photo):
    data = encode(photo, "JPEG")
    assert prepare_image(data[:-2], HEADER).encoded == data[:-2]


def test_hash_and_luminance_are_those_of_the_pixels():
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert hash_pixels(pixels) == "7567f8abf3aa9922f2bdc28a6ded860e"
    assert hash_pixels(pixels) != hash_pixels(pixels.reshape(4, 2, 3))
    assert hash_pixels(pixels[..., 0]) == hash_pixels(pixels[..., :1])
    assert measure_luminance(np.full((5, 5), 77, np.uint8)) == 77
    red = np.zeros((3, 3, 3), np.uint8)
    red[..., 0] = 200
    assert measure_luminance(red) == pytest.approx(0.299 * 200)


def test_the_same_pixels_have_the_same_hash_in_any_lossless_form(photo):
    forms = [encode(photo, "PNG"), encode(photo, "PNG", compress_level=1)]
    forms += [encode(photo, "BMP"), encode(photo, "WEBP", lossless=True)]
    hashes = {prepare_image(data, FULL).pixel_hash for data in forms}
    assert hashes == {hash_pixels(np.asarray(photo))}


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("options", [{}, {"encoding": "raw"}, {"resize_short_side": 12}])
def test_a_jpeg_has_the_hash_of_what_pillow_decodes_too(photo, orientation, mode, options):
    noise = Image.effect_noise((40, 24), 90).convert("RGB")
    data = encode(Image.blend(photo, noise, 0.5).convert(mode), "JPEG", exif=_turn(orientation))
    plain = prepare_image(data, ImageOptions(**options))
    image = prepare_image(data, ImageOptions(find_decoded_copies="always", **options))
    with Image.open(io.BytesIO(data)) as opened:
        upright = np.asarray(ImageOps.exif_transpose(opened))
    assert image.decoded_hash == hash_pixels(upright)
    assert image.decoded_hash != image.pixel_hash
    assert image == plain._replace(decoded_hash=image.decoded_hash)
    assert plain.decoded_hash is None


def _turn(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def test_only_a_decoded_jpeg_that_differs_has_a_second_hash(photo):
    always = ImageOptions(find_decoded_copies="always")
    flat = encode(Image.new("RGB", (40, 24), (128, 128, 128)), "JPEG")
    for data in (flat, encode(photo, "PNG"), encode(photo, "WEBP")):
        assert prepare_image(data, always).decoded_hash is None
    header = ImageOptions(find_decoded_copies="always", image_check="header")
    assert prepare_image(encode(photo, "JPEG"), header).decoded_hash is None


def test_gray_has_the_same_hash_with_one_channel_and_with_three(photo):
    gray = photo.convert("L")
    forms = [encode(gray, "PNG"), encode(gray.convert("RGB"), "PNG"), encode(gray, "BMP")]
    forms += [encode(gray.convert("RGB"), "WEBP", lossless=True)]
    hashes = {prepare_image(data, FULL).pixel_hash for data in forms}
    assert hashes == {hash_pixels(np.asarray(gray))}
    # One value that differs makes it a color image.
    colored = np.array(gray.convert("RGB"))
    colored[-1, -1, 2] ^= 1
    assert hash_pixels(colored) not in hashes


@pytest.mark.parametrize("channel", range(3))
@pytest.mark.parametrize("place", [(0, 0), (49, 51), (99, 69)])
def test_one_value_tells_a_color_image_from_a_gray_one(channel, place, monkeypatch):
    monkeypatch.setattr(pixels, "_STRIP_PIXELS", 700)  # ten rows
    values = np.random.default_rng(3).integers(0, 256, (100, 70, 1), np.uint8)
    gray = np.repeat(values, 3, axis=2)
    assert hash_pixels(gray) == hash_pixels(values)
    gray[(*place, channel)] ^= 1
    assert hash_pixels(gray) not in (hash_pixels(values), hash_pixels(gray ^ 1))


def test_larger_images_are_reduced_by_area(photo):
    image = prepare_image(encode(photo, "PNG"), ImageOptions(resize_short_side=12))
    assert (image.height, image.width) == (12, 20)
    assert (image.source_height, image.source_width) == (24, 40)
    assert image.changes == ("resize",)
    pixels = np.asarray(photo).astype(float)
    means = pixels.reshape(12, 2, 20, 2, 3).mean((1, 3))
    assert np.abs(_decode(image.encoded) - means).max() <= 1
    assert image.pixel_hash == hash_pixels(np.asarray(photo))


def test_smaller_images_are_never_enlarged(photo):
    data = encode(photo, "JPEG")
    assert prepare_image(data, ImageOptions(resize_short_side=24)).encoded == data


def test_header_checks_reduce_too(photo):
    image = prepare_image(
        encode(photo, "JPEG"), ImageOptions(image_check="header", resize_short_side=12)
    )
    assert (image.height, image.width, image.format) == (12, 20, "jpeg")


def test_a_jpeg_that_is_encoded_again_loses_little(photo):
    exif = Image.Exif()
    exif[0x0112] = 3
    image = prepare_image(encode(photo, "JPEG", quality=95, exif=exif.tobytes()), FULL)
    _, _, _, subsampling = simplejpeg.decode_jpeg_header(image.encoded)
    assert subsampling == "444"


def test_a_jpeg_that_is_reduced_has_the_quality_that_is_asked_for(photo):
    photo = photo.resize((400, 240), Image.Resampling.BICUBIC)
    data = encode(photo, "JPEG", quality=95, subsampling=0)
    stored = {
        quality: prepare_image(data, ImageOptions(resize_short_side=120, jpeg_quality=quality))
        for quality in (40, 90, 94, 95)
    }
    stored["default"] = prepare_image(data, ImageOptions(resize_short_side=120))
    assert stored["default"].encoded == stored[90].encoded
    colors = {q: simplejpeg.decode_jpeg_header(each.encoded)[3] for q, each in stored.items()}
    assert colors == {40: "420", 90: "420", 94: "420", 95: "444", "default": "420"}
    # The first number of an encoder's tables is 3 for quality 90, and 20 for quality 40.
    tables = {q: Image.open(io.BytesIO(each.encoded)).quantization for q, each in stored.items()}
    assert [tables[quality][0][0] for quality in (40, 90, 94, 95)] == [20, 3, 2, 2]
    wanted = np.asarray(photo.resize((200, 120), Image.Resampling.BOX)).astype(float)
    errors = {q: np.abs(_decode(each.encoded) - wanted).mean() for q, each in stored.items()}
    assert errors[95] < errors[90] < errors[40] < 10
    assert len(stored[40].encoded) < len(stored[90].encoded) < len(stored[95].encoded)


def test_a_gray_jpeg_that_is_reduced_stays_gray(photo):
    data = encode(photo.convert("L"), "JPEG", quality=95)
    image = prepare_image(data, ImageOptions(resize_short_side=12, jpeg_quality=80))
    assert (image.channels, simplejpeg.decode_jpeg_header(image.encoded)[2]) == (1, "Gray")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_check": "some"}, "'some'"),
        (
            {"resize_short_side": 8, "jpeg_quality": 0},
            "jpeg_quality is 0, expected",
        ),
        (
            {"resize_short_side": 8, "jpeg_quality": 101},
            "jpeg_quality is 101, expected",
        ),
        (
            {"resize_short_side": 8, "jpeg_quality": 89.5},
            "jpeg_quality is 89.5, expected",
        ),
        ({"resize_short_side": 0}, "resize_short_side is 0, expected a whole number of at least 1"),
        (
            {"resize_short_side": "big"},
            "resize_short_side is 'big', expected",
        ),
    ],
)
def test_a_wrong_option_is_named(options, message):
    with pytest.raises(UsageError, match=message):
        ImageOptions(**options)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_transparent_gray_of_few_bits_becomes_white(depth):
    top = (1 << depth) - 1
    for value in range(top + 1):
        row = "".join(f"{each:0{depth}b}" for each in range(top + 1)).ljust(8, "0")
        packed = int(row, 2).to_bytes(len(row) // 8, "big")
        more = (b"tRNS", struct.pack(">H", value))
        image = prepare_image(_make_png(top + 1, 1, depth, 0, b"\0" + packed, more), FULL)
        expected = [each * 255 // top for each in range(top + 1)]
        expected[value] = 255
        assert _decode(image.encoded).tolist() == [expected]


def test_a_transparent_color_of_sixteen_bits_is_rejected():
    # Pillow keeps eight bits of the pixels, so the color cannot be told from its neighbors.
    rows = b"\0" + np.array([[[0x0102, 0x8081, 0xFFFE]]], ">u2").tobytes()
    data = _make_png(1, 1, 16, 2, rows, (b"tRNS", bytes(6)))
    assert _refuse(data)[0] == "unsupported_format"


def test_gray_of_sixteen_bits_with_transparency_stays_gray():
    rows = b"\0" + np.array([[[0x1234, 0xFFFF], [0x1234, 0]]], ">u2").tobytes()
    image = prepare_image(_make_png(2, 1, 16, 4, rows), FULL)
    assert (image.channels, image.changes) == (1, ("alpha", "bit_depth"))
    assert _decode(image.encoded).tolist() == [[0x12, 255]]


@pytest.mark.parametrize(
    ("place", "error"),
    [
        ("simplejpeg.decode_jpeg", ValueError("Insufficient memory (case 4)")),
        ("PIL.Image.Image.getexif", MemoryError()),
        ("PIL.ImageFile.ImageFile.load", MemoryError()),
    ],
)
def test_a_lack_of_memory_is_not_taken_for_a_fault_of_the_image(monkeypatch, place, error):
    """Nor for an image that is upright, or that must be repaired."""

    def fail(*arguments, **options):
        raise error

    kind = "JPEG" if "jpeg" in place else "WEBP"
    monkeypatch.setattr(place, fail)
    with pytest.raises(MemoryError):
        prepare_image(encode(make_photo(), kind), ImageOptions())
