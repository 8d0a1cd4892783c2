"""Checks that the containers of a target can see the paths of a configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.compiled.places import SCHEMES, STORES, advise, check_place, is_seen
from darkroom.options.targets import KUBEFLOW, VERTEX
from darkroom.options.training import IMAGENET
from darkroom.pipelines.config import PipelineConfig
from darkroom.storage import uris

_ROOTS = {KUBEFLOW: ("gs", "s3", "minio"), VERTEX: ("gs",)}


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
    is_visible = is_seen(path, STORES, target, config.volumes)
    if uris.is_remote(path) and not is_visible:
        raise UsageError(
            f"label_map is {path!r}, which no container can see.", advise(path, STORES)
        )
    return is_visible


def check_paths(paths: Mapping[str, Any], target: str, volumes: Iterable[str]) -> None:
    """Checks paths by the name of their option; other options and None are left out.

    Raises:
        UsageError: See `check_places`.
    """
    # Without one, the administrator's holds for Kubeflow.
    if "root" in paths and (paths["root"] or target == VERTEX):
        _check_root(paths["root"], target)
    for name, schemes in SCHEMES.items():
        if (path := paths.get(name)) is None or (name, path) == ("weights", IMAGENET):
            continue
        check_place(name, path, schemes, target, volumes)


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
