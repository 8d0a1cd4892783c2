"""The hash of how an image looks: what it does not change by, and which images have none."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

from darkroom.images.decoders import ImagePreparer
from darkroom.images.near_pairs import MAX_DIFFERENCE, find_near_pairs
from darkroom.images.perceptual_hash import hash_look
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions

from ..pictures import encode, make_scene

FULL = ImageOptions()


def find_difference(one: str | None, other: str | None) -> int | None:
    """Returns in how many bits two hashes differ; None if they are not near."""
    assert one
    assert other
    if one == other:
        return 0
    hashes = np.frombuffer(bytes.fromhex(one + other), np.uint8).reshape(2, 32)
    found = find_near_pairs(hashes).difference
    return int(found[0]) if len(found) else None


def half(image: Image.Image) -> Image.Image:
    return image.resize((image.width // 2, image.height // 2))


CHANGES = {
    "half size": half,
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.3),
    "gray": lambda image: image.convert("L"),
    "mirrored": ImageOps.mirror,
    "upside down": ImageOps.flip,
    "turned": lambda image: image.transpose(Image.Transpose.ROTATE_90),
    "transposed": lambda image: image.transpose(Image.Transpose.TRANSPOSE),
    "a border": lambda image: ImageOps.expand(image, 20, (250, 250, 250)),
    "bars": lambda image: ImageOps.expand(image, (0, 30), (0, 0, 0)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(3))
def test_a_changed_copy_looks_like_the_original(change, seed):
    scene = make_scene(seed)
    # A border ends within a block of the JPEG, which a low quality spoils.
    quality = 85 if change in ("a border", "bars") else 30
    copy = encode(CHANGES[change](scene), "JPEG", quality=quality)
    found = prepare_image(copy, FULL).perceptual_hash
    difference = find_difference(hash_look(np.asarray(scene)), found)
    assert difference is not None
    assert difference <= MAX_DIFFERENCE


def test_other_images_do_not_look_alike():
    hashes = [hash_look(np.asarray(make_scene(seed))) for seed in range(20)]
    table = np.frombuffer(bytes.fromhex("".join(map(str, hashes))), np.uint8).reshape(-1, 32)
    assert len(find_near_pairs(table).one) == 0
    assert len(set(hashes)) == 20
    assert {len(each or "") for each in hashes} == {64}


def test_the_hash_is_that_of_the_pixels_before_they_are_stored_in_another_form():
    data = encode(make_scene(1), "PNG")
    plain = prepare_image(data, FULL)
    assert plain.perceptual_hash == hash_look(np.asarray(make_scene(1)))
    small = prepare_image(data, ImageOptions(resize_short_side=50, encoding="raw"))
    assert small.perceptual_hash == plain.perceptual_hash
    assert prepare_image(data, ImageOptions(image_check="header")).perceptual_hash is None


def test_kinds_of_pixels_that_look_the_same_have_near_hashes():
    scene = make_scene(2)
    expected = hash_look(np.asarray(scene))
    alpha = scene.copy()
    alpha.putalpha(255)
    deep = Image.fromarray(np.asarray(scene.convert("L")).astype(np.uint16) * 257)
    for image, kind in (
        (alpha, "PNG"),
        (scene.convert("CMYK"), "JPEG"),
        (scene.quantize(256), "PNG"),
        (deep, "PNG"),
        (scene, "TIFF"),
    ):
        prepared = prepare_image(encode(image, kind), FULL)
        assert find_difference(expected, prepared.perceptual_hash) is not None, kind
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = prepare_image(encode(scene, "JPEG", exif=exif.tobytes()), FULL)
    assert find_difference(expected, turned.perceptual_hash) is not None


@pytest.mark.parametrize("shape", [(1, 1, 3), (1, 400), (31, 200, 3), (8, 8, 1)])
def test_a_tiny_image_has_no_hash(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert hash_look(pixels) is None
    data = io.BytesIO(encode(pixels.squeeze() if shape != (1, 1, 3) else pixels))
    assert prepare_image(data.getvalue(), FULL).perceptual_hash is None


@pytest.mark.parametrize("level", [0, 128, 255])
def test_a_plain_image_has_no_hash(level):
    pixels = np.full((64, 300, 3), level, np.uint8)
    assert hash_look(pixels) is None
    pixels[3, 5] ^= 8
    assert hash_look(pixels) is None


def test_any_shape_has_a_hash():
    for shape in ((32, 32), (32, 5000, 3), (129, 127, 1), (4001, 33, 3)):
        pixels = np.asarray(make_scene(4).resize(shape[1::-1]))[
            ..., : shape[-1] if shape[2:] else 1
        ]
        assert len(hash_look(pixels.reshape(shape)) or "") == 64


def test_the_process_with_limits_has_the_memory_for_a_hash():
    wide = np.resize(np.asarray(make_scene(5))[:40], (40, 200_000, 3))
    preparer = ImagePreparer(FULL)
    try:
        for pixels in (np.asarray(make_scene(5)), wide):
            prepared = preparer.prepare(encode(pixels, "PNG", compress_level=1))
            assert prepared.perceptual_hash == hash_look(pixels)
    finally:
        preparer.close()
