"""Thumbnails for pages and contact sheets, of which no byte is one of a user's file."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TypeVar

from PIL import Image

from darkroom.errors import RejectError
from darkroom.images.decoders import ImagePreparer
from darkroom.options.image import ImageOptions
from darkroom.runtime.markup import encode_picture

THUMBNAIL_PIXELS = 96
_JPEG_QUALITY = 82
_Name = TypeVar("_Name")


def draw_thumbnail(data: bytes, preparer: ImagePreparer, pixels: int) -> Image.Image:
    """Draws a thumbnail of an image as conversion stores it: upright, in sRGB, on white.

    Args:
        data: An image file in any format that conversion takes.
        preparer: Decodes the image; all but plain JPEGs in a process with limits.
        pixels: Most pixels on its longer side.

    Returns:
        An RGB image without metadata, with at most so many pixels. One with less than half of that
        is enlarged by a whole factor, without smoothing.

    Raises:
        ValueError: The bytes are not such an image, are damaged, or have too many pixels.
    """
    try:
        stored = preparer.prepare(data).encoded
        with Image.open(io.BytesIO(stored), formats=["JPEG", "PNG"]) as image:
            # A large JPEG is decoded at a half, a quarter or an eighth of its size.
            image.draft("RGB", (2 * pixels, 2 * pixels))
            small = _resize(image.convert("RGB"), pixels)
    except (RejectError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"No thumbnail: {error}") from error
    return Image.frombytes("RGB", small.size, small.tobytes())  # Leaves all metadata behind.


def encode_thumbnail(data: bytes, preparer: ImagePreparer, pixels: int) -> bytes:
    """Returns what `draw_thumbnail` draws as a JPEG.

    Raises:
        ValueError: The bytes are not such an image, are damaged, or have too many pixels.
    """
    buffer = io.BytesIO()
    draw_thumbnail(data, preparer, pixels).save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return buffer.getvalue()


def make_thumbnails(
    images: Iterable[tuple[_Name, bytes]],
    find_pixels: Callable[[_Name], int] = lambda _: THUMBNAIL_PIXELS,
) -> Iterator[tuple[_Name, str]]:
    """Yields the names of images, each with its thumbnail as `data:image/jpeg` URI of a page.

    Images that cannot be decoded are left out: no page fails because of a picture.

    Args:
        images: Names and files.
        find_pixels: Returns the most pixels on the longer side, by the name.
    """
    with closing(ImagePreparer(ImageOptions())) as preparer:
        for name, data in images:
            try:
                made = encode_thumbnail(data, preparer, find_pixels(name))
            except Exception:  # noqa: BLE001 - see above
                continue
            yield name, encode_picture(made, "jpeg")


def _resize(image: Image.Image, pixels: int) -> Image.Image:
    factor = pixels // max(image.size)
    if factor >= 2:
        size = (image.width * factor, image.height * factor)
        return image.resize(size, Image.Resampling.NEAREST)
    image.thumbnail((pixels, pixels), Image.Resampling.BOX)
    return image
