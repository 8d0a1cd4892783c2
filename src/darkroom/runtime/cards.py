"""The HTML form of results in a notebook: small, without scripts, and nothing is loaded.

A card shows the values of a result's `to_dict()`. The text of the user is escaped by
`darkroom.runtime.markup`. Colors are translucent or those of the text, so that a card is readable
on a light and on a dark page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from darkroom.runtime.markup import Html, element, join_html, join_lines
from darkroom.runtime.style import CARD_STYLE
from darkroom.runtime.text import MAX_LISTED_ROWS, list_first

GOOD, FAIR, BAD = "good", "fair", "bad"
_MAX_CELL_ROWS = 3
_STYLE = element("style", Html(CARD_STYLE))


def make_card(title: str, values: Mapping[str, Any], *parts: str | None, tone: str = "") -> str:
    """Returns a card.

    Args:
        title: The result in a few words.
        values: The values of the result, as JSON knows them. Empty ones are left out. Rows of
            values, and numbers by two names, become separate tables.
        *parts: Texts and HTML between the title and the values; empty ones are left out.
        tone: `GOOD`, `FAIR` or `BAD`, the color of the title.
    """
    shown = {name: each for name, each in values.items() if each not in (None, "", (), [], {})}
    tables = {name: table for name, each in shown.items() if (table := _make_table(name, each))}
    facts = [_make_fact(name, each) for name, each in shown.items() if name not in tables]
    return str(
        element(
            "div",
            _STYLE,
            element("h4", title, class_=tone),
            *(each if isinstance(each, Html) else element("p", each) for each in parts if each),
            element("table", element("tbody", *facts)) if facts else None,
            *tables.values(),
            class_="darkroom-card",
        )
    )


def make_rows(header: Iterable[str], rows: Sequence[Sequence[Any]], count: int = 0) -> Html:
    """Returns the first rows as a table, and how many there are besides.

    Args:
        header: The name of each column.
        rows: Values as JSON knows them, or HTML.
        count: How many rows there are in all if `rows` has only the first ones.
    """
    head = element("tr", *(element("th", _name(each)) for each in header))
    body = (element("tr", *map(_make_cell, row)) for row in rows[:MAX_LISTED_ROWS])
    more = max(count, len(rows)) - min(len(rows), MAX_LISTED_ROWS)
    return join_html(
        element("table", element("thead", head), element("tbody", *body)),
        element("p", f"and {more:,} more") if more else None,
    )


def _name(name: str) -> str:
    return name.replace("_", " ")


def _make_table(name: str, value: Any) -> Html | None:
    """Returns the table of a value: rows with names, or numbers by two names; None for others."""
    if isinstance(value, list | tuple) and isinstance(value[0], Mapping):
        return make_rows(value[0], [list(each.values()) for each in value])
    if isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values()):
        names = dict.fromkeys(name for each in value.values() for name in each)
        rows = [[row, *(each.get(row) for each in value.values())] for row in names]
        return make_rows([name, *value], rows)
    return None


def _make_fact(name: str, value: Any) -> Html:
    return element("tr", element("td", _name(name)), _make_cell(value))


def _make_cell(value: Any) -> Html:
    if isinstance(value, Html):
        return element("td", value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return element("td", join_lines(_format(value)), **{"class_": "number"} if is_number else {})


def _format(value: Any) -> str:
    """Returns a value as text; each row of values is a line."""
    if isinstance(value, str) or value is None:
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        pairs = ((_name(name), _format(each)) for name, each in value.items())
        return ", ".join(" ".join(filter(None, pair)) for pair in pairs if pair[1])
    if isinstance(value, list | tuple):
        texts = [_format(each) for each in value]
        if not value or not isinstance(value[0], Mapping):
            return list_first(texts)
        more = len(texts) - _MAX_CELL_ROWS
        return "\n".join(texts[:_MAX_CELL_ROWS] + ([f"and {more:,} more"] if more > 0 else []))
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
