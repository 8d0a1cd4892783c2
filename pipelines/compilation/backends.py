"""The limits of versions of Kubeflow Pipelines for a compiled file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from darkroom.errors import UsageError
from darkroom.options.compiled.images import explain_idle_accelerator, explain_moving_image
from darkroom.options.targets import KUBEFLOW
from darkroom.pipelines.cluster_config import ClusterConfig
from darkroom.pipelines.resources import list_unused, spell_accelerator

# All releases since the oldest that runs darkroom's compiled files.
VERSIONS = ((2, 5), (2, 14), (2, 15), (2, 16), (2, 17))
_VERSION = re.compile(r"v?(\d+)\.(\d+)(\.\d+)?")
# From 2.15 on, the keys of a user's namespace open these in the bucket of Kubeflow's own store.
_OWN_BUCKET = "mlpipeline"
_SHARED_KEYS, _OPEN = (2, 15), ("artifacts", "private-artifacts", "private", "shared")
_NO_RETRIES = (2, 17)


def parse_version(text: str) -> tuple[int, int]:
    """Returns major and minor number of a version of Kubeflow Pipelines.

    Raises:
        UsageError: It is not a version, or one that cannot run darkroom's compiled files.
    """
    known = ", ".join(f"{major}.{minor}" for major, minor in VERSIONS)
    found = _VERSION.fullmatch(text)
    if not found:
        raise UsageError(f"kfp is {text!r}, expected a version as in 2.17.", f"Known: {known}.")
    version = int(found[1]), int(found[2])
    if version < VERSIONS[0]:
        raise UsageError(
            f"kfp is {text!r}, which is older than the compiled file needs.",
            f"Ask the administrator for one of {known}.",
        )
    if version < VERSIONS[-1] and version not in VERSIONS:
        raise UsageError(f"kfp is {text!r}, and there is no such version.", f"Known: {known}.")
    return version


def check_backend(config: ClusterConfig, target: str) -> None:
    """Checks that the version of the backend, where it is known, can run the file.

    Raises:
        UsageError: It cannot, or the version is for another target.
    """
    if config.kfp is None:
        return
    if target != KUBEFLOW:
        raise UsageError(
            f"kfp is {config.kfp!r}, a version of Kubeflow Pipelines.", "Leave it out for Vertex."
        )
    parse_version(config.kfp)


def list_warnings(
    config: ClusterConfig, target: str, images: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Returns warnings about parts that will not work as they seem.

    Args:
        config: The options of the cluster.
        target: `kubeflow` or `vertex`.
        images: Container images by component, of those that name one.
    """
    moving = explain_moving_image(config.image)
    found = [moving] if moving else []
    for component, table in config.resources.items():
        image = images.get(component, config.image)
        place, name = f"resources.{component}", table.accelerator
        found += find_idle_accelerator(place, name, image, target) if name else []
    found += [
        f"resources.{component}.{key} is for Kubernetes, and Vertex takes no notice of it."
        for component, table in config.resources.items()
        for key in list_unused(table, target)
    ]
    if target == KUBEFLOW and config.kfp is not None:
        found += _find_limits(config, parse_version(config.kfp))
    return found


def _find_limits(config: ClusterConfig, version: tuple[int, int]) -> Iterator[str]:
    if version > VERSIONS[-1]:
        newest = ".".join(map(str, VERSIONS[-1]))
        yield f"Kubeflow Pipelines {config.kfp} is newer than {newest}, the newest that was tried."
    if version >= _NO_RETRIES and any(each.retries for each in config.resources.values()):
        yield (
            f"Kubeflow Pipelines {config.kfp} does not retry a task that failed, as its own "
            "manifests set Argo up; an administrator can change that."
        )
    if version >= _SHARED_KEYS:
        for name in ("root", "data", "push_to", "exclude", "label_map", "baseline_model"):
            given = getattr(config, name, None)  # most are options of darkroom's own pipeline
            _, _, path = (given or "").partition("://")
            bucket, _, rest = path.partition("/")
            if bucket == _OWN_BUCKET and rest.partition("/")[0] not in _OPEN:
                yield (
                    f"{name} is {given!r}: with several users, their keys open "
                    f"only {', '.join(_OPEN)} in that bucket."
                )


def find_idle_accelerator(place: str, accelerator: str, image: str, target: str) -> Iterator[str]:
    """Yields a warning if a GPU is asked for, and nothing says that the image can use it.

    Args:
        place: The option that asks for the accelerator, for the message.
        accelerator: Its name.
        image: The container image of the task.
        target: `kubeflow` or `vertex`.
    """
    spelled = spell_accelerator(accelerator, target)
    if idle := explain_idle_accelerator(place, accelerator, spelled, image):
        yield idle
