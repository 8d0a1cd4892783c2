"""Kinds of columns whose values come with a type: from JSON, Parquet and DataFrames."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from darkroom.schema import Kind
from darkroom.sources.base import Value

_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.FLOAT: (int, float),
    Kind.STRING: (str, int, float),
    Kind.IGNORED: (object,),
}
# A path, a split or an id is text; a label may be a number, which becomes its text.
_TEXT = (str, int)


def infer_kind(values: Iterable[Any]) -> Kind:
    """Returns the narrowest kind that holds all values."""
    types = {type(value) for value in values if value is not None}
    if types and types <= {int, bool}:
        return Kind.INTEGER
    return Kind.FLOAT if types and types <= {int, bool, float} else Kind.STRING


def check_type(value: Any, kind: Kind) -> str | None:
    """Returns what is wrong with a value of a column of `kind`, or None."""
    if value is None or isinstance(value, _TYPES.get(kind, _TEXT)):
        return None
    return f"expected {kind.value}, got {type(value).__name__} {value!r:.80}"


def as_value(value: Any) -> Value:
    """Returns a typed cell as one of a row's values; a list of one stands for its element."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value != value:
        return None  # pandas writes what is missing as NaN
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return json.dumps(value) if isinstance(value, list | dict) else str(value)
