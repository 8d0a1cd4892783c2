"""TensorFlow reads what darkroom writes without it."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from PIL import features as pillow_features

from darkroom.conversion.convert import convert
from darkroom.errors import RejectError
from darkroom.images.prepare import prepare_image
from darkroom.options.conversion import ConversionOptions
from darkroom.options.image import ImageOptions

from ..pictures import encode

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def photo() -> Image.Image:
    rng = np.random.default_rng(3)
    return Image.fromarray(rng.integers(0, 256, (20, 28, 3), np.uint8))


def _modes(photo: Image.Image) -> dict[str, Image.Image]:
    """A picture in every mode of color that a file may have."""
    rgba = photo.convert("RGBA")
    rgba.putalpha(100)
    gray = photo.convert("L")
    deep = Image.fromarray(np.asarray(gray).astype(np.uint16) * 257)
    return {
        "1": photo.convert("1"),
        "L": gray,
        "LA": rgba.convert("LA"),
        "P": photo.quantize(8),
        "P and alpha": rgba.quantize(8, method=Image.Quantize.FASTOCTREE),
        "PA": rgba.convert("PA"),
        "RGB": photo,
        "RGBA": rgba,
        "CMYK": photo.convert("CMYK"),
        "YCbCr": photo.convert("YCbCr"),
        "LAB": photo.convert("LAB"),
        "I;16": deep,
    }


_MODES = {
    "JPEG": ("L", "RGB", "CMYK", "YCbCr"),
    "PNG": ("1", "L", "LA", "P", "P and alpha", "RGB", "RGBA", "I;16"),
    "GIF": ("1", "L", "P", "RGB", "RGBA"),
    "BMP": ("1", "L", "P", "RGB", "RGBA"),
    "TIFF": ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "LAB", "I;16"),
    "WEBP": ("L", "RGB", "RGBA"),
    "AVIF": ("L", "RGB", "RGBA"),
    "HEIF": ("L", "RGB", "RGBA"),
}
# These formats have EXIF data with an orientation; GIF and BMP have none.
_TURNED = ("JPEG", "PNG", "TIFF", "WEBP", "AVIF", "HEIF")
_CASES = [
    (kind, mode, orientation)
    for kind, modes in _MODES.items()
    for mode in modes
    for orientation in ([1, 6] if kind in _TURNED else [1])
]


def _check_decodes(data: bytes, **expected) -> None:
    """Checks that both of TensorFlow's decoders give the shape in the record."""
    image = prepare_image(data, ImageOptions())
    for decode in (tf.io.decode_image, tf.io.decode_jpeg):
        if image.format != "jpeg" and decode is tf.io.decode_jpeg:
            decode = tf.io.decode_png
        pixels = decode(image.encoded)
        assert pixels.dtype == tf.uint8
        assert pixels.shape == (image.height, image.width, image.channels)
    found = {name: getattr(image, name) for name in expected}
    assert found == expected


@pytest.mark.parametrize(("kind", "mode", "orientation"), _CASES)
def test_every_mode_and_orientation_decodes_to_the_shape_in_the_record(
    photo, kind, mode, orientation
):
    if kind == "HEIF":
        pytest.importorskip("pillow_heif.HeifImagePlugin")
    if kind == "AVIF" and not pillow_features.check("avif"):
        pytest.skip("this Pillow writes no AVIF")
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"exif": exif.tobytes()} if kind in _TURNED and orientation > 1 else {}
    data = encode(_modes(photo)[mode], kind, **options)
    height, width = (28, 20) if orientation >= 5 else (20, 28)
    _check_decodes(data, height=height, width=width, format="jpeg" if kind == "JPEG" else "png")


