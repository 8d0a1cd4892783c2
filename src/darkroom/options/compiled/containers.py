"""What the container of a task gets: the paths that it sees, its texts, and its image."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.options.compiled.credentials import walk_texts
from darkroom.options.targets import KUBEFLOW, VERTEX, VERTEX_BUCKETS
from darkroom.storage import uris

STORES = ("gs", "s3")
# The stores that the reader of each option can open.
SCHEMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("data", "exclude", "decisions", "groups", "push_to", "allowed_roots"), STORES),
    **dict.fromkeys(("baseline_model", "baseline"), STORES),
    # TensorFlow reads these, and it cannot open s3://.
    **dict.fromkeys(("schema", "weights", "checkpoint_dir"), ("gs",)),
}
# Kubernetes replaces these in the arguments and the environment of a container: `$(NAME)`, and `$$`
# by `$`. Google documents the same for the environment of Vertex's custom jobs, and nothing for
# their arguments.
_REPLACED = re.compile(r"\$[$(]")
_WHO = {KUBEFLOW: ("Kubernetes replaces", "would"), VERTEX: ("Vertex may replace", "could")}
_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
# The names of Kubernetes and Vertex for the GPUs that need CUDA.
_NVIDIA = ("nvidia.com/", "NVIDIA_")
_HAS_CUDA = re.compile(r"cuda|gpu", re.IGNORECASE)


def check_place(
    name: str, path: str, schemes: tuple[str, ...], target: str, volumes: Iterable[str]
) -> None:
    """Checks that the containers of a target can see a path.

    Args:
        name: The name of the path, for the message.
        path: A path or a URI.
        schemes: Stores that its reader can open.
        target: `kubeflow` or `vertex`.
        volumes: Folders that are mounted in the containers, on Kubeflow.

    Raises:
        UsageError: They cannot.
    """
    if not is_seen(path, schemes, target, volumes):
        raise UsageError(f"{name} is {path!r}, which no container can see.", advise(path, schemes))


def is_seen(path: str, schemes: tuple[str, ...], target: str, volumes: Iterable[str]) -> bool:
    """Tells whether a path is in a store of one of the schemes, or mounted in the containers."""
    scheme, found, rest = path.partition("://")
    if found:
        return scheme in schemes and bool(rest.partition("/")[0])
    mounted = (VERTEX_BUCKETS,) if target == VERTEX else tuple(volumes)
    return any(uris.is_below(path, folder) for folder in mounted)


def advise(path: str, schemes: tuple[str, ...]) -> str:
    """Returns what a user can do about a path that no container can see."""
    if path.startswith("minio://") and "s3" in schemes:
        return f"Write s3{path[5:]}, and name the server by AWS_ENDPOINT_URL in env."
    places = " or ".join(f"{scheme}://" for scheme in schemes)
    if storage.is_remote(path):
        return f"Give a path of {places}."
    return (
        f"Put it into a store ({places}), or give an absolute path below a folder of volumes "
        "(Kubeflow) or /gcs (Vertex)."
    )


def check_replaced(values: Mapping[str, Any], target: str) -> None:
    """Checks that a service passes texts as they are.

    Args:
        values: Values by their place; they may be nested.
        target: `kubeflow` or `vertex`.

    Raises:
        UsageError: It would change one.
    """
    for name, value in values.items():
        for place, text in walk_texts(name, value):
            if found := _REPLACED.search(text):
                who, would = _WHO[target]
                raise UsageError(
                    f"{place} is {text!r}. {who} {found[0]} on the way to a container, so "
                    f"the task {would} get another text.",
                    "Use a text without $$ and $(.",
                )


def check_digest(place: str, image: str) -> None:
    """Checks that an image is named by its digest.

    Args:
        place: The option or the task that names it, for the message.
        image: The name.

    Raises:
        UsageError: It is not.
    """
    if not _DIGEST.search(image):
        raise UsageError(
            f"{place} is {image!r}, and require_digest wants one that is named by its digest.",
            "Give REGISTRY/NAME@sha256:DIGEST: `docker buildx imagetools inspect NAME` prints it.",
        )


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
