"""Kubernetes' rules for labels, tolerations, Secrets and the like, which only its server checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from darkroom.errors import UsageError

# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_MOST_IN_NAME, _MOST_IN_PREFIX = 63, 253
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PREFIX_PART = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SECRET_KEY = re.compile(r"(?!\.\.?$|\.\.)[A-Za-z0-9._-]{1,253}")
# Kubeflow and Argo find the pods of a run by labels of their own; those of a task would win.
_TAKEN_PREFIXES = ("pipelines.kubeflow.org", "workflows.argoproj.io")
_OPERATORS = ("Exists", "Equal")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_KEYS = ("effect", "key", "operator", "value")
_KEY_HINT = (
    "A key is NAME or PREFIX/NAME. A name has at most 63 letters, digits, '-', '_' and '.', and "
    "begins and ends with a letter or digit. A prefix is the name of a domain."
)
_VALUE_HINT = (
    "A value is empty, or at most 63 letters, digits, '-', '_' and '.', and begins and ends with a "
    "letter or digit."
)


def check_labels(name: str, labels: Mapping[str, str]) -> None:
    """Checks labels of pods or nodes.

    Args:
        name: What names the table, for the message. It never shows a value.
        labels: Values by key.

    Raises:
        UsageError: Kubernetes would refuse a key or a value.
    """
    for key, value in labels.items():
        _check_key(name, key, key)
        if not _is_value(value):
            raise UsageError(
                f"{name}.{key} has a value that Kubernetes does not take for a label.", _VALUE_HINT
            )


def check_annotations(name: str, annotations: Mapping[str, str]) -> None:
    """Checks the keys of annotations, whose values may be any text.

    Raises:
        UsageError: Kubernetes would refuse a key.
    """
    for key in annotations:
        # Of annotations alone a prefix may have capital letters.
        _check_key(name, key, key.lower())


def _check_key(name: str, shown: str, key: str) -> None:
    if not _is_key(key):
        raise UsageError(f"{name} has the key {shown!r:.300}, which is not one.", _KEY_HINT)


def check_free(name: str, keys: Iterable[str]) -> None:
    """Checks that no key of labels or annotations of a pod is one that Kubeflow sets itself.

    Raises:
        UsageError: A key is.
    """
    for key in keys:
        prefix = key.rpartition("/")[0].lower()
        if prefix in _TAKEN_PREFIXES:
            raise UsageError(
                f"{name} has the key {key!r}, and Kubeflow sets those of {prefix} itself.",
                "Use a key with another prefix, or without one.",
            )


def check_secret(name: str, secret: str, key: str | None = None) -> None:
    """Checks the name of a Secret, and of a key in it.

    Args:
        name: What names the Secret, for the message. It never shows the text, which may be the
            secret itself.
        secret: The name.
        key: The key; None for the Secret as a whole.

    Raises:
        UsageError: Kubernetes does not take one of them.
    """
    if not _is_prefix(secret):
        raise UsageError(
            f"{name} is not a name of a Secret.",
            f"It has at most {_MOST_IN_PREFIX} small letters, digits, '-' and '.', and begins and "
            "ends with a letter or digit.",
        )
    if key is not None and not _SECRET_KEY.fullmatch(key):
        raise UsageError(
            f"{name} does not name a key of a Secret.",
            f"A key has at most {_MOST_IN_PREFIX} letters, digits, '-', '_' and '.'.",
        )


def check_toleration(toleration: Mapping[str, str]) -> None:
    """Checks a toleration, a table of texts.

    Raises:
        UsageError: Kubernetes does not know one of its keys, or would refuse a value.
    """
    if not set(_TOLERATION_KEYS).issuperset(toleration):
        raise UsageError(
            f"A toleration is {toleration!r}.",
            f"Give a table of texts with some of {', '.join(_TOLERATION_KEYS)}.",
        )
    for name, known in (("operator", _OPERATORS), ("effect", _EFFECTS)):
        # Kubernetes takes an empty text as if there were none.
        if (given := toleration.get(name)) and given not in known:
            raise UsageError(
                f"tolerations: {name} is {given!r}.", f"Give one of {', '.join(known)}."
            )
    key, value = toleration.get("key", ""), toleration.get("value", "")
    if key and not _is_key(key):
        raise UsageError(f"tolerations: key is {key!r:.300}, which is not one.", _KEY_HINT)
    if toleration.get("operator") == "Exists":
        if value:
            raise UsageError(
                "tolerations: a value is given beside the operator Exists, which takes any value.",
                "Leave out the value, or write Equal.",
            )
    elif not key:
        raise UsageError(
            "tolerations: a key is missing.", "Only the operator Exists goes without one."
        )
    elif not _is_value(value):
        raise UsageError("tolerations: Kubernetes does not take the value.", _VALUE_HINT)


def _is_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return _is_name(name) and (not slash or _is_prefix(prefix))


def _is_name(text: str) -> bool:
    return len(text) <= _MOST_IN_NAME and bool(_NAME.fullmatch(text))


def _is_prefix(text: str) -> bool:
    return len(text) <= _MOST_IN_PREFIX and all(map(_PREFIX_PART.fullmatch, text.split(".")))


def _is_value(text: str) -> bool:
    return not text or _is_name(text)
