"""Parses cells, one at a time: text, labels and inputs of a row, or why they cannot be used."""

from __future__ import annotations

from typing import Any

from darkroom.dataset import labels
from darkroom.dataset.schema import Kind, parse_input_value
from darkroom.errors import RejectError

MAX_INTEGER_LABEL = 65_535


def as_text(value: Any) -> str:
    """Returns a cell as text; the empty text for None.

    Raises:
        RejectError: It holds a NUL byte.
    """
    if value is None:
        return ""
    text = value if isinstance(value, str) else str(value)
    if "\0" in text:
        raise RejectError("nul_byte", "a cell holds a NUL byte")
    return text


def check_unicode(text: str) -> None:
    """Checks that `text` can be stored: file names may hold any bytes, JSON any code units.

    Raises:
        RejectError: It cannot be encoded as UTF-8.
    """
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RejectError("not_unicode", "the name is not UTF-8") from None


def parse_label(text: str) -> str:
    """Returns the label that a cell holds.

    Raises:
        RejectError: It is empty, too long, or has control or invisible characters.
    """
    label = labels.normalise_label(text)
    if not label:
        raise RejectError("empty_label", "the label cell is empty")
    if len(label) > labels.MAX_LABEL_CHARACTERS:
        limit = f"{labels.MAX_LABEL_CHARACTERS:,}"
        raise RejectError(
            "bad_label", f"the label has more than {limit} characters: {label:.40}..."
        )
    if not labels.is_printable(label):
        shown = f"{label!r:.200}"
        raise RejectError("bad_label", f"the label holds control or invisible characters: {shown}")
    return label


def parse_integer_label(label: str) -> str:
    """Returns a label that is a number, as text without leading zeros.

    Raises:
        RejectError: It is not a number, or too large for the number of a class.
    """
    if not label.isascii() or not label.isdigit() or int(label) > MAX_INTEGER_LABEL:
        expected = f"a whole number from 0 to {MAX_INTEGER_LABEL}"
        raise RejectError("bad_value", f"the label {label!r} is not {expected}")
    return str(int(label))


def parse_cell(name: str, value: Any, kind: Kind) -> int | float | str | None:
    """Returns the value of an input column.

    Raises:
        RejectError: The cell does not hold a value of `kind`.
    """
    if value is None:
        return None
    try:
        parsed = parse_input_value(value if isinstance(value, str) else str(value), kind)
        if isinstance(parsed, str):
            parsed.encode()
    except ValueError:
        problem = f"column {name!r}: expected {kind.value}, got {str(value)!r:.80}"
        raise RejectError("bad_value", problem) from None
    return parsed
