"""Reads HTML that darkroom makes: pages and cards."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from html.parser import HTMLParser
from typing import Any

import numpy as np

# Elements that are never closed.
_EMPTY = {"br", "img", "input", "meta"}


class Page(HTMLParser):
    """What is in a page; fails where elements are not closed in order.

    Attributes:
        elements: Tag and attributes of each element.
        text: What a person reads, with one space between words.
        code: The texts of what a browser runs or applies, by tag: `script` and `style`.
        blocks: The parsed blocks of JSON, by their id.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.code: dict[str, list[str]] = defaultdict(list)
        self.blocks: dict[str, Any] = {}
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []
        self.text = " ".join(self.text.split())

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def sources(self) -> list[str]:
        """The addresses of all that a browser loads or leads to."""
        values = [attributes for _, attributes in self.elements]
        return [each[name] for each in values for name in ("src", "href") if name in each]

    @property
    def policy(self) -> str:
        """What the page lets a browser load and run."""
        (policy,) = self.find("meta", http_equiv="Content-Security-Policy")
        return policy["content"]

    def find(self, tag: str, /, **attributes: str) -> list[dict[str, str]]:
        """Returns the attributes of the elements that have these: `class_`, `aria_label`."""
        wanted = {name.rstrip("_").replace("_", "-"): each for name, each in attributes.items()}
        found = [each for name, each in self.elements if name == tag]
        return [each for each in found if wanted.items() <= each.items()]

    def read_array(self, name: str) -> np.ndarray:
        """Returns a block that holds numbers."""
        block = self.blocks[name]
        return np.frombuffer(base64.b64decode(block["data"]), block["type"])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        tag, attributes = self.elements[-1] if self.elements else ("", {})
        if not self._open or self._open[-1] not in ("script", "style"):
            self.text += f" {data}"
        elif attributes.get("type") == "application/json":
            self.blocks[attributes["id"]] = json.loads(data)
        else:
            self.code[tag].append(data)
