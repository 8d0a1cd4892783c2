"""Checks a configuration for a target before TFX is loaded, which takes seconds.

The options are checked once, by name with `merge_checked_options` and then with `check_config`, or
`check_cluster` for a user's own pipeline. Everything behind that relies on it. What a server says
at once when it gets the file is left to it; these are errors that it would find late, or never.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from darkroom.errors import UsageError
from darkroom.manifest.label_map import resolve_labels
from darkroom.options.compiled.containers import (
    SCHEMES,
    STORES,
    advise,
    check_digest,
    check_place,
    check_replaced,
    explain_idle_accelerator,
    explain_moving_image,
    is_seen,
)
from darkroom.options.compiled.credentials import check_credentials, check_environment
from darkroom.options.targets import KUBEFLOW, TARGETS, VERTEX
from darkroom.options.training import IMAGENET
from darkroom.pipelines.config import ClusterConfig, PipelineConfig, merge_file_options
from darkroom.pipelines.resources import KUBERNETES_ONLY, spell_accelerator
from darkroom.storage import uris

# All releases since the oldest that runs darkroom's compiled files.
VERSIONS = ((2, 5), (2, 14), (2, 15), (2, 16), (2, 17))
_VERSION = re.compile(r"v?(\d+)\.(\d+)(\.\d+)?")
# From 2.15 on, the keys of a user's namespace open these in the bucket of Kubeflow's own store.
_OWN_BUCKET = "mlpipeline"
_SHARED_KEYS, _OPEN = (2, 15), ("artifacts", "private-artifacts", "private", "shared")
_NO_RETRIES = (2, 17)
_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/-]*(:[0-9]+/[A-Za-z0-9._/-]+)?(:[\w.-]+)?(@sha256:\w+)?")
_BEAM_IMAGE = "--sdk_container_image="
_ROOTS = {KUBEFLOW: ("gs", "s3", "minio"), VERTEX: ("gs",)}
# The folders that Kubeflow mounts, and those of the image.
_NEEDED_FOLDERS = (
    *("/minio", "/s3", "/gcs", "/kfp-launcher", "/kfp-workspace", "/.local", "/.cache", "/.config"),
    *("/var/run/argo", "/argo"),
    *("/var/run/secrets/kubernetes.io", "/run/secrets/kubernetes.io"),
    *("/bin", "/dev", "/etc", "/lib", "/lib64", "/opt/darkroom", "/proc", "/sbin", "/sys", "/usr"),
)


def merge_checked_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options by name, with those of the file that `config` names; the given ones win.

    Args:
        values: Options without credentials; see `check_credentials`.

    Raises:
        UsageError: The file is not TOML, or has an option with a credential.
        OSError: The file cannot be read.
    """
    merged = merge_file_options(values)
    check_credentials({name: value for name, value in merged.items() if name not in values})
    return merged


def check_config(config: PipelineConfig, target: str) -> None:
    """Checks a configuration made of options that were searched for credentials.

    Raises:
        UsageError: A value cannot work on the target, or the label map contains a credential.
    """
    if not do_tasks_read_labels(config, target):
        labels = resolve_labels(config.manifest).labels or ()
        check_credentials({f"label_map, line {n}": each for n, each in enumerate(labels, start=1)})
    check_cluster(config, target)
    name_baseline(config, target)
    check_paths({**vars(config), "allowed_roots": None}, target, config.volumes)
    for root in config.allowed_roots:
        check_paths({"allowed_roots": root}, target, config.volumes)


