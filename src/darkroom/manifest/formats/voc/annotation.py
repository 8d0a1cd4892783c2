"""An annotation of Pascal VOC: one XML file for each image."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple
from xml.etree import ElementTree

from darkroom.errors import RejectError
from darkroom.manifest.formats.base import find_turned_hull

_CORNERS = ("xmin", "ymin", "xmax", "ymax")


class VocAnnotation(NamedTuple):
    """What an annotation says.

    Attributes:
        filename: The name of the image as it says it; empty if it says none.
        width: Width of the image in pixels; None if it does not say it.
        height: Its height.
        objects: Its objects, with corners in pixels; one that cannot be used has a `fault`.
    """

    filename: str
    width: float | None
    height: float | None
    objects: list[dict[str, Any]]


class _Tree(ElementTree.TreeBuilder):
    """Refuses what no annotation has: with a document type, a short file gives a text of GBs."""

    def doctype(self, name: str, public_id: str | None, system_id: str | None) -> None:
        """Raises ValueError."""
        raise ValueError("it has a document type (DOCTYPE), which no annotation has")


def parse_annotation(data: bytes, name: str, origin: int = 0) -> VocAnnotation:
    """Returns what an annotation says.

    Args:
        data: The bytes of the file.
        name: How messages name it.
        origin: The number of the first pixel of a row, 0 or 1; corners are given from 0.

    Raises:
        ValueError: It is not an annotation; the message has the line.
    """
    parser = ElementTree.XMLParser(target=_Tree())
    try:
        parser.feed(data)
        root = parser.close()
    except ElementTree.ParseError as error:
        raise ValueError(f"it is not XML: {error}") from None
    except LookupError as error:  # It names an encoding that does not exist.
        raise ValueError(f"{error}") from None
    if root.tag != "annotation":
        raise ValueError(f"it has <{root.tag:.40}>, expected <annotation>")
    objects = [
        {"id": f"{number} of {name}", **_parse_object(each, origin)}
        for number, each in enumerate(root.findall("object"), start=1)
    ]
    width, height = (_parse_side(root.findtext(f"size/{side}")) for side in ("width", "height"))
    if width is None or height is None:
        width = height = None
    return VocAnnotation(_find_text(root, "filename"), width, height, objects)


def _parse_object(element: ElementTree.Element, origin: int) -> dict[str, Any]:
    """Returns label, box and flag of an object, or its fault, with children in any order."""
    label = {"label": _find_text(element, "name")}
    box = element.find("bndbox")
    if box is None:
        kinds = ", ".join(each.tag for each in element)
        return {"fault": RejectError("bad_box", f"it has no bndbox, but {kinds:.80}"), **label}
    texts = [_find_text(box, corner) for corner in _CORNERS]
    try:
        corners = [float(text) - origin for text in texts]
        if turn := _find_turn(element):
            xmin, ymin, xmax, ymax = corners
            corners = find_turned_hull((xmin, ymin, xmax - xmin, ymax - ymin), turn)
    except ValueError:
        return {"fault": RejectError("bad_box", f"its corners are {texts!r:.120}"), **label}
    said = {"box": corners, "difficult": _find_text(element, "difficult") or "0"}
    return {**label, **said, "rotation": turn} if turn else {**label, **said}


def _find_turn(element: ElementTree.Element) -> float:
    """Returns by how many degrees CVAT turned the box of an object about its middle."""
    attributes = element.find("attributes")
    for each in () if attributes is None else attributes.findall("attribute"):
        if _find_text(each, "name") == "rotation":
            with suppress(ValueError):  # An attribute of the user may have this name.
                return float(_find_text(each, "value"))
    return 0.0


def _find_text(element: ElementTree.Element, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _parse_side(text: str | None) -> float | None:
    """Returns a side of the image; None for 0, which stands for an unknown one, and no number."""
    try:
        side = float(text or 0)
    except ValueError:
        return None
    return side if 0 < side < float("inf") else None
