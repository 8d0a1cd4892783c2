"""Parts of pages without scripts, that load nothing and escape all text."""

from __future__ import annotations

from collections.abc import Sequence

from darkroom.runtime.markup import Html, element

_CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def make_page(title: str, style: str, *sections: str | None) -> str:
    """Returns a page.

    Args:
        title: Its title.
        style: Its style sheet, which has no text of the user.
        *sections: Its content; None is left out.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_CONTENT_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(style)),
    )
    body = element("body", element("main", *sections))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def make_more(text: str) -> Html:
    """Returns a line about the rows that a table leaves out."""
    return element("p", text, class_="more")


def make_table(header: Sequence[str], rows: Sequence[Sequence[str]], class_: str = "") -> Html:
    """Returns a table of texts and HTML."""
    head = element("tr", *(element("th", name) for name in header))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    table = element("table", element("thead", head), element("tbody", *body), class_=class_)
    return element("div", table, class_="scroll")


def make_bar(count: int, largest: int, tone: str = "") -> Html:
    """Returns a number with a bar, as long as its share of the largest."""
    percent = 100 * count / max(largest, 1)
    bar = element("b", element("i", style=f"width:{percent:.1f}%", class_=tone))
    return element("div", element("span", f"{count:,}"), bar, class_="bar" if count else "bar zero")
