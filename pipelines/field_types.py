"""The kinds of values that the fields of a configuration take: in a TOML file any may stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from darkroom.errors import UsageError


class _Kind(NamedTuple):
    name: str
    is_one: Callable[[Any], bool]
    hint: str


def is_number(value: object) -> bool:
    """Tells whether a value is a number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_table_of_texts(value: object) -> bool:
    """Tells whether a value is a table, with a text under each key."""
    return isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


# By the annotation of the field. Whole numbers are checked, with their range, where they are used.
_KINDS: Mapping[str, _Kind] = {
    "str": _Kind("text", lambda value: isinstance(value, str), "Write it in quotes."),
    "bool": _Kind(
        "flag", lambda value: isinstance(value, bool), "Write true or false, without quotes."
    ),
    "float": _Kind("number", is_number, "Write it without quotes."),
    "tuple[str, ...]": _Kind("list of texts", _is_list_of_texts, 'Write it as in ["a", "b"].'),
    "Mapping[str, str]": _Kind("table of texts", is_table_of_texts, "Write each value in quotes."),
}


def check_types(config: Any) -> None:
    """Checks the kinds of the values of a dataclass whose annotations are texts.

    Raises:
        UsageError: One is of another kind. The value may be a credential, so it is not shown.
    """
    for each in dataclasses.fields(config):
        annotation, _, absent = str(each.type).partition(" | ")
        kind, value = _KINDS.get(annotation), getattr(config, each.name)
        if kind is None or (absent and value is None) or kind.is_one(value):
            continue
        raise UsageError(f"{each.name} is no {kind.name}.", kind.hint)
