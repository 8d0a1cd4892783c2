from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image, ImageOps

from darkroom.images.prepare import prepare_image
from darkroom.input.graph import decode
from darkroom.input.graph.orientation import parse_orientation
from darkroom.options.augmentation import Augmentation
from darkroom.options.image import ImageOptions

from ...pictures import encode

pytestmark = pytest.mark.tensorflow

SIZE = (30, 20)


def _photo(height: int = 37, width: int = 53) -> Image.Image:
    """A picture without any symmetry."""
    y, x = np.mgrid[0:height, 0:width]
    planes = (x * 255 / width, y * 255 / height, (x * y) % 200)
    return Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8))


def _encode(image: Image.Image, kind: str = "JPEG", **options: object) -> bytes:
    return encode(image, kind, **options)


def _tiff(orientation: int, order: str = "<", *, kind: int = 3, count: int = 1) -> bytes:
    value = struct.pack(order + ("H2x" if kind == 3 else "I"), orientation)
    other = struct.pack(order + "HHI4s", 0x010F, 2, 4, b"abc\0")
    entry = struct.pack(order + "HHI", 0x0112, kind, count) + value
    head = struct.pack(order + "2sHI", b"II" if order == "<" else b"MM", 42, 8)
    return head + struct.pack(order + "H", 2) + other + entry + b"\0" * 4


def _segment(marker: int, payload: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(payload) + 2) + payload


def _exif(tiff: bytes) -> bytes:
    return _segment(0xE1, b"Exif\0\0" + tiff)


def _insert(jpeg: bytes, *segments: bytes) -> bytes:
    return jpeg[:2] + b"".join(segments) + jpeg[2:]


def _behind_jfif(jpeg: bytes, *segments: bytes) -> bytes:
    assert jpeg[2:4] == b"\xff\xe0"
    return jpeg[:20] + b"".join(segments) + jpeg[20:]


@pytest.fixture(scope="module")
def parse():
    return tf.function(
        parse_orientation,
        input_signature=[tf.TensorSpec([], tf.string)],
        autograph=False,
    )


