"""Kubernetes' rules for labels, annotations and tolerations, which only its server checks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from darkroom.errors import UsageError

# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_MOST_IN_NAME, _MOST_IN_PREFIX = 63, 253
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_PREFIX_PART = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
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
