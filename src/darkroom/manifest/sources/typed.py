"""Kinds and values of columns that have types: from JSON, Parquet and DataFrames."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from darkroom.dataset.schema import Kind
from darkroom.errors import RejectError
from darkroom.manifest.sources.base import Value
from darkroom.manifest.sources.objects import as_objects

_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.INTEGER: (int,),
    Kind.FLOAT: (int, float),
    Kind.STRING: (str, int, float, list, dict),  # lists and objects become JSON
    Kind.STRING_LABEL: (str, int, float),
    Kind.INTEGER_LABEL: (str, int, float),
    Kind.ID: (str, int, float),
    Kind.LABEL_MARK: (int,),
    Kind.TARGET: (int, float, str),
    Kind.OBJECTS: (object,),  # the kind of target checks them
    Kind.IGNORED: (object,),
}
# A path, a split or an id is text; a label may be a number, which becomes its text.
_TEXT = (str, int)
_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.INTEGER_LABEL, Kind.LABEL_MARK)
_WHOLE = (Kind.INTEGER, Kind.INTEGER_LABEL, Kind.LABEL_MARK, Kind.STRING_LABEL, Kind.ID)
# From here on, the digits of a float say nothing.
_TOO_LARGE = float(1 << 53)
# What Python writes for an object that has no readable text: another one in every run.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")


def infer_kind(values: Iterable[Any]) -> Kind:
    """Returns the narrowest kind that holds all values."""
    types = {type(value) for value in values if value is not None}
    if types and types <= {int, bool}:
        return Kind.INTEGER
    return Kind.FLOAT if types and types <= {int, bool, float} else Kind.STRING


def list_types(kind: Kind) -> tuple[type, ...]:
    """Returns the types of the values that a column of `kind` may have."""
    return (*_TYPES.get(kind, _TEXT), type(None))


def find_label_fault(value: Any, kind: Kind) -> RejectError | None:
    """Returns why a label's cell cannot be used: it is a list, a table or a huge number."""
    if kind is Kind.OBJECTS or (kind is Kind.LABELS and isinstance(value, list | tuple)):
        return None
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) or (isinstance(value, float) and abs(value) >= _TOO_LARGE):
        got = f"{type(value).__name__} {value!r:.80}"
        return RejectError("bad_value", f"expected a label, got {got}")
    if not isinstance(value, list | tuple):
        return None
    if not value:
        return RejectError("empty_label", "the list of labels is empty")
    return RejectError("multi_label", f"{len(value)} labels: {list(value)}")


def has_text(value: Any) -> bool:
    """Tells whether a cell can be written as text: an object may have only its address."""
    plain = (str, int, float, bytes, list, tuple, dict)
    return value is None or isinstance(value, plain) or not _ADDRESS.search(str(value))


def as_value(value: Any, kind: Kind) -> Value:
    """Returns a typed cell as a value of a row; of a list with one element, the element."""
    if kind is Kind.OBJECTS:
        objects: Value = as_objects(value)
        return objects
    if value is None or isinstance(value, str):
        return value
    if kind is Kind.LABELS and isinstance(value, list | tuple):
        # The others become text, or reject the row, when they are parsed.
        return [_as_whole(each) if isinstance(each, float) else each for each in value]
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool):
        return int(value) if kind in _NUMBERS else str(value)
    if isinstance(value, float):
        if value != value:
            return None  # pandas writes missing values as NaN
        return _as_whole(value) if kind in _WHOLE else value
    if isinstance(value, int):
        return value
    if not isinstance(value, list | tuple | dict):
        return _as_text(value)
    try:
        return json.dumps(value, default=_as_text)
    except (TypeError, ValueError):
        return str(value)  # keys that are not text, or a list that contains itself


def _as_whole(value: float) -> Any:
    """Returns a number, as an integer where it is whole; None where it is missing."""
    if value != value:
        return None
    # With a missing value, pandas makes floats of a column of whole numbers.
    return int(value) if value.is_integer() and abs(value) < _TOO_LARGE else value


def _as_text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
