"""Values of a type from JSON: a file is read by the type of its content.

Whoever wrote the file, no reader meets a value of another type than its annotations say.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import types
import typing
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, TypeVar, Union, cast

_Kind = TypeVar("_Kind")
# Numbers of more bits are used nowhere.
_MAX_INT = 1 << 63
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PLAIN = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def check_possible(value: object, is_possible: bool) -> None:
    """Raises ValueError for a value that is of its type, but cannot be."""
    if not is_possible:
        raise ValueError(f"{value!r:.80} is not a possible value")


def check_some(value: Collection[object]) -> None:
    """Raises ValueError for nothing."""
    check_possible(value, bool(value))


def _check_different(values: Collection[object]) -> None:
    check_possible(values, len({*values}) == len(values))


Count = Annotated[int, lambda value: check_possible(value, value >= 0)]
Sha256 = Annotated[str, lambda value: check_possible(value, bool(_SHA256.fullmatch(value)))]
# Without lone surrogates, which have no bytes, and without NUL, which no file name can have.
Text = Annotated[str, lambda value: check_possible(value, b"\0" not in value.encode())]
Names = Annotated[tuple[Text, ...], _check_different]
Identifier = Annotated[str, lambda value: check_possible(value, value.isidentifier())]
Share = Annotated[float, lambda value: check_possible(value, 0 <= value <= 1)]


def parse_json(data: bytes | str, kind: type[_Kind]) -> _Kind:
    """Returns the content of a file.

    Args:
        data: Its content.
        kind: The type, as in `build_value`.

    Raises:
        ValueError: It is not JSON, or does not fit the type.
    """
    try:
        values = json.loads(data)
        # Without lone surrogates, which no stream can write.
        json.dumps(values, ensure_ascii=False).encode()
        return build_value(values, kind)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def format_json(value: Any) -> bytes:
    """Returns the content of a file, for people too."""
    return f"{json.dumps(value, indent=1)}\n".encode()


def parse_object(data: bytes | str) -> dict[str, Any]:
    """Returns an object of JSON that somebody else wrote; an empty one where that is none."""
    with suppress(ValueError):
        return parse_json(data, dict[str, Any])
    return {}


def build_value(value: Any, kind: type[_Kind]) -> _Kind:
    """Returns a value of JSON as one of a type.

    Args:
        value: The value.
        kind: Any, str, bool, int, float, a union; a Sequence or tuple, which become tuples; a
            Mapping; a dataclass or TypedDict, whose fields may be left out where they have a
            default or are not required; or one of these with a function that raises ValueError,
            as in `Annotated[Mapping[str, float], check]`.

    Raises:
        ValueError: It does not fit; the text says where.
    """
    return cast(_Kind, _build(value, kind, ""))


def _build(value: Any, kind: Any, where: str) -> Any:
    """Does the work of `build_value`; `where` is the place in the file, as in `.splits[0]`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        found = _build(value, arguments[0], where)
        for check in arguments[1:]:
            check(found)
        return found
    if origin in (Union, types.UnionType):
        return _build_first(value, arguments, where)
    if origin is not None and issubclass(origin, Mapping):
        _check(value, isinstance(value, Mapping), "an object", where)
        _, each = arguments
        return {key: _build(item, each, f"{where}.{key}") for key, item in value.items()}
    if origin is not None and issubclass(origin, Sequence):
        return _build_tuple(value, arguments, where)
    if dataclasses.is_dataclass(kind) or typing.is_typeddict(kind):
        return _build_fields(value, kind, where)
    return _build_plain(value, kind, where)


def _build_first(value: Any, kinds: Sequence[Any], where: str) -> Any:
    """Returns a value as the first type of a union that it fits."""
    if value is None and types.NoneType in kinds:
        return None
    first, *others = (kind for kind in kinds if kind is not types.NoneType)
    try:
        return _build(value, first, where)
    except ValueError:
        if not others:
            raise
        return _build_first(value, others, where)


def _build_tuple(value: Any, kinds: Sequence[Any], where: str) -> tuple[Any, ...]:
    _check(value, isinstance(value, list | tuple), "a list", where)
    if len(kinds) > 1 and kinds[1] is not ...:
        _check(value, len(value) == len(kinds), f"{len(kinds)} values", where)
    else:
        kinds = [kinds[0]] * len(value)
    pairs = zip(value, kinds, strict=True)
    return tuple(_build(each, kind, f"{where}[{n}]") for n, (each, kind) in enumerate(pairs))


def _build_fields(value: Any, kind: Any, where: str) -> Any:
    _check(value, isinstance(value, Mapping), "an object", where)
    known, needed = _list_fields(kind)
    for names, what in (({*value} - {*known}, "unknown"), (needed - {*value}, "missing")):
        if names:
            raise ValueError(f"{where or 'it'}: {min(names)!r:.80} is {what}")
    return kind(
        **{name: _build(each, known[name], f"{where}.{name}") for name, each in value.items()}
    )


@functools.cache
def _list_fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """Returns the types of fields by name, and the names of those without a default."""
    known = typing.get_type_hints(kind, include_extras=True)
    if not dataclasses.is_dataclass(kind):
        return known, kind.__required_keys__
    fields = dataclasses.fields(kind)
    missing = dataclasses.MISSING
    needed = (each.name for each in fields if each.default is each.default_factory is missing)
    return known, frozenset(needed)


def _build_plain(value: Any, kind: Any, where: str) -> Any:
    # true is not a number.
    is_one = type(value) in (int, float) if kind is float else type(value) is kind
    is_small = type(value) is not int or abs(value) < _MAX_INT
    _check(value, is_one and is_small, _PLAIN[kind], where)
    return float(value) if kind is float else value


def _check(value: Any, is_right: bool, expected: str, where: str) -> None:
    if not is_right:
        raise ValueError(f"{where or 'it'} is {value!r:.80}, expected {expected}")
