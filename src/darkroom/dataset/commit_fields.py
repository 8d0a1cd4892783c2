"""Checks the types and ranges of everything in a `dataset.json`, whoever wrote it.

All readers get a commit through this check, so that none of them meets a value that it does not
expect, and all agree which one is damaged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

# Sizes and counts are 64-bit integers wherever they are used.
_MAX_NUMBER = (1 << 63) - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FEATURE_TYPES = frozenset(("bytes", "int64", "float"))
_CHECKS = frozenset(("full", "header"))

FORMAT_VERSION = 2

Check = Callable[[Any], bool]


def check_commit_fields(fields: Any) -> None:
    """Checks the values of a commit, as JSON gave them.

    Raises:
        ValueError: A field is missing, unknown, or has a wrong value; the text names it.
    """
    if not isinstance(fields, dict):
        raise ValueError("it is not an object")
    expected = dict(_FIELDS)
    if "max_rejects" in fields:
        expected["max_rejects"] = lambda value: type(value) is float and 0 <= value <= 1
    _check("", fields, expected)


def _check(where: str, fields: Mapping[str, Any], expected: Mapping[str, Check]) -> None:
    if odd := sorted(fields.keys() ^ expected.keys()):
        what = "is missing" if odd[0] in expected else "is unknown"
        raise ValueError(f"{where}{odd[0]!r:.80} {what}")
    for name, is_right in expected.items():
        if not is_right(fields[name]):
            raise ValueError(f"{where}{name} is {fields[name]!r:.80}")


def _is_number(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MAX_NUMBER


def _is_text(value: Any) -> bool:
    try:
        # Without lone surrogates and NUL, which no file name can have.
        return isinstance(value, str) and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and bool(_SHA256.fullmatch(value))


def _is_labels(value: Any) -> bool:
    is_texts = isinstance(value, list) and all(map(_is_text, value))
    return is_texts and len({*value}) == len(value)


def _is_feature(value: Any) -> bool:
    if not (isinstance(value, dict) and value.keys() == {"type"}):
        return False
    return isinstance(value["type"], str) and value["type"] in _FEATURE_TYPES


def _map_of(expected: Mapping[str, Check]) -> Check:
    """Returns the check of an object whose values have these fields."""

    def is_right(value: Any) -> bool:
        return isinstance(value, dict) and all(
            _has_fields(f"{name!r:.80}: ", each, expected) for name, each in value.items()
        )

    return is_right


def _list_of(expected: Mapping[str, Check]) -> Check:
    """Returns the check of a list whose values have these fields."""

    def is_right(value: Any) -> bool:
        return isinstance(value, list) and all(
            _has_fields(f"number {number}: ", each, expected) for number, each in enumerate(value)
        )

    return is_right


def _has_fields(where: str, value: Any, expected: Mapping[str, Check]) -> bool:
    if not isinstance(value, dict):
        raise ValueError(f"{where}it is {value!r:.80}")
    _check(where, value, expected)
    return True


_SHARD: Mapping[str, Check] = {
    "file": _is_text,
    "records": _is_number,
    "bytes": _is_number,
    "sha256": _is_sha256,
}
_SPLIT: Mapping[str, Check] = {"records": _is_number, "shards": _list_of(_SHARD)}
_FILE: Mapping[str, Check] = {
    "rows": _is_number,
    "sha256": lambda value: value is None or _is_sha256(value),
}
_TARGET: Mapping[str, Check] = {
    "kind": lambda value: isinstance(value, str) and value.isidentifier(),
    "names": _is_labels,
}
_FIELDS: Mapping[str, Check] = {
    "format_version": lambda value: _is_number(value) and value == FORMAT_VERSION,
    "fingerprint": _is_sha256,
    "options": lambda value: isinstance(value, dict),
    "checks": lambda value: isinstance(value, str) and value in _CHECKS,
    "features": lambda value: isinstance(value, dict) and all(map(_is_feature, value.values())),
    "labels": _is_labels,
    "rows": _is_number,
    "written": _is_number,
    "rejected": _is_number,
    "deduplicated": _is_number,
    "splits": _map_of(_SPLIT),
    "files": _map_of(_FILE),
    "targets": lambda value: bool(value) and _map_of(_TARGET)(value),
}
