"""How images are checked and stored."""

from __future__ import annotations

from dataclasses import dataclass

from darkroom.errors import UsageError

CHECKS_FULL, CHECKS_HEADER = "full", "header"
CHECKS = (CHECKS_FULL, CHECKS_HEADER)
# What is reduced is to be small and quick to decode: of quality 95 and 4:4:4 a JPEG would take 1.6
# times the bytes, and input 1.3 times as long.
DEFAULT_JPEG_QUALITY = 90
KEEP_ENCODING, RAW_ENCODING = ENCODINGS = ("keep", "raw")


@dataclass(frozen=True)
class ImageOptions:
    """How images are checked and stored.

    Attributes:
        checks: `full` decodes every image completely before it is written; `header` reads its
            header only, so a damaged one may be written.
        resize_short_side: Short side in pixels to which larger images are reduced (area filter);
            None leaves sizes alone. Images are never enlarged.
        jpeg_quality: Quality, 1 to 100, of JPEGs that were reduced; below 95 their colours have
            half the resolution (4:2:0).
        encoding: `keep` stores the bytes of the file where they can stay; `raw` the pixels of every
            image: upright, sRGB or gray, a byte a value, row by row.
    """

    checks: str = CHECKS_FULL
    resize_short_side: int | None = None
    encoding: str = KEEP_ENCODING
    jpeg_quality: int = DEFAULT_JPEG_QUALITY

    def __post_init__(self) -> None:
        """Checks the options.

        Raises:
            UsageError: A value is out of its range.
        """
        if self.checks not in CHECKS:
            raise UsageError(f"checks must be one of {CHECKS}, got {self.checks!r}.")
        side = self.resize_short_side
        if side is not None and (not isinstance(side, int) or side < 1):
            raise UsageError(f"resize_short_side must be a whole number, positive, got {side!r}.")
        quality = self.jpeg_quality
        if not isinstance(quality, int) or not 1 <= quality <= 100:
            raise UsageError(f"jpeg_quality must be a whole number, 1 to 100, got {quality!r}.")
        if self.encoding not in ENCODINGS:
            raise UsageError(f"encoding must be one of {ENCODINGS}, got {self.encoding!r}.")

    @property
    def is_raw(self) -> bool:
        """Whether pixels are stored instead of files."""
        return self.encoding == RAW_ENCODING
