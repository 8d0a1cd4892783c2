"""Small pictures for reports, re-encoded so that no byte of a user's file gets into a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterable
from contextlib import closing

from PIL import Image

from darkroom.errors import RejectError
from darkroom.images.decoders import ImagePreparer
from darkroom.options.image import ImageOptions

THUMBNAIL_PIXELS = 96
_JPEG_QUALITY = 82


def make_thumbnail(data: bytes, preparer: ImagePreparer) -> str:
    """Makes a thumbnail of the image as conversion stores it: upright, in sRGB, on white.

    Args:
        data: An image file in any format that conversion takes.
        preparer: Decodes it; what is no plain JPEG, in a process with limits.

    Returns:
        A `data:image/jpeg` URI of an RGB JPEG whose longer side has at most 96 pixels. Images of
        less than half of that are enlarged by whole factors, without smoothing.

    Raises:
        ValueError: The bytes are no such image, are damaged, or have too many pixels.
    """
    try:
        stored = preparer.prepare(data).encoded
        with Image.open(io.BytesIO(stored), formats=["JPEG", "PNG"]) as image:
            # A JPEG is decoded at an eighth, a quarter or half of its size, as far as it can be.
            image.draft("RGB", (2 * THUMBNAIL_PIXELS, 2 * THUMBNAIL_PIXELS))
            small = _resize(image.convert("RGB"))
    except (RejectError, OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"No thumbnail: {error}") from error
    pixels = Image.frombytes("RGB", small.size, small.tobytes())  # Leaves all metadata behind.
    buffer = io.BytesIO()
    pixels.save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _resize(image: Image.Image) -> Image.Image:
    factor = THUMBNAIL_PIXELS // max(image.size)
    if factor >= 2:
        size = (image.width * factor, image.height * factor)
        return image.resize(size, Image.Resampling.NEAREST)
    image.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS), Image.Resampling.BOX)
    return image


def read_thumbnails(
    uris: Iterable[str], read_image_bytes: Callable[[str], bytes], limit: int
) -> dict[str, str]:
    """Reads images and makes thumbnails of them.

    Args:
        uris: Where the images are; each is read once.
        read_image_bytes: Reads the file at a URI.
        limit: How many images are tried.

    Returns:
        `data:` URI by source URI; what cannot be read or decoded is absent.
    """
    thumbnails = {}
    with closing(ImagePreparer(ImageOptions())) as preparer:
        for uri in list(dict.fromkeys(uris))[:limit]:
            try:
                thumbnails[uri] = make_thumbnail(read_image_bytes(uri), preparer)
            except Exception:  # noqa: BLE001, PERF203 - a report must not fail for a picture
                continue
    return thumbnails
