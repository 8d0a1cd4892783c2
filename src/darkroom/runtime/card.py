"""The card of a result in a notebook.

A card is small, has no scripts, and loads nothing. The text of the user is escaped by
`darkroom.runtime.markup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.result import Fact, Outcome, ResultRow
from darkroom.runtime.style import CARD_STYLE
from darkroom.runtime.table import Table
from darkroom.runtime.text import MAX_LISTED_ROWS


def make_card(outcome: Outcome) -> str:
    """Returns a result as HTML."""
    style = element("style", Html(CARD_STYLE))
    title = element("h4", outcome.title, class_=outcome.tone or None)
    body = join_html(*_make_blocks(outcome.rows), *outcome.more)
    return str(element("div", style, title, body, class_="darkroom-card"))


def _make_blocks(rows: Iterable[ResultRow]) -> Iterator[Html]:
    """Yields sentences, tables, and a table of the facts that follow each other."""
    facts: list[Fact] = []
    for row in (*rows, ""):
        if isinstance(row, Fact):
            facts.append(row)
            continue
        if facts:
            yield from _make_facts(facts)
            facts = []
        if isinstance(row, list):
            yield from _make_blocks(row[:MAX_LISTED_ROWS])
            more = len(row) - MAX_LISTED_ROWS
            yield from _make_blocks([f"and {more:,} more" if more > 0 else ""])
        elif isinstance(row, Table):
            yield row.shorten(MAX_LISTED_ROWS).to_html()
        elif row:
            yield element("p", row)


def _make_facts(facts: Sequence[Fact]) -> Iterator[Html]:
    yield Table("", (), [(each.name.strip(), each.value) for each in facts]).to_html()
    yield from (each.table.to_html() for each in facts if each.table)
