"""What the bytes of an image file say without decoding."""

from __future__ import annotations

import io
import struct
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from darkroom.images.headers import (
    find_foreign_format,
    find_png_damage,
    is_plain_png,
    parse_png_size,
    parse_webp_size,
    sniff_format,
)
from darkroom.images.jpeg_header import has_jpeg_end, parse_jpeg_traits

HEADER = struct.pack(">IIBBBBB", 4, 2, 8, 0, 0, 0, 0)


def make_png(*chunks: tuple[bytes, bytes]) -> bytes:
    parts = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def make_pixels(raw: bytes = bytes(10)) -> tuple[bytes, bytes]:
    return b"IDAT", zlib.compress(raw)


OTHER_ROWS = ["77777777", "56565656", "77777777"]
END = (b"IEND", b"")
GOOD = make_png((b"IHDR", HEADER), make_pixels(), END)


def test_a_sound_png_has_no_damage_and_a_size():
    assert find_png_damage(GOOD) is None
    assert parse_png_size(GOOD) == (2, 4)
    assert is_plain_png(GOOD)
    assert find_png_damage(GOOD + b"behind its end") is None


@pytest.mark.parametrize(
    ("chunks", "damage"),
    [
        ([(b"IHDR", HEADER), make_pixels()], "it ends early"),
        ([(b"IHDR", HEADER), END], "it ends early"),
        ([(b"IHDR", HEADER), make_pixels(bytes(9)), END], "it ends early"),
        ([(b"IHDR", HEADER), (b"IDAT", zlib.compress(bytes(10))[:-4]), END], "it ends early"),
        ([(b"IHDR", HEADER), (b"IDAT", b"no zlib"), END], "pixels are damaged"),
        ([(b"IHDR", HEADER), make_pixels(bytes(1 << 18)), END], "more data than"),
        ([(b"IHDR", HEADER), (b"CgBI", b""), make_pixels(), END], "chunk CgBI is not as"),
        ([(b"IHDR", HEADER), (b"IHDR", HEADER), make_pixels(), END], "chunk IHDR is not as"),
        ([(b"IHDR", HEADER + b"\0"), make_pixels(), END], "chunk IHDR is not as"),
        ([(b"IHDR", HEADER[:10] + b"\1\0\0"), make_pixels(), END], "chunk IHDR is not as"),
        ([make_pixels(), (b"IHDR", HEADER), END], "chunk IDAT is not as"),
    ],
)
def test_faults_of_a_png_that_pillow_accepts_are_found(chunks, damage):
    assert damage in (find_png_damage(make_png(*chunks)) or "")


def test_a_few_extra_pixels_and_unknown_ancillary_chunks_are_not_damage():
    chunks = [(b"IHDR", HEADER), (b"prVt", b"x"), make_pixels(bytes(99)), END]
    assert find_png_damage(make_png(*chunks)) is None


