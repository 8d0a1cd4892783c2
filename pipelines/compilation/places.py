"""Checks that the containers of a target can see the paths of a configuration."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from typing import Any

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.options.training import IMAGENET
from darkroom.pipelines.config import PipelineConfig

_ROOTS = {KUBEFLOW: ("gs", "s3", "minio"), VERTEX: ("gs",)}
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("data", "exclude", "push_to", "allowed_roots"), ("gs", "s3")),
    "baseline_model": ("gs", "s3"),
    # TensorFlow reads these, and it cannot open s3://.
    **dict.fromkeys(("schema", "weights", "checkpoint_dir"), ("gs",)),
}
# Vertex mounts every bucket that the service account may read.
_VERTEX_BUCKETS = "/gcs"


def check_places(config: PipelineConfig, target: str) -> None:
    """Checks that every path of a configuration means the same in a container of the target.

    The label map is not among them: it is read when the pipeline is compiled.

    Raises:
        UsageError: A path is relative, a `file://` URI, or in a folder that is not mounted.
    """
    check_paths({**vars(config), "allowed_roots": None}, target, config.volumes)
    for root in config.allowed_roots:
        check_paths({"allowed_roots": root}, target, config.volumes)


def check_paths(paths: Mapping[str, Any], target: str, volumes: Iterable[str]) -> None:
    """Checks paths by the name of their option; other options and None are left out.

    Raises:
        UsageError: See `check_places`.
    """
    if "root" in paths:
        _check_root(paths["root"], target)
    mounted = (_VERTEX_BUCKETS,) if target == VERTEX else tuple(volumes)
    for name, schemes in _SCHEMES.items():
        if (path := paths.get(name)) is None or (name, path) == ("weights", IMAGENET):
            continue
        scheme, found, rest = path.partition("://")
        is_in_store = found and scheme in schemes and rest.partition("/")[0]
        is_mounted = not found and any(_is_below(path, folder) for folder in mounted)
        if not is_in_store and not is_mounted:
            raise UsageError(
                f"{name} is {path!r}, which no container can see.", _advise(path, schemes)
            )


def _check_root(root: str, target: str) -> None:
    scheme, found, rest = root.partition("://")
    bucket = rest.partition("/")[0]
    is_place = bool(found and bucket) and ".." not in rest.split("/") and rest.isprintable()
    if not is_place or scheme not in _ROOTS[target]:
        schemes = " or ".join(f"{each}://BUCKET/FOLDER" for each in _ROOTS[target])
        raise UsageError(
            f"root is {root!r}, which {target} cannot keep artifacts in.",
            f"Give {schemes}: the tasks share no folder with the machine that compiles.",
        )


def _is_below(path: str, folder: str) -> bool:
    clean = posixpath.normpath(path)
    return clean == folder.rstrip("/") or clean.startswith(folder.rstrip("/") + "/")


def _advise(path: str, schemes: tuple[str, ...]) -> str:
    if path.startswith("minio://") and "s3" in schemes:
        return f"Write s3{path[5:]}, and name the server by AWS_ENDPOINT_URL in env."
    places = " or ".join(f"{scheme}://" for scheme in schemes)
    if storage.is_remote(path):
        return f"Give a path of {places}."
    return (
        f"Put it into a store ({places}), or give an absolute path below a folder of volumes "
        "(Kubeflow) or /gcs (Vertex)."
    )
