"""Checks a configuration for a target before TFX is loaded, which takes seconds.

The options are checked once, by name with `merge_checked_options` and then with
`check_for_target`. Everything behind that relies on it.
"""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from darkroom.errors import UsageError
from darkroom.options.compiled.credentials import check_credentials, check_environment
from darkroom.options.compiled.replaced import check_replaced
from darkroom.options.targets import KUBEFLOW, TARGETS, VERTEX
from darkroom.pipelines.cluster_config import ClusterConfig
from darkroom.pipelines.compilation.backends import check_backend
from darkroom.pipelines.compilation.places import check_places, do_tasks_read_labels
from darkroom.pipelines.config import PipelineConfig, merge_options
from darkroom.storage.uris import is_below

_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/-]*(:[0-9]+/[A-Za-z0-9._/-]+)?(:[\w.-]+)?(@sha256:\w+)?")
# The folders that Kubeflow mounts, and those of the image.
_NEEDED_FOLDERS = (
    *(
        "/minio",
        "/s3",
        "/gcs",
        "/kfp-launcher",
        "/kfp-workspace",
        "/.local",
        "/.cache",
        "/.config",
        "/var/run/argo",
        "/argo",
    ),
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
    merged = merge_options(values)
    check_credentials({name: value for name, value in merged.items() if name not in values})
    return merged


def check_values(config: ClusterConfig) -> None:
    """Checks that no value of a configuration contains a credential.

    Raises:
        UsageError: A value does.
    """
    values = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    values["resources"] = {k: dataclasses.asdict(v) for k, v in config.resources.items()}
    check_credentials(values)


def check_for_target(config: PipelineConfig, target: str) -> None:
    """Checks a configuration made of options that were searched for credentials.

    Raises:
        UsageError: A value cannot work on the target, or the label map contains a credential.
    """
    if not do_tasks_read_labels(config, target):
        labels = config.manifest.resolve_labels().labels or ()
        check_credentials({f"label_map, line {n}": each for n, each in enumerate(labels, start=1)})
    check_cluster(config, target)
    name_baseline(config, target)
    check_places(config, target)


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
    for name in ("secret_env", "volumes", "image_pull_secrets"):
        if target == VERTEX and getattr(config, name):
            raise UsageError(
                f"{name} is for Kubernetes, and Vertex has no equivalent.",
                "Leave it out: on Vertex the service account opens stores, and /gcs/BUCKET is "
                "mounted.",
            )
    if target == KUBEFLOW and config.vertex:
        raise UsageError("vertex is for Vertex AI Pipelines.", "Leave it out for Kubeflow.")
    make_secrets(config.secret_env)
    if twice := sorted(config.env.keys() & config.secret_env.keys()):
        raise UsageError(f"{twice[0]} is in env and in secret_env.", "Leave one of them out.")
    check_replaced(vars(config), target)
    _check_volumes(config.volumes)
    check_backend(config, target)


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


def _check_volumes(volumes: Mapping[str, str]) -> None:
    for folder in sorted(volumes):
        # By itself, normpath keeps two slashes at the front.
        clean = posixpath.normpath(f"/{folder.strip('/')}")
        # The image's own files are below /, and with it every path would count as mounted.
        if not folder.startswith("/") or clean == "/":
            raise UsageError(
                f"volumes mounts {folder!r}, expected an absolute path of a folder, and not /.",
                'Write it as in "/mnt/photos" = "CLAIM".',
            )
        hidden = (is_below(clean, each) or is_below(each, clean) for each in _NEEDED_FOLDERS)
        if clean == "/tmp" or any(hidden):
            raise UsageError(
                f"volumes mounts {clean!r}, which Kubeflow or the image needs.",
                'Mount the claim elsewhere, as in "/mnt/photos".',
            )


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
