"""The container image of a compiled pipeline."""

from __future__ import annotations


def explain_moving_image(image: str) -> str | None:
    """Says what is wrong if the next image gets the same name; None if it does not."""
    name, digest = image.rpartition("/")[2].partition("@")[::2]
    if digest or name.partition(":")[2] not in ("", "latest"):
        return None
    return (
        f"image is {image!r}, which is the tag latest. Name a digest, or a tag that you never "
        "reuse: the cache does not see that the image behind a name has changed."
    )
