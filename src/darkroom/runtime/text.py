"""Text for people: names from other people's files made safe to show, counts and short lists.

Paths and labels may have characters that nobody sees. A control character can move a terminal's
cursor, and a bidirectional override can make `gpj.exe` look like `exe.jpg`: both are shown as code
points.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

# The most items that a message or a report lists.
MAX_LISTED_ROWS = 10
MAX_SHOWN_CHARACTERS = 300
# What is said of images that nobody has labelled; "(none)" is said of those without any label.
NOT_ANNOTATED = "(not annotated)"
# Control, format (bidi, zero-width), surrogate, private use, unassigned, line and paragraph ends.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SINGULAR = {
    "are": "is",
    "were": "was",
    "have": "has",
    "reach": "reaches",
    "could": "could",
    "cannot": "cannot",
}
_PLAIN = re.compile(r"[ -~]*\Z")


def make_visible(text: str, max_characters: int = MAX_SHOWN_CHARACTERS) -> str:
    """Returns `text` with invisible characters as `<U+202E>`, and without its middle if too long.

    Args:
        text: Any text, including lone surrogates.
        max_characters: Longest text that is kept whole, counted before the replacement; at least 3.

    Returns:
        One line that UTF-8 can encode and no terminal interprets.
    """
    if len(text) > max_characters:
        head = max_characters * 2 // 3
        text = f"{text[:head]}…{text[len(text) - (max_characters - head - 1) :]}"
    if _PLAIN.match(text):
        return text
    return "".join(
        f"<U+{ord(character):04X}>"
        if unicodedata.category(character) in _HIDDEN_CATEGORIES
        else character
        for character in text
    )


def list_first(texts: Sequence[str], most: int = MAX_LISTED_ROWS) -> str:
    """Returns the first texts, made visible, and how many follow: "a, b, c and 8 more"."""
    shown = ", ".join(map(make_visible, texts[:most]))
    more = len(texts) - most
    return f"{shown} and {more:,} more" if more > 0 else shown


def find_similar(name: str, known: Iterable[str], least: float = 0.6) -> str | None:
    """Returns the known name that is most like a wrong one; None if none is.

    Args:
        name: The name.
        known: The known names.
        least: How similar it must be, 0 to 1.
    """
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, [*known], n=1, cutoff=least)), None)


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Returns which known name a wrong one may stand for, as a question; else `otherwise`."""
    near = find_similar(name, known)
    return otherwise if near is None else f"Did you mean {near}?"


def format_count(count: int, noun: str, verb: str = "", of: int | None = None) -> str:
    """Returns a count with its words in singular or plural: "1 row", "1,801 rows", "1 row is".

    Args:
        count: How many.
        noun: One of them: "row", "pair of images".
        verb: What they do, in the plural: "are".
        of: How many there are in all, as in "1 of 9 rows is".
    """
    first, *rest = noun.split(" ", 1) if " of " in noun else (noun,)
    if (count if of is None else of) != 1:
        first = f"{first.removesuffix('y')}ies" if first.endswith("ly") else _add_s(first)
    if count == 1:
        verb = _SINGULAR.get(verb) or (_add_s(verb) if verb else "")
    amount = f"{count:,}" if of is None else f"{count:,} of {of:,}"
    return " ".join(filter(None, (amount, first, *rest, verb)))


def _add_s(word: str) -> str:
    return f"{word}es" if word.endswith(("s", "x")) else f"{word}s"
