"""Which paths a container can see: those of a store, and those below a mounted folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.options.targets import VERTEX, VERTEX_BUCKETS
from darkroom.storage import uris

STORES = ("gs", "s3")
# The stores that the reader of each option can open.
SCHEMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("data", "exclude", "push_to", "allowed_roots"), STORES),
    "baseline_model": STORES,
    # TensorFlow reads these, and it cannot open s3://.
    **dict.fromkeys(("schema", "weights", "checkpoint_dir"), ("gs",)),
}


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
