"""Places and serial numbers in images are found, and taken out without touching a pixel."""

import io
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms, PngImagePlugin

from darkroom.images.decoders import ImagePreparer
from darkroom.images.metadata import find_private, strip_jpeg, strip_png
from darkroom.images.prepare import prepare_image
from darkroom.options.image import ImageOptions

from ..pictures import make_scene

STRIPPED = ImageOptions(strip_metadata=True)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = b'<x:xmpmeta><rdf:Description exif:GPSLatitude="52,31N" aux:SerialNumber="12"/></x:xmpmeta>'


def make_exif(*, place=(52.0, 31.0, 0.0), serial="4711"):
    exif = Image.Exif()
    exif[0x010F] = "Maker"
    exif.get_ifd(0x8825).update({1: "N", 2: place, 3: "E", 4: (0.0, 0.0, 0.0)})
    exif.get_ifd(0x8769)[0xA435] = serial
    return exif


def save(kind="JPEG", **options):
    file = io.BytesIO()
    make_scene(3).save(file, kind, **options)
    return file.getvalue()


def add_segment(data, marker, content):
    return b"".join(
        (
            data[:2],
            b"\xff",
            bytes([marker]),
            (len(content) + 2).to_bytes(2, "big"),
            content,
            data[2:],
        )
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "location,serial"),
        ({"serial": ""}, "location"),
        ({"place": (0.0, 0.0, 0.0)}, "serial"),
        ({"place": (0.0, 0.0, 0.0), "serial": "0000 "}, ""),
    ],
)
@pytest.mark.parametrize("check", ["full", "header"])
def test_exif_of_jpeg_and_png_tells_place_and_camera(values, expected, check):
    exif = make_exif(**values)
    for kind in ("JPEG", "PNG"):
        prepared = prepare_image(save(kind, exif=exif), ImageOptions(image_check=check))
        assert (prepared.private, prepared.changes) == (expected, ()), kind


def test_xmp_and_texts_tell_place_and_camera():
    jpeg = add_segment(save(), 0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP)
    texts = PngImagePlugin.PngInfo()
    texts.add_itxt("XML:com.adobe.xmp", XMP.decode(), zip=True)
    magick = PngImagePlugin.PngInfo()
    block = b"Exif\0\0" + make_exif().tobytes().removeprefix(b"Exif\0\0")
    magick.add_text("Raw profile type exif", f"\nexif\n{len(block):8}\n{block.hex()}\n", zip=True)
    images = [jpeg, save("PNG", pnginfo=texts), save("PNG", pnginfo=magick)]
    for number, data in enumerate(images):
        assert prepare_image(data, ImageOptions()).private == "location,serial", number
    assert prepare_image(save(), ImageOptions()).private == ""


def test_an_image_that_is_encoded_again_tells_nothing():
    for options in ({"resize_short_side": 50}, {"encoding": "raw"}):
        for kind in ("JPEG", "PNG"):
            prepared = prepare_image(save(kind, exif=make_exif()), ImageOptions(**options))
            assert prepared.private == "", (kind, options)
    assert prepare_image(save("WEBP", exif=make_exif()), ImageOptions()).private == ""


def test_odd_blocks_are_read_as_far_as_possible():
    block = make_exif().tobytes().removeprefix(b"Exif\0\0")
    for end in range(len(block)):
        assert find_private([block[:end]], b"") in ("", "location", "serial", "location,serial")
    loop = b"II*\0\x08\0\0\0" + (1).to_bytes(2, "little") + b"\x25\x88\4\0\1\0\0\0\x08\0\0\0"
    assert find_private([loop, b"", b"MM\0*"], b"") == ""


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"restart_marker_blocks": 2}])
def test_a_jpeg_loses_its_metadata_and_no_pixel(options):
    bare = save(icc_profile=PROFILE, **options)
    data = save(icc_profile=PROFILE, exif=make_exif(), comment=b"where", **options)
    data = add_segment(data, 0xED, b"Photoshop 3.0\0IPTC") + save(exif=make_exif())
    prepared, plain = prepare_image(data, STRIPPED), prepare_image(bare, ImageOptions())
    assert (prepared.encoded, prepared.changes, prepared.private) == (bare, ("metadata",), "")
    facts = prepared.pixel_hash, prepared.perceptual_hash, prepared.luminance
    assert facts == (plain.pixel_hash, plain.perceptual_hash, plain.luminance)
    assert prepare_image(bare, STRIPPED).changes == ()
    header = ImageOptions(strip_metadata=True, image_check="header")
    assert prepare_image(data, header).encoded == bare


def test_a_png_loses_its_metadata_and_no_pixel():
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", "where")
    bare = save("PNG", icc_profile=PROFILE)
    data = save("PNG", icc_profile=PROFILE, exif=make_exif(), pnginfo=texts)
    chunk = b"tIME" + bytes(7)
    time = (7).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    data = data[:33] + time + data[33:] + b"after the end"
    preparer = ImagePreparer(STRIPPED)
    prepared = preparer.prepare(data)
    preparer.close()
    assert (prepared.encoded, prepared.changes, prepared.private) == (bare, ("metadata",), "")
    assert prepared.pixel_hash == prepare_image(bare, ImageOptions()).pixel_hash
    assert strip_png(bare) is bare


def test_a_turned_image_is_stored_as_without_the_option():
    exif = make_exif()
    exif[0x0112] = 6
    data = save(exif=exif)
    assert prepare_image(data, STRIPPED) == prepare_image(data, ImageOptions())


def test_a_jpeg_with_broken_segments_is_not_stripped():
    data = save()
    for broken in (
        data[:2],
        data[:-2],
        data[:2] + b"\xff\xe0\0\1" + data[2:],
        data[:60],
        b"\xff\xd8x",
    ):
        assert strip_jpeg(broken) is None
    rng = np.random.default_rng(0)
    for _ in range(200):
        strip_jpeg(data[:2] + rng.bytes(30) + data[40:])
