"""The HTML form of results in a notebook: small, without scripts, and nothing is loaded.

The text of the user is escaped by `darkroom.runtime.markup`. Colors are translucent or those of the
text, so that a card is readable on a light and on a dark page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from darkroom.runtime.class_table import (
    NUM_LARGEST,
    ClassCounts,
    choose_classes,
    count_totals,
    list_classes,
)
from darkroom.runtime.markup import Html, element, join_html
from darkroom.runtime.text import format_count

GOOD, FAIR, BAD = "good", "fair", "bad"
MAX_ROWS = 5
# A text of this length is one line of its cell.
_SHORT_CHARACTERS = 20
# Notebooks have rules of their own for tables, which are more specific than those of a class.
_STYLE = Html(
    "<style>"
    ".darkroom-card{font:13px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;"
    "max-width:860px;padding:4px 0 6px}"
    ".darkroom-card h4{font-size:15px;font-weight:600;margin:0 0 4px}"
    ".darkroom-card .good{color:#2f8f57}.darkroom-card .fair{color:#b87800}"
    ".darkroom-card .bad{color:#d0443a}"
    ".darkroom-card p{margin:6px 0 0}.darkroom-card .soft{opacity:.65}"
    ".darkroom-card table{border-collapse:collapse;margin:8px 0 0;border:0;width:auto;"
    "font-size:13px}"
    ".darkroom-card tr,.darkroom-card tbody tr:nth-child(odd){background:none}"
    ".darkroom-card th,.darkroom-card td{text-align:left!important;vertical-align:top;border:0;"
    "padding:2px 20px 2px 0;max-width:460px;overflow-wrap:anywhere;unicode-bidi:isolate;"
    "white-space:normal}"
    ".darkroom-card td.short,.darkroom-card th{white-space:nowrap}"
    ".darkroom-card th{font-weight:500;opacity:.65}"
    ".darkroom-card tbody tr{border-top:1px solid #8883}"
    ".darkroom-card td.number{text-align:right!important;font-variant-numeric:tabular-nums;"
    "white-space:nowrap}"
    ".darkroom-card td.inner{padding-left:16px}"
    ".darkroom-card td.bar{min-width:150px}"
    ".darkroom-card td.bar i{display:inline-block;height:9px;background:#6f9bc4;border-radius:2px}"
    ".darkroom-card code{font-size:12px;background:none;padding:0;color:inherit;"
    "unicode-bidi:isolate}"
    ".darkroom-card img{max-width:100%;margin-top:8px}"
    "</style>"
)


def make_card(title: str, *parts: str | None, tone: str = "") -> str:
    """Returns a card: its title in the color of its tone, and what is below it."""
    head = element("h4", title, class_=tone) if tone else element("h4", title)
    return str(element("div", _STYLE, head, *parts, class_="darkroom-card"))


def make_facts(facts: Mapping[str, int | str]) -> Html:
    """Returns names with their values in two columns; numbers are aligned.

    A name that begins with spaces is indented: it is a part of the one before it.
    """
    rows = (element("tr", _make_name(name), _make_value(each)) for name, each in facts.items())
    return element("table", element("tbody", *rows))


def _make_name(name: str) -> Html:
    # A browser leaves out spaces at the start.
    return element("td", name.strip(), **({"class_": "inner"} if name.startswith(" ") else {}))


def _make_value(value: int | str) -> Html:
    if not isinstance(value, str):
        return element("td", f"{value:,}", class_="number")
    short = {"class_": "short"} if len(value) <= _SHORT_CHARACTERS else {}
    return element("td", value, **short)


def make_rows(header: Sequence[str], rows: Iterable[Sequence[str | int]], count: int = 0) -> Html:
    """Returns a table, and how many rows it leaves out if there are `count` in all."""
    body = [element("tr", *map(_make_value, row)) for row in rows]
    head = element("thead", element("tr", *(element("th", name) for name in header)))
    table = element("table", head, element("tbody", *body))
    more = count - len(body)
    return join_html(table, make_note(f"and {more:,} more") if more > 0 else None)


def make_note(text: str) -> Html:
    """Returns a paragraph that is less important than the others."""
    return element("p", text, class_="soft")


def make_path(name: str, path: str) -> Html:
    """Returns the path of a file with what it is."""
    return element("p", f"{name} ", element("code", path))


def make_class_table(classes: ClassCounts, labels: Sequence[str]) -> Html | None:
    """Returns the records of the largest and the smallest classes with bars; None without any."""
    names = list_classes(classes, labels)
    if not names or not classes:
        return None
    totals = count_totals(classes, names)
    largest = max(*totals.values(), 1)
    rows = [
        element(
            "tr",
            element("td", name),
            *(_make_value(counts.get(name, 0)) for counts in classes.values()),
            element("td", _make_bar(totals[name] / largest), class_="bar"),
        )
        for name in choose_classes(names, totals)
    ]
    if more := len(names) - len(rows):
        between = element("td", f"and {more:,} more between these", class_="soft")
        rows.insert(NUM_LARGEST, element("tr", between))
    head = (element("th", name) for name in (format_count(len(names), "label"), *classes, ""))
    return element("table", element("thead", element("tr", *head)), element("tbody", *rows))


def _make_bar(share: float) -> Html:
    return element("i", style=f"width:{round(140 * share)}px")
