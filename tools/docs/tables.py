"""Tables and text of Markdown pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; cells are Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(_fit(cell) for cell in line) + " |\n" for line in lines)


def _fit(cell: str) -> str:
    return " ".join(re.sub(r"(?<!\\)\|", r"\\|", cell).split())


def escape(text: str) -> str:
    """Returns plain text as Markdown that shows it unchanged; options and `this` are code."""
    marked = re.sub(r"(?<![\w`-])(--?[a-z][\w-]*)", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", marked)
    parts[::2] = [re.sub(r"([*_<>\[\]])", r"\\\1", part) for part in parts[::2]]
    return "".join(parts)
