"""How the cells of a row hold a target."""

from __future__ import annotations

import ast
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from darkroom.errors import RejectError

# Of an image. Python's objects take a kilobyte each.
MAX_OBJECTS = 100_000
# What an empty cell means.
UNANNOTATED, NONE_OF_THESE, REJECT_EMPTY = EMPTY_CELLS = ("unannotated", "none", "reject")
# In which image boxes are: as it is shown, or as its file has the pixels.
UPRIGHT, STORED = ORIENTATIONS = ("upright", "stored")

# Python makes 100 MB of so much text.
_MAX_LITERAL_CHARACTERS = 1 << 18


@dataclass(frozen=True)
class Form:
    """How the cells of a row hold a target.

    Attributes:
        columns: Names of the columns, in the order of the cells.
        known: The label map that the user gave; None without one.
        are_numbers: Whether labels are class numbers.
        separator: The text between labels in a cell, empty if it holds one; None if each column
            says by 0 or 1 whether an image has the label of its name.
        empty: What an empty cell means: one of `EMPTY_CELLS`.
        has_types: Whether numbers are not text; else 1.0 is a whole number, as where they are.
        orientation: Where boxes are that do not say it: in the image as it is shown, `upright`, or
            as its file has it, `stored`; None: an image that EXIF turns is rejected.
    """

    columns: tuple[str, ...]
    known: frozenset[str] | None = None
    are_numbers: bool = False
    separator: str | None = None
    empty: str = REJECT_EMPTY
    has_types: bool = True
    orientation: str | None = None


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


def parse_objects(text: str) -> Any:
    """Returns what the text of a cell says, as JSON or as Python writes it, in values of JSON.

    pandas writes a list of dicts into a CSV as Python shows it.

    Raises:
        ValueError: It is neither.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(f"{error}") from None
    except ValueError:
        if len(text) <= _MAX_LITERAL_CHARACTERS:
            with suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
                return json.loads(json.dumps(ast.literal_eval(text)))
        raise