def check_cluster(config: ClusterConfig, target: str) -> None:
    """Checks the options of a cluster for a pipeline, ours or another one, except its root.

    Raises:
        UsageError: A value cannot work on the target.
    """
    check_environment("env", config.env)
    if target not in TARGETS:
        raise UsageError(f"There is no target {target!r}.", f"Targets: {', '.join(TARGETS)}.")
    if not _IMAGE.fullmatch(config.image):
        raise UsageError(
            f"image is {config.image!r}, expected the container image of the tasks.",
            'Give image = "REGISTRY/NAME@sha256:DIGEST", built as in docs/guides/container.md.',
        )
    if config.require_digest:
        check_digest("image", config.image)
    for name in ("secret_env", "volumes", "image_pull_secrets"):
        if target == VERTEX and getattr(config, name):
            raise UsageError(
                f"{name} is for Kubernetes, and Vertex has no equivalent.",
                "Leave it out: on Vertex the service account opens stores, and /gcs/BUCKET is "
                "mounted.",
            )
    if target == KUBEFLOW and config.vertex:
        raise UsageError("vertex is for Vertex AI Pipelines.", "Leave it out for Kubeflow.")
    if target == VERTEX and config.kfp is not None:
        raise UsageError(
            f"kfp is {config.kfp!r}, a version of Kubeflow Pipelines.", "Leave it out for Vertex."
        )
    make_secrets(config.secret_env)
    if twice := sorted(config.env.keys() & config.secret_env.keys()):
        raise UsageError(f"{twice[0]} is in env and in secret_env.", "Leave one of them out.")
    check_replaced(vars(config), target)
    for folder in sorted(config.volumes):
        # By itself, normpath keeps two slashes at the front.
        clean = posixpath.normpath(f"/{folder.strip('/')}")
        # The image's own files are below /, and with it every path would count as mounted.
        if not folder.startswith("/") or clean == "/":
            raise UsageError(
                f"volumes mounts {folder!r}, expected an absolute path of a folder, and not /.",
                'Write it as in "/mnt/photos" = "CLAIM".',
            )
        hidden = any(
            uris.is_below(clean, each) or uris.is_below(each, clean) for each in _NEEDED_FOLDERS
        )
        if clean == "/tmp" or hidden:
            raise UsageError(
                f"volumes mounts {clean!r}, which Kubeflow or the image needs.",
                'Mount the claim elsewhere, as in "/mnt/photos".',
            )
    if config.kfp is not None:
        parse_version(config.kfp)


def check_digests(spec: Mapping[str, Any]) -> None:
    """Checks that a pipeline spec names all images by their digests: of tasks, of Beam's workers.

    Raises:
        UsageError: It does not.
    """
    for name, executor in sorted(spec["deploymentSpec"]["executors"].items()):
        if container := executor.get("container"):
            task = name.removesuffix("_executor")
            check_digest(f"The image of {task}", container["image"])
            for argument in container.get("args", ()):
                if str(argument).startswith(_BEAM_IMAGE):
                    image = argument.removeprefix(_BEAM_IMAGE)
                    check_digest(f"{_BEAM_IMAGE[:-1]} of {task}", image)


def check_paths(paths: Mapping[str, Any], target: str, volumes: Iterable[str]) -> None:
    """Checks that paths mean the same in a container of the target.

    Args:
        paths: Paths by the name of their option; other options and None are left out. A label map
            may also be a file of this machine, which is read when the pipeline is compiled.
        target: `kubeflow` or `vertex`.
        volumes: Folders that are mounted in the containers, on Kubeflow.

    Raises:
        UsageError: A path is relative, a `file://` URI, or in a folder that is not mounted.
    """
    root = paths.get("root")
    # Without one, the administrator's holds for Kubeflow.
    if "root" in paths and (root or target == VERTEX):
        scheme, found, rest = f"{root}".partition("://")
        bucket = rest.partition("/")[0]
        is_place = bool(found and bucket) and ".." not in rest.split("/") and rest.isprintable()
        if not is_place or scheme not in _ROOTS[target]:
            places = " or ".join(f"{each}://BUCKET/FOLDER" for each in _ROOTS[target])
            raise UsageError(
                f"root is {root!r}, which {target} cannot keep artifacts in.",
                f"Give {places}: the tasks share no folder with the machine that compiles."
                + " Without a root, that of Kubeflow's administrator holds." * (target == KUBEFLOW),
            )
    for name, schemes in SCHEMES.items():
        if (path := paths.get(name)) is not None and (name, path) != ("weights", IMAGENET):
            check_place(name, path, schemes, target, volumes)


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


