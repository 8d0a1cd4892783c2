"""Makes foreign text safe to show: what the eye cannot see is written out.

Paths and labels come from other people's files. A control character can move a terminal's cursor,
a bidirectional override can make `gpj.exe` read `exe.jpg`: both are shown as their code points.
"""

from __future__ import annotations

import re
import unicodedata

MAX_LISTED_ROWS = 10

MAX_SHOWN_CHARACTERS = 300
# Control, format (bidi, zero-width), surrogate, private use, unassigned, line and paragraph ends.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_PLAIN = re.compile(r"[ -~]*\Z")


def make_visible(text: str, max_characters: int = MAX_SHOWN_CHARACTERS) -> str:
    """Returns `text` with invisible characters as `<U+202E>` and its middle cut when too long.

    Args:
        text: Any text, lone surrogates included.
        max_characters: Longest text that is kept whole, counted before the replacement; at least 3.

    Returns:
        Text of one line that UTF-8 can encode and that no terminal interprets.
    """
    if len(text) > max_characters:
        head = max_characters * 2 // 3
        text = f"{text[:head]}…{text[len(text) - (max_characters - head - 1) :]}"
    if _PLAIN.match(text):
        return text
    return "".join(map(_make_character_visible, text))


def _make_character_visible(character: str) -> str:
    if unicodedata.category(character) in _HIDDEN_CATEGORIES:
        return f"<U+{ord(character):04X}>"
    return character


def format_count(count: int, noun: str) -> str:
    """Returns `count` with `noun` in singular or plural: "1 row", "1,801 rows"."""
    if count == 1:
        return f"1 {noun}"
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {plural}"
