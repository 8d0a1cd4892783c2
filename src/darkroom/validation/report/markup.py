"""Builds HTML and Markdown in which foreign text can only ever be text."""

from __future__ import annotations

import html
import re

from darkroom.runtime.text import make_visible

_VOID_ELEMENTS = frozenset({"br", "img", "meta"})
_MARKDOWN_ACTIVE = re.compile(r"(?i)://|www\.|[\\`*_\[\]~$&<>|@]")
_MARKDOWN_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "@": "&#64;"}


class Html(str):
    """Text that is HTML already; every other text is escaped when it becomes part of HTML."""

    __slots__ = ()


def escape_html(text: str) -> Html:
    """Returns `text` as HTML: nothing in it is markup, and its invisible characters are shown."""
    return text if isinstance(text, Html) else Html(html.escape(make_visible(text)))


def join_html(*parts: str | None) -> Html:
    """Joins HTML and text, escaping the text; None is left out."""
    return Html("".join(escape_html(part) for part in parts if part is not None))


def element(name: str, /, *children: str | None, **attributes: str) -> Html:
    """Returns an element; children and values of attributes that are not `Html` are escaped.

    Args:
        name: Its name, a constant.
        *children: Text or HTML inside it; None is left out.
        **attributes: Its attributes; a final underscore is dropped and others become hyphens, so
            that `class_` and `http_equiv` can be named.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape_attribute(value)}"'
        for key, value in attributes.items()
    )
    if name in _VOID_ELEMENTS:
        return Html(f"<{name}{pairs}>")
    return Html(f"<{name}{pairs}>{join_html(*children)}</{name}>")


def _escape_attribute(value: str) -> str:
    # A data URI is longer than any text that a person is shown.
    return html.escape(
        value if value.startswith("data:image/jpeg;base64,") else make_visible(value)
    )


def escape_markdown(text: str) -> str:
    """Returns `text` as Markdown, GitHub's too: no emphasis, link, HTML or end of a table cell.

    It must stand after other text of its line: what is active only at a line's start (headings,
    lists) is left alone, so that file names stay readable.
    """
    return _MARKDOWN_ACTIVE.sub(_escape_active, make_visible(text))


def _escape_active(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) > 1:  # "://" and "www.", which some renderers turn into links.
        return text.replace(":", "&#58;").replace(".", "&#46;")
    return _MARKDOWN_ENTITIES.get(text, "\\" + text)