@pytest.fixture(scope="module")
def jpeg() -> bytes:
    return _encode(_photo(), quality=95, subsampling=0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_each_orientation_is_turned_upright_as_pillow_does(jpeg, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    turned = _encode(_photo(), quality=95, subsampling=0, exif=exif.tobytes())
    stored = Image.fromarray(tf.io.decode_jpeg(turned, channels=3).numpy())
    stored.info["exif"] = Image.open(io.BytesIO(turned)).info["exif"]
    upright = np.asarray(ImageOps.exif_transpose(stored))

    got, _ = decode.view_image(tf.constant(turned), upright.shape[:2])

    np.testing.assert_array_equal(got, upright)
    assert np.array_equal(got, np.asarray(stored)) == (orientation == 1)


def test_orientation_is_found_wherever_writers_put_it(parse, jpeg):
    for data in (
        _insert(jpeg, _exif(_tiff(6))),
        _insert(jpeg, _exif(_tiff(6, ">"))),
        _insert(jpeg, _exif(_tiff(6, kind=4))),
        _insert(jpeg, _exif(_tiff(6, ">", kind=4))),
        _behind_jfif(jpeg, _exif(_tiff(6))),
        _behind_jfif(jpeg, _segment(0xFE, b"hello"), _exif(_tiff(6))),
        _insert(jpeg, _segment(0xE1, b"http://ns.adobe.com/"), _exif(_tiff(6))),
        _insert(jpeg, _segment(0xE2, b"x" * 65533), _exif(_tiff(6, ">"))),
        _insert(jpeg, b"\xff\xff\xff" + _exif(_tiff(6))),
        _insert(jpeg, _exif(_tiff(6)), _exif(_tiff(3))),
        # The high byte of a length is not a character of UTF-8.
        _insert(jpeg, _exif(_tiff(6) + bytes(0xFE00))),
    ):
        assert Image.open(io.BytesIO(data)).getexif().get(0x0112) == 6
        assert parse(data).numpy() == 6, data[:60]


def test_no_or_hostile_exif_is_upright(parse, jpeg):
    for data in (
        jpeg,
        b"",
        b"\xff\xd8\xff",
        b"<html>Exif\0\0</html>",
        _encode(_photo(), "PNG"),
        _insert(jpeg, _exif(b"")),
        _insert(jpeg, _exif(_tiff(0))),
        _insert(jpeg, _exif(_tiff(9))),
        _insert(jpeg, _exif(_tiff(6, count=2))),
        _insert(jpeg, _exif(_tiff(6, kind=5))),
        _insert(jpeg, _exif(b"XX" + _tiff(6)[2:])),
        _insert(jpeg, _exif(b"II*\0\xff\xff\xff\xff")),
        _insert(jpeg, _exif(b"II*\0\xff\xff\xff\x7f")),
        _insert(jpeg, _exif(b"MM\0*\0\0\0\x08\xff\xff")),
        b"\xff\xd8\xff\xe1\0\0" + b"Exif\0\0" + _tiff(6),
        b"\xff\xd8\xff\xe1\xff\xff" + b"Exif\0\0II*\0",
        b"\xff\xd8" + b"\xff" * 100_000,
        b"\xff\xd8" + b"\xff\xe0\0\x02" * 50_000,
        jpeg + _exif(_tiff(6)),
    ):
        assert parse(data).numpy() == 1, data[:60]


def test_cut_and_damaged_exif_never_fails(parse, jpeg):
    whole = _behind_jfif(jpeg, _exif(_tiff(6, ">")))
    cut = [int(parse(whole[:length])) for length in range(100)]
    assert set(cut) == {1, 6}
    # Once complete, the entry is enough: the numbers never go back to 1.
    assert cut == sorted(cut)
    rng = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in rng.integers(2, 80, 4):
            damaged[place] = rng.integers(0, 256)
        assert 1 <= int(parse(bytes(damaged))) <= 8


def test_every_value_is_put_on_white_as_by_a_conversion():
    levels = np.stack(np.meshgrid(*[np.arange(256, dtype=np.uint8)] * 2), -1)
    data = _encode(Image.fromarray(np.ascontiguousarray(levels[..., [0, 0, 0, 1]])), "PNG")
    stored = prepare_image(data, ImageOptions()).encoded
    got, _ = decode.view_image(tf.constant(data), (256, 256))
    np.testing.assert_array_equal(got, tf.io.decode_png(stored, channels=3))


def test_resizing_is_bilinear_of_the_whole_image():
    pixels = np.asarray(_photo())
    got, _ = decode.view_image(tf.constant(_encode(_photo(), "PNG")), SIZE)
    want = np.round(tf.image.resize(pixels, SIZE, "bilinear", antialias=False)).astype(np.uint8)
    np.testing.assert_array_equal(got, want)


def _view(data: bytes, seed: tuple[int, int], **options: object) -> np.ndarray:
    seeds = tf.constant(seed, tf.int64)
    pixels, _ = decode.view_image(
        tf.constant(data), SIZE, seed=seeds, augmentation=Augmentation(crop=True), **options
    )
    return pixels.numpy()


def test_crops_follow_the_seed(jpeg):
    first, second = (_view(jpeg, (n, 7)) for n in (1, 2))
    np.testing.assert_array_equal(first, _view(jpeg, (1, 7)))
    assert not np.array_equal(first, second)


def test_fused_decoding_and_cutting_see_the_same_window(jpeg):
    png = _encode(Image.fromarray(tf.io.decode_jpeg(jpeg).numpy()), "PNG")
    for number in range(20):
        fused, cut = (_view(data, (number, 7)) for data in (jpeg, png))
        # The decoder's blocks at the window's edge may differ by rounding.
        assert np.abs(fused.astype(int) - cut).max() <= 2


def test_crops_are_taken_from_the_upright_image(jpeg):
    turned = _insert(jpeg, _exif(_tiff(6)))
    upright = tf.image.rot90(tf.io.decode_jpeg(jpeg), k=3).numpy()
    png = _encode(Image.fromarray(upright), "PNG")
    for number in range(5):
        np.testing.assert_array_equal(
            _view(turned, (number, 7)),
            _view(png, (number, 7)),
        )


@pytest.fixture(scope="module")
def large() -> bytes:
    """A photograph of 400 x 640 pixels without fine detail, so that scales can be compared."""
    y, x = np.mgrid[0:400, 0:640]
    planes = (x * 255 / 640, y * 255 / 400, 127 + 127 * np.sin(x / 40) * np.sin(y / 40))
    return _encode(Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8)), quality=95)


