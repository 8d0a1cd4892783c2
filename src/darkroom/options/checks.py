"""Checks that options share."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from darkroom.errors import UsageError
from darkroom.runtime.text import suggest
from darkroom.withdrawn import explain_option

# Share of rejected rows, and of rejected objects.
DEFAULT_MAX_REJECTS = 0.01
MOST_THREADS = 1 << 10
# TensorFlow and Parquet have no numbers from here on.
_TOO_LARGE = 1 << 63
# The sides of an image in pixels, or a part and the number of parts.
_MOST_IN_PAIR = 1 << 20


def pick_fields(options: Any, target: type) -> dict[str, Any]:
    """Returns the values of those fields of a dataclass that another dataclass has, too, by name.

    Args:
        options: The one with values.
        target: The class of the other one.
    """
    names = {each.name for each in dataclasses.fields(target)}
    fields = (each.name for each in dataclasses.fields(options))
    return {name: getattr(options, name) for name in fields if name in names}


def check_known(names: Iterable[str], known: Collection[str], what: str) -> None:
    """Checks that options exist.

    Args:
        names: The names that were given.
        known: All names.
        what: The start of the message, as in "Training has no option".

    Raises:
        UsageError: One does not.
    """
    for name in names:
        if name not in known:
            hint = suggest(name, known, f"Options: {', '.join(known)}.")
            raise UsageError(f"{what} {name!r}.", explain_option(name) or hint)


def as_python(value: Any) -> Any:
    """Returns a number of NumPy, as shapes and grids of parameters have them, as Python's own."""
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_scalar else value


def as_size(value: Any) -> Any:
    """Returns (height, width) of a square that one number names; other values as they are."""
    side = as_python(value)
    return (side, side) if isinstance(side, int) else value


def is_number(value: object) -> bool:
    """Tells whether a value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_number(number: int) -> str:
    """Returns a whole number for a message; Python does not write one of thousands of digits."""
    return str(number) if abs(number) < 10**40 else "a number of more than 40 digits"


def is_table_of_texts(value: object) -> bool:
    """Tells whether a value is a table with a text under each key."""
    return isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())


def _is_count(value: object, least: float | None, most: float | None = None) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return (least is None or value >= least) and (most is None or value <= most)


def check_pair(name: str, value: Any, what: str, least: int) -> tuple[int, int]:
    """Returns an option that is two whole numbers, as a tuple.

    Raises:
        UsageError: It is something else, or a number is smaller than `least`.
    """
    pair = tuple(map(as_python, islice(value, 3))) if isinstance(value, Iterable) else ()
    if len(pair) != 2 or not all(_is_count(number, least, _MOST_IN_PAIR) for number in pair):
        raise UsageError(
            f"{name} is {value!r:.80}, expected two whole numbers, {what} at least {least}."
        )
    return pair


def check_flag(name: str, value: object) -> None:
    """Checks that an argument is true or false: the text "no" would count as true.

    Raises:
        UsageError: It is something else.
    """
    # NumPy's own are of neither type.
    is_flag = isinstance(value, int) and value in (0, 1)
    if not is_flag and type(value).__name__ not in ("bool", "bool_"):
        raise UsageError(f"{name} is {value!r:.80}, expected True or False.")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Checks that an option is one of some texts.

    Raises:
        UsageError: It is not.
    """
    if value not in choices:
        raise UsageError(f"{name} is {value!r}, expected one of {', '.join(choices)}.")


def check_count(name: str, value: object, least: float | None, most: float | None = None) -> None:
    """Checks that an option is a whole number; true and false are not.

    Raises:
        UsageError: It is not, or it is below the least or above the most.
    """
    limits = "" if least is None else f" of at least {least}"
    if least is not None and most is not None:
        limits = f" from {least} to {most}"
    if not _is_count(value, least, most):
        shown = format_number(value) if isinstance(value, int) else repr(value)
        raise UsageError(f"{name} is {shown}, expected a whole number{limits}.")
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        raise UsageError(f"{name} is {format_number(value)}, which is too large.")


def check_number(name: str, value: Any, least: float | None, most: float | None) -> None:
    """Checks that an option is a number, in its limits if it has both; true and false are not.

    Raises:
        UsageError: It is not.
    """
    if not is_number(value):
        raise UsageError(f"{name} is not a number.", "Write it without quotes.")
    if least is not None and most is not None and not least <= value <= most:
        raise UsageError(f"{name} is {value!r}, expected a number from {least:g} to {most:g}.")


def encode_json(values: Any) -> str:
    """Returns values as JSON text that no service changes on its way into a container."""
    # Kubernetes, Argo and Kubeflow replace `$$`, `$(NAME)` and `{{NAME}}` in texts of a container,
    # and a label may be such a text. Outside of texts JSON has neither `$` nor `{{`.
    return json.dumps(values).replace("$", "\\u0024").replace("{{", "\\u007b\\u007b")
