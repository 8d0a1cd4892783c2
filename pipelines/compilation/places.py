"""Checks that the containers of a target can see the paths of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.options.training import IMAGENET
from darkroom.pipelines.config import VERTEX_BUCKETS, PipelineConfig
from darkroom.storage import uris

_ROOTS = {KUBEFLOW: ("gs", "s3", "minio"), VERTEX: ("gs",)}
_SCHEMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("data", "exclude", "push_to", "allowed_roots"), ("gs", "s3")),
    "baseline_model": ("gs", "s3"),
    # TensorFlow reads these, and it cannot open s3://.
    **dict.fromkeys(("schema", "weights", "checkpoint_dir"), ("gs",)),
}
_LABEL_SCHEMES = ("gs", "s3")


def check_places(config: PipelineConfig, target: str) -> None:
    """Checks that every path of a configuration means the same in a container of the target.

    A label map may also be a file of this machine, which is read when the pipeline is compiled.

    Raises:
        UsageError: A path is relative, a `file://` URI, or in a folder that is not mounted.
    """
    check_paths({**vars(config), "allowed_roots": None}, target, config.volumes)
    for root in config.allowed_roots:
        check_paths({"allowed_roots": root}, target, config.volumes)


def do_tasks_read_labels(config: PipelineConfig, target: str) -> bool:
    """Tells whether the label map is where the tasks see it, so that its path is compiled in.

    Raises:
        UsageError: It is in a store that they cannot open.
    """
    path = config.label_map or ""
    is_seen = _is_seen(path, _LABEL_SCHEMES, target, config.volumes)
    if uris.is_remote(path) and not is_seen:
        raise UsageError(
            f"label_map is {path!r}, which no container can see.", _advise(path, _LABEL_SCHEMES)
        )
    return is_seen


def check_paths(paths: Mapping[str, Any], target: str, volumes: Iterable[str]) -> None:
    """Checks paths by the name of their option; other options and None are left out.

    Raises:
        UsageError: See `check_places`.
    """
    # Without one, the administrator's holds for Kubeflow.
    if "root" in paths and (paths["root"] or target == VERTEX):
        _check_root(paths["root"], target)
    for name, schemes in _SCHEMES.items():
        if (path := paths.get(name)) is None or (name, path) == ("weights", IMAGENET):
            continue
        check_place(name, path, schemes, target, volumes)


def check_place(
    name: str, path: str, schemes: tuple[str, ...], target: str, volumes: Iterable[str]
) -> None:
    """Checks that the containers of a target can see a path.

    Args:
        name: What names the path, for the message.
        path: A path or a URI.
        schemes: Stores that its reader can open.
        target: `kubeflow` or `vertex`.
        volumes: Folders that are mounted in the containers, on Kubeflow.

    Raises:
        UsageError: They cannot.
    """
    if not _is_seen(path, schemes, target, volumes):
        raise UsageError(f"{name} is {path!r}, which no container can see.", _advise(path, schemes))


def _check_root(root: str, target: str) -> None:
    scheme, found, rest = root.partition("://")
    bucket = rest.partition("/")[0]
    is_place = bool(found and bucket) and ".." not in rest.split("/") and rest.isprintable()
    if not is_place or scheme not in _ROOTS[target]:
        schemes = " or ".join(f"{each}://BUCKET/FOLDER" for each in _ROOTS[target])
        raise UsageError(
            f"root is {root!r}, which {target} cannot keep artifacts in.",
            f"Give {schemes}: the tasks share no folder with the machine that compiles."
            + (" Without a root, that of Kubeflow's administrator holds." * (target == KUBEFLOW)),
        )


def _is_seen(path: str, schemes: tuple[str, ...], target: str, volumes: Iterable[str]) -> bool:
    """Tells whether a path is in a store of one of the schemes, or mounted in the containers."""
    scheme, found, rest = path.partition("://")
    if found:
        return scheme in schemes and bool(rest.partition("/")[0])
    mounted = (VERTEX_BUCKETS,) if target == VERTEX else tuple(volumes)
    return any(uris.is_below(path, folder) for folder in mounted)


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
