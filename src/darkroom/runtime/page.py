"""Pages without scripts, that load nothing: their parts, each also as Markdown.

A report, the page of a model and a page of Kubeflow's UI are lists of such parts. All text of the
user is escaped by `darkroom.runtime.markup`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from darkroom.runtime.markup import Html, element, escape_markdown, join_html
from darkroom.runtime.style import PAGE_STYLE
from darkroom.runtime.table import Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class PagePart(NamedTuple):
    """A part of a page.

    Attributes:
        html: It as HTML; empty for what Markdown alone shows.
        markdown: It as Markdown; empty for what only a page shows, as a picture.
    """

    html: Html
    markdown: str = ""


class Page(NamedTuple):
    """A page.

    Attributes:
        title: Its title.
        parts: Its parts; None is left out.
        style: What is added to the style sheet. It has no text of the user.
    """

    title: str
    parts: Iterable[PagePart | None]
    style: str = ""

    def to_html(self) -> str:
        """Returns it as a file of HTML."""
        main = element("main", *(part.html for part in self.parts if part))
        return make_frame(self.title, main, PAGE_STYLE + self.style)

    def to_markdown(self) -> str:
        """Returns it as a file of Markdown."""
        texts = (part.markdown for part in self.parts if part)
        title = f"# {escape_markdown(self.title)}"
        return "\n\n".join([title, *filter(None, texts)]) + "\n"


def make_frame(title: str, body: Html, style: str, policy: str = _POLICY) -> str:
    """Returns a file of HTML, whose policy keeps browsers from loading anything."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=Html(policy)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Html(style)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"


def make_header(
    kicker: str,
    verdict: str,
    tone: str,
    tiles: Iterable[tuple[str, str]],
    *notes: str,
    markdown: str = "",
) -> PagePart:
    """Returns the head of a page.

    Args:
        kicker: What the page is about.
        verdict: The most important sentence.
        tone: Its color: good, fair or bad.
        tiles: The most important numbers, and what they are.
        *notes: Sentences that help to read them; empty ones are left out.
        markdown: Verdict and numbers in Markdown, where they are not tiles.
    """
    html = element(
        "header",
        element("p", f"darkroom · {kicker}", class_="kicker"),
        element("h1", verdict, class_=f"verdict {tone}"),
        make_tiles(tiles).html,
    )
    texts = [make_note(note) for note in notes if note]
    return PagePart(
        join_html(html, *(text.html for text in texts)),
        "\n\n".join(filter(None, [markdown, *(text.markdown for text in texts)])),
    )


def make_tiles(tiles: Iterable[tuple[str, str]]) -> PagePart:
    """Returns numbers, each above what it is."""
    made = (
        element("div", element("b", number), element("span", name), class_="tile")
        for number, name in tiles
    )
    return PagePart(element("div", *made, class_="tiles"))


def make_text(text: str, class_: str = "") -> PagePart:
    """Returns a paragraph."""
    return PagePart(element("p", text, class_=class_ or None), escape_markdown(text))


def make_note(text: str) -> PagePart:
    """Returns a paragraph that is less important."""
    return make_text(text, "note")


def make_table(table: Table, class_: str = "") -> PagePart | None:
    """Returns a table without its title; None if it is empty."""
    return PagePart(table.to_html(class_), table.to_markdown()) if table.rows else None


def make_section(title: str, *parts: PagePart | None) -> PagePart | None:
    """Returns parts below a title; None without any part."""
    found = [part for part in parts if part]
    if not found:
        return None
    texts = [part.markdown for part in found if part.markdown]
    markdown = "\n\n".join([f"## {escape_markdown(title)}", *texts]) if texts else ""
    bodies = [part.html for part in found if part.html]
    html = element("section", element("h2", title), *bodies) if bodies else Html("")
    return PagePart(html, markdown)


def make_figures(figures: Iterable[Html | None], class_: str = "figures") -> PagePart:
    """Returns charts or pictures side by side."""
    return PagePart(element("div", *figures, class_=class_))
