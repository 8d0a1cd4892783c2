"""The types and ranges of the values in `dataset.json`, for whoever builds it of JSON."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, TypedDict

FORMAT_VERSION = 3
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FEATURE_TYPES = ("bytes", "int64", "float")
_CHECKS = ("full", "header")


def _check(value: object, is_right: bool) -> None:
    if not is_right:
        raise ValueError(f"{value!r:.80} is not a possible value")


def check_some(value: Collection[object]) -> None:
    """Raises ValueError for nothing."""
    _check(value, bool(value))


def _check_different(values: Collection[object]) -> None:
    _check(values, len({*values}) == len(values))


Count = Annotated[int, lambda value: _check(value, value >= 0)]
Sha256 = Annotated[str, lambda value: _check(value, bool(_SHA256.fullmatch(value)))]
# Without lone surrogates, which have no bytes, and without NUL, which no file name can have.
Text = Annotated[str, lambda value: _check(value, b"\0" not in value.encode())]
Names = Annotated[tuple[Text, ...], _check_different]
Identifier = Annotated[str, lambda value: _check(value, value.isidentifier())]
ImageChecks = Annotated[str, lambda value: _check(value, value in _CHECKS)]
Share = Annotated[float, lambda value: _check(value, 0 <= value <= 1)]


class Decisions(TypedDict):
    """The file of decisions that was applied, and how many of each action were.

    Of those that were not, `changed` are about images with other bytes, and `gone` about images
    that are not in the source.
    """

    sha256: Sha256
    counts: dict[str, Count]


class Feature(TypedDict):
    """The type of a feature of a record: `bytes`, `int64` or `float`."""

    type: Annotated[str, lambda value: _check(value, value in _FEATURE_TYPES)]