def test_an_inflating_bomb_is_not_inflated_to_its_end():
    data = make_png((b"IHDR", HEADER), (b"IDAT", zlib.compress(bytes(1 << 25))), END)
    assert find_png_damage(data) == "it has more data than pixels"


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (8, 8), (31, 23), (1, 70), (70, 1)])
@pytest.mark.parametrize(("color", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("depth", [8, 16])
def test_an_interlaced_png_has_the_bytes_of_its_seven_passes(size, color, channels, depth):
    width, height = size
    num_bytes = 0
    # As in the format's specification: the pass of each pixel of a tile of 8 by 8.
    tile = ["16462646", *OTHER_ROWS, "36463646", *OTHER_ROWS]
    passes = np.array([[int(number) for number in row] for row in tile])
    passes = np.tile(passes, (height // 8 + 1, width // 8 + 1))[:height, :width]
    for number in range(1, 8):
        rows = passes == number
        lines = int(rows.any(axis=1).sum())
        columns = int(rows.any(axis=0).sum())
        num_bytes += lines * (1 + columns * channels * depth // 8)
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 1)
    whole = make_png((b"IHDR", header), make_pixels(bytes(num_bytes)), END)
    short = make_png((b"IHDR", header), make_pixels(bytes(num_bytes - 1)), END)
    assert (find_png_damage(whole), find_png_damage(short)) == (None, "it ends early")


@pytest.mark.parametrize("name", [b"tRNS", b"acTL", b"eXIf"])
def test_a_png_with_more_than_pixels_is_not_plain(name):
    before = make_png((b"IHDR", HEADER), (name, b""), make_pixels(), END)
    behind = make_png((b"IHDR", HEADER), make_pixels(), (name, b""), END)
    assert (is_plain_png(before), is_plain_png(behind)) == (False, False)


def test_the_end_of_a_jpeg_is_that_of_its_last_scan():
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9)).save(buffer, "JPEG", progressive=True)
    data = buffer.getvalue()
    assert has_jpeg_end(data)
    assert has_jpeg_end(data + b"junk")
    assert not has_jpeg_end(data[:-1])


@pytest.mark.parametrize(
    ("start", "name"),
    [
        (b"RIFF\x10\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"\0\0\0\x18ftypavif", "avif"),
        (b"\0\0\0\x18ftypheix", "heic"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1heic", "heic"),
        (b"\0\0\0\x1cftypmif1\0\0\0\0mif1avif", "avif"),
        (b"\0\0\0\x14ftypmif1\0\0\0\0mif1avif", "heic"),
        (b"\0\0\0\x1cftypisom\0\0\0\0isomavif", None),
        (b"II+\0\x08\0\0\0", "tiff"),
        (b"\0\0\0\x18ftypisom", None),
        (b"MM\0*\0\0\0\x08", "tiff"),
        (b"GIF90a", None),
        (b"\xff\xd8", None),
    ],
)
def test_a_format_is_recognised_by_its_first_bytes(start, name):
    assert sniff_format(start) == name


SAVED = {
    "DDS": ("DDS", "RGB"),
    "EPS": ("EPS", "RGB"),
    "ICO": ("ICO", "RGB"),
    "JPEG 2000": ("JPEG2000", "RGB"),
    "PGM or PPM": ("PPM", "RGB"),
    "QOI": ("QOI", "RGB"),
    "TGA": ("TGA", "RGB"),
}
STARTS = {
    "DICOM": bytes(128) + b"DICM",
    "FITS": b"SIMPLE  =                    T",
    "JPEG XL": b"\0\0\0\x0cJXL \r\n\x87\n",
    "OpenEXR": b"\x76\x2f\x31\1",
    "PGM or PPM": b"P2\n# a comment\n2 2 255\n",
    "PSD": b"8BPS\0\1",
    "Radiance HDR": b"#?RADIANCE\n",
    "XCF": b"gimp xcf file",
}


def _save_other(kind: str, mode: str) -> bytes:
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((40, 24)).convert(mode).save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("name", SAVED)
def test_a_format_that_is_not_read_is_known_by_its_bytes(name):
    kind, mode = SAVED[name]
    Image.init()
    if kind not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {name}")
    data = _save_other(kind, mode)
    assert sniff_format(data) is None
    assert find_foreign_format(data) == name


@pytest.mark.parametrize(("name", "start"), STARTS.items())
def test_other_formats_are_known_by_their_first_bytes(name, start):
    assert (sniff_format(start), find_foreign_format(start)) == (None, name)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 500,
        b"P5",
        b"P2P",
        b"PK\3\4",
        b"\0\1\2\3\4\5\6\7\x08",
        b"split,image_uri,label\n",
    ],
)
def test_other_bytes_are_of_no_image_format(data):
    assert find_foreign_format(data) is None


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": b"Exif\0\0x"}])
@pytest.mark.parametrize("size", [(1, 1), (40, 24), (300, 7)])
def test_the_size_of_a_webp_is_read(options, size):
    buffer = io.BytesIO()
    Image.new("RGB", size).save(buffer, "WEBP", **options)
    assert parse_webp_size(buffer.getvalue()) == size[::-1]
    assert parse_webp_size(b"RIFF\0\0\0\0WEBP") == (0, 0)


def _save_jpeg(**options) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9)).save(buffer, "JPEG", **options)
    return buffer.getvalue()


def test_the_scans_of_a_jpeg_are_counted_if_it_needs_all_of_them():
    assert parse_jpeg_traits(_save_jpeg()).num_scans == 1
    progressive = _save_jpeg(progressive=True)
    assert parse_jpeg_traits(progressive).num_scans == progressive.count(b"\xff\xda") > 5
    # A sequential JPEG may have its colors one after the other, too.
    data = _save_jpeg()
    header = data.index(b"\xff\xda") + 4
    assert data[header] == 3
    apart = data[:header] + b"\1" + data[header + 1 : -2] + b"\xff\xda" * 2 + data[-2:]
    assert parse_jpeg_traits(apart).num_scans == 3


def test_a_profile_in_a_jpeg_is_found():
    assert parse_jpeg_traits(_save_jpeg(icc_profile=b"a profile")).has_profile
    assert not parse_jpeg_traits(_save_jpeg(comment=b"ICC_PROFILE")).has_profile


@pytest.mark.parametrize("filling", [b"\xff\xe0\0\2", b"\xff", b"\xff\xd0"])
def test_only_the_first_of_endless_segments_are_read(filling):
    data = b"\xff\xd8" + filling * 5_000_000 + _save_jpeg()[2:]
    started = time.process_time()
    assert parse_jpeg_traits(data).num_scans > 1000
    assert time.process_time() - started < 1


def test_a_png_with_a_damaged_header_is_not_plain():
    assert is_plain_png(GOOD)
    for place in (12, 16, 20, 25, 29):
        assert not is_plain_png(GOOD[:place] + bytes([GOOD[place] ^ 1]) + GOOD[place + 1 :])
    empty = struct.pack(">IIBBBBB", 0, 2, 8, 0, 0, 0, 0)
    assert not is_plain_png(make_png((b"IHDR", empty), END))
