"""Keeps credentials out of compiled pipelines: many people see specs, properties and logs.

`docs/reference/credentials.md` lists the names of `CREDENTIAL_PATTERNS`. Each pattern needs a mark
that only a credential has. A hash, a UUID or a digest has none. Neither has a bare secret of 40
characters without its name, so environment variables are also judged by their names.
"""

from __future__ import annotations

import dataclasses
import re
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from darkroom.errors import UsageError

_WORD = r"(?<![A-Za-z0-9_-])"
_END = r"(?![A-Za-z0-9_-])"


def _token(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{_WORD}(?:{pattern}){_END}")


CREDENTIAL_PATTERNS: Mapping[str, re.Pattern[str]] = {
    "AWS access key id": _token(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}"),
    "AWS secret access key": re.compile(
        r"(?i)aws.{0,20}(?:secret|key).{0,20}[=:]\s*[\"']?[A-Z0-9/+]{40}(?![A-Z0-9/+=])"
    ),
    "AWS pre-signed URL": re.compile(
        r"(?i)x-amz-(?:signature=[0-9a-f]{16}|security-token=[A-Z0-9%+/]{16})"
    ),
    "Google signed URL": re.compile(r"(?i)x-goog-signature=[0-9a-f]{16}"),
    # The older forms, beside AWSAccessKeyId= or GoogleAccessId=.
    "signature in a URL": re.compile(r"[?&]Signature=[A-Za-z0-9%+/_~-]{20}"),
    "Google API key": _token(r"AIza[0-9A-Za-z_-]{35}"),
    "Google OAuth token": _token(r"ya29\.[0-9A-Za-z_-]{20,}"),
    "Google OAuth client secret": _token(r"GOCSPX-[0-9A-Za-z_-]{28}"),
    "Google Cloud Storage HMAC key": _token(r"GOOG1E[A-Z0-9]{55}|GOOG[A-Z0-9]{20}"),
    "Google service account key": re.compile(r"\"private_key(?:_id)?\"\s*:\s*\""),
    "Azure storage account key": re.compile(r"(?i)account_?key\s*=\s*[A-Z0-9+/]{86}=="),
    "Azure shared access key": re.compile(r"(?i)sharedaccesskey\s*=\s*[A-Z0-9+/]{43}="),
    "Azure shared access signature": re.compile(r"[?&]sig=[A-Za-z0-9%+/]{40,}"),
    "Azure client secret": _token(r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    "private key (PEM)": re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"),
    "JSON web token": _token(r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}"),
    "GitHub token": _token(r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}"),
    "GitLab token": _token(r"glpat-[A-Za-z0-9_-]{20,}"),
    "Hugging Face token": _token(r"hf_[A-Za-z0-9]{34,}"),
    "Slack token": _token(r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "Slack webhook": re.compile(r"hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]+"),
    "PyPI token": _token(r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    "npm token": _token(r"npm_[A-Za-z0-9]{36}"),
    "Docker Hub token": _token(r"dckr_[a-z]{3}_[A-Za-z0-9_-]{27,}"),
    "Stripe key": _token(r"[rs]k_live_[0-9A-Za-z]{24,}"),
    "API key (sk-)": _token(r"sk-[A-Za-z0-9_-]{32,}"),
    "Databricks token": _token(r"dapi[0-9a-f]{32}"),
    "HTTP authorization": re.compile(r"(?i)\b(?:bearer|basic)\s+[A-Z0-9._~+/-]{20,}=*"),
    "password in a URL": re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@?#]*:[^/\s@?#]+@"),
    "password in an assignment": re.compile(
        r"(?i)(?:password|passwd|pwd|secret|token|api_?key|access_?key)[\"']?\s*[=:]\s*"
        r"[\"']?(?![$<{])[^\s\"',;/&]{8,}"
    ),
}

_SECRET_NAME = re.compile(
    r"(?i)(?:password|passwd|secret|token|api_?key|access_?key|private_?key|credential)"
)
# Names that look like a credential's but only say where it is, or its name.
_HARMLESS_NAME = re.compile(r"(?i)_(?:file|path|name|uri|url|endpoint)$")

_HINT = (
    "Many people see specs, properties and logs. On Kubeflow, put it into a Secret, and name that "
    "in secret_env as SECRET/KEY; on Vertex, use the service account; or give it by the "
    "environment where you submit."
)


def find_credential(text: str) -> str | None:
    """Returns the kind of the credential in a text, percent-encoded or not; None without one."""
    texts = {text, urllib.parse.unquote(text)}
    return next(
        (kind for kind, p in CREDENTIAL_PATTERNS.items() if any(map(p.search, texts))), None
    )


def check_credentials(values: Mapping[str, Any], hint: str = _HINT) -> None:
    """Checks that no value contains a credential.

    Args:
        values: Values by the name of their option; they may be nested.
        hint: Where the user gives a credential instead.

    Raises:
        UsageError: A value does. The message names the option, never the value.
    """
    for name, value in values.items():
        for place, text in (("The name of an option", name), *walk_texts(name, value)):
            if kind := find_credential(text):
                raise UsageError(f"{place} seems to contain a credential: {kind}.", hint)


def check_environment(name: str, variables: Mapping[str, str], hint: str = _HINT) -> None:
    """Checks that no environment variable has the name of a credential.

    Args:
        name: The name of the variables, for the message.
        variables: Values by the name of their variable.
        hint: Where the user gives a credential instead.

    Raises:
        UsageError: A variable has.
    """
    for variable in variables:
        if _SECRET_NAME.search(variable) and not _HARMLESS_NAME.search(variable):
            raise UsageError(f"{name}.{variable} is the name of a credential.", hint)


def walk_texts(place: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields all text inside a value, with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            # A key may itself be the credential, so it is checked before it names a place.
            yield f"A key of {place}", str(key)
            yield from walk_texts(f"{place}.{key}", each)
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from walk_texts(f"{place}.{each.name}", getattr(value, each.name))
    elif isinstance(value, Sequence):
        for number, each in enumerate(value):
            yield from walk_texts(f"{place}[{number}]", each)
