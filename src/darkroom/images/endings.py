"""The endings that names of image files have."""

from __future__ import annotations

from darkroom.storage.uris import find_ending

# Files with other endings (licences, notes, thumbnail databases) are not images.
IMAGE_ENDINGS = frozenset(
    f".{name}"
    for name in "avif bmp gif heic heif jfif jpe jpeg jpg png tif tiff webp".split()  # noqa: SIM905
)


def is_image_name(path: str) -> bool:
    """Tells whether a path has the ending of an image."""
    return find_ending(path) in IMAGE_ENDINGS
