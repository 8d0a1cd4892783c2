"""Reads the label map that a user gives, in each form that tools write."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from darkroom.dataset.labels import read_labels
from darkroom.errors import DataError
from darkroom.options.manifest import ManifestOptions, resolve_roots
from darkroom.runtime import by_name

_YAML = re.compile(r"^names\s*:", re.MULTILINE)
_ITEM = re.compile(r"^[ \t]*item\s*:?\s*[{<]", re.MULTILINE)
# Of a text of protocol buffers: comments, fields with their values, and messages in messages.
_TOKEN = re.compile(
    r"""\#[^\n]* | (?P<open>[{<]) | (?P<close>[}>]) | \b(?P<field>\w+)\s*:\s*
    (?P<value> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | [^\s{}<>\#,;]+)""",
    re.VERBOSE | re.DOTALL,
)


def resolve(options: ManifestOptions) -> ManifestOptions:
    """Returns the options for rows that are read here: labels read, links in roots followed.

    Raises:
        DataError: The label map cannot be used.
        StorageError: It cannot be read.
        UsageError: It is not a label map, or an allowed root is not a folder.
    """
    return replace(resolve_labels(options), allowed_roots=resolve_roots(options.allowed_roots))


def resolve_labels(options: ManifestOptions) -> ManifestOptions:
    """Returns the options with the labels that are in the file `label_map` now.

    Raises:
        DataError: The file is not text, or not what its form says.
        StorageError: It cannot be read.
        UsageError: It is not a label map.
    """
    if options.label_map is None:
        return options
    return replace(options, labels=_read_label_map(options.label_map), label_map=None)


def _read_label_map(path: str) -> tuple[str, ...]:
    """Returns the labels in a file: one a line, or those of data.yaml, COCO or TensorFlow."""
    # Most options have no label map, and need no readers.
    from darkroom.manifest.classes import order_names
    from darkroom.manifest.formats import load_format
    from darkroom.manifest.sources.evidence import read_evidence

    names: Mapping[Any, str]
    start = ""
    # What is wrong with the file is said where all of it is read.
    with suppress(OSError):
        start = read_evidence(path).text
    if start.lstrip().startswith("{"):
        names = by_name.load_place(load_format("coco").of_names)(path)
    elif _YAML.search(start):
        names = by_name.load_place(load_format("yolo").of_names)(path)
    elif _ITEM.search(start):
        names = _parse_items("\n".join(read_labels(path)), path)
    else:
        return tuple(read_labels(path))
    return tuple(dict.fromkeys(order_names(names).values()))


def _parse_items(text: str, path: str) -> Mapping[Any, str]:
    """Returns the names of the items of a label map of TensorFlow by their ids."""
    names: dict[Any, str] = {}
    depth, item = 0, dict[str, str]()
    for token in _TOKEN.finditer(text):
        if token["open"]:
            depth += 1
            item = {} if depth == 1 else item
        elif token["field"] and depth == 1:
            item[token["field"]] = token["value"]
        elif token["close"]:
            depth -= 1
            if depth == 0:
                number, name = _parse_item(item)
                if names.setdefault(number, name) != name or not name:
                    raise DataError(
                        f"The label file {path} has an item without a name, or without an id of "
                        f"its own: {item}.",
                        "Write each item as item { id: 1 name: 'cat' }.",
                    )
    return names


def _parse_item(item: Mapping[str, str]) -> tuple[int, str]:
    """Returns the id and the name of an item; an empty name if it lacks one of them."""
    # As TensorFlow shows it.
    quoted = item.get("display_name", item.get("name", ""))
    with suppress(KeyError, ValueError):
        # An escape is a byte of UTF-8.
        name = quoted[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
        return int(item["id"]), name
    return 0, ""