def name_baseline(config: PipelineConfig, target: str) -> PipelineConfig:
    """Returns the configuration with the place of the model to compare with, where it needs one.

    Kubeflow runs no Resolvers, so nothing there finds the last model that passed. The newest
    pushed one is that, too.

    Raises:
        UsageError: Nothing names the place.
    """
    if target != KUBEFLOW or not config.compares_models or config.baseline_model:
        return config
    if not config.push_to:
        raise UsageError(
            "max_accuracy_drop and max_recall_drop need a model to compare with, and Kubeflow "
            "cannot look for the last one that passed.",
            "Name a folder of pushed models: push_to, or baseline_model.",
        )
    return dataclasses.replace(config, baseline_model=config.push_to)


def make_secrets(secret_env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns Kubernetes' form of environment variables that come from Secrets.

    Raises:
        UsageError: One is not `SECRET/KEY`.
    """
    secrets: dict[str, list[dict[str, str]]] = {}
    for variable, place in sorted(secret_env.items()):
        secret, slash, key = place.partition("/")
        if not (secret and slash and key) or "/" in key:
            # The text may be the credential itself, so the message does not show it.
            raise UsageError(
                f"secret_env.{variable} does not name a key of a Secret.",
                'Write it as in AWS_ACCESS_KEY_ID = "mlpipeline-minio-artifact/accesskey".',
            )
        secrets.setdefault(secret, []).append({"envVar": variable, "secretKey": key})
    return [{"secretName": secret, "keyToEnv": keys} for secret, keys in sorted(secrets.items())]


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


def list_warnings(
    config: ClusterConfig, target: str, images: Mapping[str, str] = MappingProxyType({})
) -> list[str]:
    """Returns warnings about parts that will not work as they seem.

    Args:
        config: The options of the cluster.
        target: `kubeflow` or `vertex`.
        images: Container images by component, of those that name one.
    """
    found = [explain_moving_image(config.image)]
    for component, table in config.resources.items():
        if name := table.accelerator:
            place, image = f"resources.{component}", images.get(component, config.image)
            spelled = spell_accelerator(name, target)
            found.append(explain_idle_accelerator(place, name, spelled, image))
    if target == VERTEX:
        found += [
            f"resources.{component}.{key} is for Kubernetes, and Vertex takes no notice of it."
            for component, table in config.resources.items()
            for key in KUBERNETES_ONLY
            if getattr(table, key)
        ]
    version = parse_version(config.kfp) if config.kfp is not None else (0, 0)
    if version > VERSIONS[-1]:
        newest = ".".join(map(str, VERSIONS[-1]))
        found.append(
            f"Kubeflow Pipelines {config.kfp} is newer than {newest}, the newest that was tried."
        )
    if version >= _NO_RETRIES and any(each.retries for each in config.resources.values()):
        found.append(
            f"Kubeflow Pipelines {config.kfp} does not retry a task that failed, as its own "
            "manifests set Argo up; an administrator can change that."
        )
    if version >= _SHARED_KEYS:
        for name in (
            *("root", "data", "push_to", "exclude", "decisions", "groups", "label_map"),
            *("baseline_model", "baseline"),
        ):
            given = getattr(config, name, None)  # most are options of darkroom's own pipeline
            bucket, _, rest = (given or "").partition("://")[2].partition("/")
            if bucket == _OWN_BUCKET and rest.partition("/")[0] not in _OPEN:
                found.append(
                    f"{name} is {given!r}: with several users, their keys open "
                    f"only {', '.join(_OPEN)} in that bucket."
                )
    return [each for each in found if each]