def _make_odd_forms(photo: Image.Image) -> dict[str, bytes]:
    return {
        "progressive jpeg": encode(photo, "JPEG", progressive=True),
        "animated gif": encode(photo, "GIF", save_all=True, append_images=[photo.rotate(180)]),
        "animated webp": encode(photo, "WEBP", save_all=True, append_images=[photo.rotate(90)]),
        "animated png": encode(photo, "PNG", save_all=True, append_images=[photo.rotate(180)]),
        "tiff of two pages": encode(photo, "TIFF", save_all=True, append_images=[photo]),
        "jpeg with bytes before its end": encode(photo, "JPEG")[:-2] + bytes(9) + b"\xff\xd9",
        "jpeg of an unknown version": encode(photo, "JPEG").replace(b"JFIF\0\1", b"JFIF\0\x09"),
        "jpeg with a profile": encode(photo, "JPEG", icc_profile=b"damaged"),
        "webp with a profile": encode(photo, "WEBP", icc_profile=b"damaged"),
    }


def test_odd_forms_decode_to_the_shape_in_the_record(photo):
    for data in _make_odd_forms(photo).values():
        _check_decodes(data, height=20, width=28, channels=3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_what_tensorflow_cannot_decode_is_never_written(photo, kind):
    """Cuts and flips anywhere in a file: TensorFlow decodes all that full checks accept."""
    good = encode(photo, kind)
    damaged = [good[:length] for length in range(4, len(good), 7)]
    damaged += [good[:-missing] for missing in range(1, 24)]
    for place in range(2, len(good), 5):
        flipped = bytearray(good)
        flipped[place] ^= 1 << place % 8
        damaged.append(bytes(flipped))
    accepted = 0
    for data in damaged:
        try:
            image = prepare_image(data, ImageOptions())
        except RejectError:
            continue
        accepted += 1
        tf.io.decode_image(image.encoded, channels=3, expand_animations=False)
    # A JPEG has no checksum: some flips change pixels and nothing else.
    assert (accepted > 0) == (kind == "JPEG")


def test_a_png_with_right_checksums_and_wrong_pixels_is_never_written(photo):
    """Like the test before, with correct checksums of the damaged chunks."""
    good = encode(photo, "PNG")
    refused = 0
    for place in range(16, len(good) - 16):
        damaged = bytearray(good)
        damaged[place] ^= 1 << place % 8
        try:
            image = prepare_image(_mend_checksums(damaged), ImageOptions())
        except RejectError:
            refused += 1
            continue
        tf.io.decode_image(image.encoded, channels=3, expand_animations=False)
    assert refused > len(good) // 2


def _mend_checksums(data: bytearray) -> bytes:
    place = 8
    while place + 12 <= len(data):
        end = place + 8 + int.from_bytes(data[place : place + 4], "big")
        if end + 4 > len(data):
            break
        data[end : end + 4] = zlib.crc32(data[place + 4 : end]).to_bytes(4, "big")
        place = end + 4
    return bytes(data)


def test_tensorflow_reads_a_converted_dataset(tmp_path: Path, photo):
    for number in range(12):
        folder = tmp_path / "images" / ("train", "test")[number % 3 == 0] / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        turned = photo.rotate(number * 5)
        (folder / f"{number}.jpg").write_bytes(encode(turned, "JPEG"))
    result = convert(
        tmp_path / "images",
        tmp_path / "records",
        options=ConversionOptions(compression="gzip"),
    )
    files = tf.io.gfile.glob(f"{result.output_dir}/Split-*/*")
    assert len(files) == 2
    spec = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/height": tf.io.FixedLenFeature([], tf.int64),
        "image/width": tf.io.FixedLenFeature([], tf.int64),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/class/text": tf.io.FixedLenFeature([], tf.string),
    }
    records = tf.data.TFRecordDataset(files, "GZIP")
    parsed = [tf.io.parse_single_example(record, spec) for record in records]
    assert len(parsed) == 12
    for features in parsed:
        shape = tf.io.decode_jpeg(features["image/encoded"]).shape
        assert shape[:2] == (int(features["image/height"]), int(features["image/width"]))
        assert features["image/class/text"] == f"class{int(features['image/class/label'])}"
