"""What can be told about a compilation before TFX is loaded, which takes seconds."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

from darkroom.errors import UsageError
from darkroom.pipelines.config import PipelineConfig
from darkroom.pipelines.credentials import check_credentials, check_environment
from darkroom.pipelines.deployment import TARGETS, VERTEX
from darkroom.pipelines.places import check_places

_IMAGE = re.compile(r"[a-z0-9][A-Za-z0-9._/-]*(:[0-9]+/[A-Za-z0-9._/-]+)?(:[\w.-]+)?(@sha256:\w+)?")


def check_config(config: PipelineConfig, target: str) -> None:
    """Checks what can be told before anything is compiled.

    Raises:
        UsageError: A value cannot work on the target, or holds a credential.
    """
    # First of all: a message of another check may show a value.
    values = {each.name: getattr(config, each.name) for each in dataclasses.fields(config)}
    values["resources"] = {k: dataclasses.asdict(v) for k, v in config.resources.items()}
    check_credentials({**values, "label_map": [config.label_map, *(config.manifest.labels or ())]})
    check_environment("env", config.env)
    if target not in TARGETS:
        raise UsageError(f"There is no target {target!r}.", f"Targets: {', '.join(TARGETS)}.")
    if not _IMAGE.fullmatch(config.image):
        raise UsageError(
            f"image is {config.image!r}, expected the container image of the tasks.",
            "Give --image REGISTRY/NAME@sha256:DIGEST; docs/container.md says how to build it.",
        )
    for name in ("secret_env", "volumes"):
        if target == VERTEX and getattr(config, name):
            raise UsageError(
                f"{name} is for Kubernetes; Vertex has no such thing.",
                "Leave it out: there the service account opens stores, and /gcs/BUCKET is mounted.",
            )
    make_secrets(config.secret_env)
    check_places(config, target)


def make_secrets(secret_env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns Kubernetes' form of environment variables that come from Secrets.

    Raises:
        UsageError: One is not `SECRET/KEY`.
    """
    secrets: dict[str, list[dict[str, str]]] = {}
    for variable, place in sorted(secret_env.items()):
        secret, slash, key = place.partition("/")
        if not (secret and slash and key):
            # The text may be the credential itself, so it is not shown.
            raise UsageError(
                f"secret_env.{variable} does not name a key of a Secret.",
                'Write it as in AWS_ACCESS_KEY_ID = "mlpipeline-minio-artifact/accesskey".',
            )
        secrets.setdefault(secret, []).append({"envVar": variable, "secretKey": key})
    return [{"secretName": secret, "keyToEnv": keys} for secret, keys in sorted(secrets.items())]
