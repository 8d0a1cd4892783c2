"""The container image of a compiled pipeline."""

from __future__ import annotations

import re

# The names of Kubernetes and Vertex for the GPUs that need CUDA.
_NVIDIA = ("nvidia.com/", "NVIDIA_")
_HAS_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)


def explain_moving_image(image: str) -> str | None:
    """Explains the problem if the next image gets the same name; None if it does not."""
    name, digest = image.rpartition("/")[2].partition("@")[::2]
    if digest or name.partition(":")[2] not in ("", "latest"):
        return None
    return (
        f"image is {image!r}, which is the tag latest. Name a digest, or a tag that you never "
        "reuse: the cache does not see that the image behind a name has changed."
    )


def explain_idle_accelerator(place: str, name: str, spelled: str, image: str) -> str | None:
    """Explains the problem if a GPU is asked for, and nothing says that the image can use it.

    Args:
        place: The option that asks for the accelerator.
        name: The accelerator as it was asked for.
        spelled: The same as Kubernetes or Vertex spells it.
        image: The container image of the task.
    """
    if not spelled.startswith(_NVIDIA) or _HAS_CUDA.search(image):
        return None
    return (
        f"{place} asks for {name}, and the name of the image says nothing of CUDA: {image}. "
        "Without CUDA the accelerator is idle. `make image STAGE=cuda` builds an image with it; "
        "put cuda into its name or its tag. With a digest, the tag says nothing but that: "
        "NAME:cuda@sha256:DIGEST."
    )
