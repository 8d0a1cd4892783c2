"""How images are checked and stored."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.options.fields import check_fields, document, option

CHECK_FULL, CHECK_HEADER = IMAGE_CHECKS = ("full", "header")
# Reduced images should be small and quick to decode. With quality 95 and 4:4:4 a JPEG would take
# 1.6 times the bytes, and input 1.3 times as long.
DEFAULT_JPEG_QUALITY = 90
AUTO_COPIES, ALWAYS_COPIES, NEVER_COPIES = DECODED_COPIES = ("auto", "always", "never")
KEEP_ENCODING, RAW_ENCODING = ENCODINGS = ("keep", "raw")


@document
@dataclass(frozen=True, kw_only=True)
class ImageFields:
    """How images are checked and stored."""

    image_check: str = option(
        CHECK_FULL,
        "Decode every image completely before it is written, or read its header only.",
        group="conversion",
        choices=IMAGE_CHECKS,
        runtime=True,
        more="With `header` a damaged image may be written.",
    )
    resize_short_side: int | None = option(
        None,
        "Reduce larger images to this length of their short side, in pixels.",
        group="conversion",
        least=1,
        metavar="PIXELS",
        shown="sizes stay",
        runtime=True,
        more="The filter is area. Images are never enlarged.",
    )
    encoding: str = option(
        KEEP_ENCODING,
        "Store images as files (keep) or as decoded pixels (raw).",
        group="conversion",
        choices=ENCODINGS,
        runtime=True,
        more="`keep` stores the user's own bytes where they can stay. `raw` stores upright "
        "pixels in sRGB or gray, one byte per value, row by row: faster to read, many times "
        "larger.",
    )
    jpeg_quality: int = option(
        DEFAULT_JPEG_QUALITY,
        "Quality of JPEGs that were reduced.",
        group="conversion",
        least=1,
        most=100,
        metavar="1-100",
        runtime=True,
        more="Below 95 their colors have half the resolution (4:2:0).",
    )
    strip_metadata: bool = option(
        False,
        "Take EXIF, XMP, IPTC and comments out of images.",
        group="conversion",
        more="Pixels and the color profile stay byte for byte. No place and no number of a camera "
        "is then in a record.",
    )
    find_decoded_copies: str = option(
        AUTO_COPIES,
        "Decode JPEGs a second time, so that PNGs that were made of them are found.",
        group="conversion",
        choices=DECODED_COPIES,
        runtime=True,
        more="`auto` does so when the source names files that are not JPEGs. It needs `full` "
        "checks, and takes about 1 ms of processor time for a JPEG of 500 x 375.",
    )


@document
@dataclass(frozen=True, kw_only=True)
class ImageOptions(ImageFields):
    """How images are checked and stored; checked when created."""

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is out of its range.
        """
        check_fields(self)

    @property
    def is_raw(self) -> bool:
        """Whether pixels are stored instead of files."""
        return self.encoding == RAW_ENCODING
