"""Preparing an image: any bytes are an image that stays as it is, or are refused by RejectError."""

from __future__ import annotations

from collections.abc import Callable

import atheris
import harness
import image_seeds

with atheris.instrument_imports(include=["darkroom"]):
    from darkroom.errors import RejectError
    from darkroom.images import memory
    from darkroom.images import prepare as images

# Large images cost time and find nothing more.
memory.MAX_PIXELS = 1 << 18

_FULL = images.ImageOptions()
_OTHERS = (
    images.ImageOptions(image_check=images.CHECK_HEADER),
    images.ImageOptions(resize_short_side=5),
    images.ImageOptions(image_check=images.CHECK_HEADER, resize_short_side=5),
)

_Answer = images.PreparedImage | tuple[str, str] | None


def check(data: bytes) -> None:
    for options in _OTHERS:
        prepare(data, options)
    image = prepare(data, _FULL)
    if image is None:
        return
    again = images.prepare_image(image.encoded, _FULL)
    assert again.encoded == image.encoded, "what was prepared is prepared again"
    assert again.changes == ()
    assert again.pixel_hash
    shape = image.height, image.width, image.channels
    assert (again.height, again.width, again.channels) == shape


def prepare(data: bytes, options: images.ImageOptions) -> images.PreparedImage | None:
    image = answer(images.prepare_image, data, options)
    plain = answer(images.prepare_plain, data, options)
    assert plain is None or plain == image, "the short way leads elsewhere"
    if not isinstance(image, images.PreparedImage):
        assert image[0].replace("_", "").isalpha()
        assert image[1]
        return None
    assert image.format in ("jpeg", "png")
    assert image.encoded == data or image.changes
    if options.image_check == images.CHECK_FULL:
        assert min(image.height, image.width) > 0
        assert image.channels in (1, 3)
    return image


def answer(function: Callable[..., _Answer], data: bytes, options: images.ImageOptions) -> _Answer:
    """Returns what a function returns, or reason and detail of its refusal."""
    try:
        return function(data, options)
    except RejectError as error:
        return error.reason, error.detail


if __name__ == "__main__":
    harness.fuzz(check, image_seeds.make_images(), image_seeds.TOKENS)
