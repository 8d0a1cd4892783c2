"""HTML and Markdown in which text of the user never becomes markup."""

from __future__ import annotations

import base64
import html
import re

from darkroom.runtime.text import make_visible

_VOID_ELEMENTS = frozenset({"br", "img", "meta"})
_PICTURES = ("data:image/jpeg;base64,", "data:image/png;base64,")
_MARKDOWN_ACTIVE = re.compile(r"(?i)://|www\.|[\\`*_\[\]~$&<>|@]")
# Named ones: the viewer of Kubeflow shows others as they are written.
_MARKDOWN_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class Html(str):
    """Text that is HTML. All other text is escaped when it becomes part of HTML."""

    __slots__ = ()


def escape_html(text: str) -> Html:
    """Returns `text` as HTML without markup; invisible characters are made visible."""
    return text if isinstance(text, Html) else Html(html.escape(make_visible(text)))


def join_html(*parts: str | None) -> Html:
    """Joins HTML and text, escaping the text; None is left out."""
    return Html("".join(escape_html(part) for part in parts if part is not None))


def join_lines(text: str) -> Html:
    """Returns a text of several lines as HTML that ends them there, too."""
    first, *others = text.split("\n")
    return join_html(first, *(part for line in others for part in (element("br"), line)))


def element(name: str, /, *children: str | None, **attributes: str | None) -> Html:
    """Returns an element. Children and attributes that are not `Html` are escaped.

    Args:
        name: Name of the element, a constant.
        *children: Text or HTML inside the element; None is left out.
        **attributes: Attributes of the element; None is left out. A final underscore is dropped
            and others become hyphens, so that `class_` and `http_equiv` can be named.
    """
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID_ELEMENTS:
        return Html(f"<{name}{pairs}>")
    return Html(f"<{name}{pairs}>{join_html(*children)}</{name}>")


def _escape_attribute(value: str) -> str:
    if isinstance(value, Html):
        return value
    # A data URI is longer than any text that is shown to a person, so it is not cut.
    return html.escape(value if value.startswith(_PICTURES) else make_visible(value))


def escape_page(text: str) -> Html:
    """Returns a whole page as the value of an attribute, for a frame that shows it."""
    return Html(html.escape(text))


def encode_picture(data: bytes, kind: str = "png") -> str:
    """Returns a picture as the source of an `img`: its bytes as text. `kind` is png or jpeg."""
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def escape_markdown(text: str) -> str:
    """Returns `text` as Markdown, also GitHub's, without emphasis, links, HTML or ends of cells.

    Other text must come before it in its line: marks that count only at the start of a line
    (headings, lists) is left alone, so that file names stay readable.
    """
    return _MARKDOWN_ACTIVE.sub(_escape_active, make_visible(text))


def _escape_active(match: re.Match[str]) -> str:
    text = match[0]
    if len(text) > 1:  # "://" and "www.", which some renderers turn into links.
        return text.replace(":", "\\:").replace(".", "\\.")
    return _MARKDOWN_ENTITIES.get(text, "\\" + text)