def _differ(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.abs(np.asarray(first, int) - np.asarray(second, int)).mean())


@pytest.mark.parametrize(
    ("size", "scale"), [((201, 8), 1), ((200, 320), 2), ((51, 80), 4), ((50, 81), 4), ((50, 80), 8)]
)
def test_a_jpeg_is_decoded_at_the_least_scale_that_is_enough(large, size, scale):
    got, _ = decode.view_image(tf.constant(large), size)
    pixels = tf.io.decode_jpeg(large, channels=3, ratio=scale)
    want = tf.floor(tf.image.resize(tf.cast(pixels, tf.float32), size) + 0.5)
    np.testing.assert_array_equal(got, want)
    whole, _ = decode.view_image(tf.constant(large), size, scaled=False)
    assert (_differ(got, whole) == 0) == (scale == 1)
    assert _differ(got, whole) < 3


@pytest.mark.parametrize("turn", [None, 6, 3])
@pytest.mark.parametrize("size", [(30, 20), (60, 60)])
def test_windows_at_a_scale_show_the_same_place(large, size, turn):
    data = _insert(large, _exif(_tiff(turn))) if turn else large
    differences = []
    for number in range(8):
        seed = tf.constant((number, 3), tf.int64)
        views = [
            decode.view_image(
                tf.constant(data),
                size,
                seed=seed,
                augmentation=Augmentation(crop=True),
                scaled=scaled,
            )[0]
            for scaled in (True, False)
        ]
        differences.append(_differ(*views))
    # Another place differs by some tens.
    assert 0 < max(differences) < 8


def test_the_shape_of_an_upright_image_spares_looking_for_it(jpeg, large):
    for data, shape in ((jpeg, (37, 53)), (large, (400, 640))):
        known = {"shape": tf.constant(shape)}
        centers = [
            decode.view_image(tf.constant(data), SIZE, "center_crop", **more)[0]
            for more in ({}, known)
        ]
        np.testing.assert_array_equal(*centers)
        np.testing.assert_array_equal(_view(data, (4, 5)), _view(data, (4, 5), **known))


@pytest.mark.parametrize("format_", ["PNG", "JPEG"])
@pytest.mark.parametrize(("height", "width"), [(256, 300), (300, 256), (256, 256)])
def test_the_center_of_a_short_side_of_256_is_cut_and_not_resized(format_, height, width):
    # Without subsampling, as colors at the edge of a window are not interpolated from beyond it.
    options = {"subsampling": 0} if format_ == "JPEG" else {}
    data = _encode(_photo(height, width), format_, **options)
    pixels = tf.io.decode_image(data).numpy()
    top, left = (height - 224) // 2, (width - 224) // 2
    got, _ = decode.view_image(tf.constant(data), (224, 224), "center_crop")
    np.testing.assert_array_equal(got, pixels[top : top + 224, left : left + 224])


@pytest.mark.parametrize(
    ("shape", "window"),
    [((400, 800), (25, 225, 350, 350)), ((80, 40), (22, 2, 35, 35)), ((1, 900), (0, 449, 1, 1))],
)
def test_the_center_is_seven_eighths_of_the_shorter_side(shape, window):
    data = _encode(_photo(*shape), "PNG")
    top, left, height, width = window
    pixels = tf.io.decode_image(data)[top : top + height, left : left + width]
    want = tf.floor(tf.image.resize(tf.cast(pixels, tf.float32), (32, 32)) + 0.5)
    got, _ = decode.view_image(tf.constant(data), (32, 32), "center_crop")
    np.testing.assert_array_equal(got, want)
