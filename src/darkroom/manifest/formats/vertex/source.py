"""Import files of Vertex AI: JSON Lines, one image a line, with one label, several, or boxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from darkroom.dataset.read_as import ReadAs
from darkroom.dataset.schema import Kind, Schema
from darkroom.errors import DataError, RejectError
from darkroom.manifest.formats.base import Annotated, AnnotationSource, place_in
from darkroom.manifest.formats.places import find_images
from darkroom.manifest.sources.jsonl import parse_line
from darkroom.manifest.sources.listing import Listing
from darkroom.manifest.sources.text import TextFile
from darkroom.options.manifest import ManifestOptions

_IMAGE, _LABELS = "imageGcsUri", "dataItemResourceLabels"
_ML_USE = "aiplatform.googleapis.com/ml_use"
_BOXES = "boundingBoxAnnotations"
_KINDS = {
    _BOXES: Kind.OBJECTS,
    "classificationAnnotation": Kind.STRING_LABEL,
    "classificationAnnotations": Kind.LABELS,
}
_UNREAD = frozenset(
    ("maskAnnotation", "segmentationAnnotation", "polygonAnnotations", "polylineAnnotations")
)
_CORNERS = ("xMin", "yMin", "xMax", "yMax")
_TYPES: dict[type, str] = {dict: "an object", list: "a list", str: "text"}


class VertexSource(AnnotationSource):
    """Reads an import file of Vertex AI; see `Source`.

    A line without a key for annotations is of an image at which nobody has looked.

    Raises:
        DataError: It has annotations of several kinds, or of one that darkroom does not read.
    """

    def __init__(self, path: str, options: ManifestOptions, listing: Listing | None = None) -> None:
        self._file = TextFile(path, options.source_encoding, newline="\n")
        self._place = find_images(path, self._read_names, options.image_dir, listing)
        keys = (key for _, found in self._lines() for key in _KINDS if key in found)
        self._key = next(keys, _BOXES)
        read_as = ReadAs("an import file of Vertex AI", encoding=options.source_encoding)
        super().__init__(path, self._place.folder, read_as, has_splits=True)
        if (kind := _KINDS[self._key]) is not Kind.OBJECTS:
            image, split, _ = self.schema.columns
            self.schema = Schema((image, split, ("label", kind)))

    def _read_names(self) -> Iterator[str]:
        found = (found.get(_IMAGE) for _, found in self._lines())
        return (name for name in found if isinstance(name, str))

    def images(self) -> Iterator[Annotated]:
        """Yields the image of each line."""
        for number, found in self._lines():
            yield self._read_line(number, found)

    def _lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yields the number of every line that is not blank, and its object.

        Where a line has none, the object has the problem in place of the path of the image.
        """
        for number, text in enumerate(self._file.lines(), start=1):
            if text.strip():
                found = parse_line(text)
                yield number, found if isinstance(found, dict) else {"fault": found}

    def _check_keys(self, number: int, found: dict[str, Any]) -> None:
        """Raises a `DataError` for annotations that are not as those of all others."""
        reads = f"darkroom reads {', '.join(_KINDS)}."
        if unread := found.keys() & _UNREAD:
            raise DataError(
                f"{self.name}, line {number} has {min(unread)}.", f"Leave them out: {reads}"
            )
        if others := found.keys() & _KINDS.keys() - {self._key}:
            raise DataError(
                f"{self.name}, line {number} has {min(others)}, and others {self._key}.",
                f"Put them into several files: {reads}",
            )

    def _read_line(self, number: int, found: dict[str, Any]) -> Annotated:
        self._check_keys(number, found)
        uri = found.get(_IMAGE)
        uri = self._place.resolve(uri) if isinstance(uri, str) else ""
        split, value = "", None
        try:
            if "fault" in found:
                raise RejectError("bad_value", found["fault"])
            value = _read_value(self._key, found.get(self._key))
            split = _as(str, _as(dict, found.get(_LABELS, {}), _LABELS).get(_ML_USE, ""), _ML_USE)
        except RejectError as error:
            return Annotated(
                uri, split, value, RejectError(error.reason, f"line {number}: {error}")
            )
        return Annotated(uri, split, value)


def _as(kind: type[Any], value: Any, name: str) -> Any:
    """Returns a value of JSON.

    Raises:
        RejectError: It is of another type.
    """
    if isinstance(value, kind):
        return value
    raise RejectError("bad_value", f"{name} is {value!r:.80}, expected {_TYPES[kind]}")


def _read_value(key: str, cell: Any) -> Any:
    """Returns the annotations of an image as their kind of column has them; None without any.

    Raises:
        RejectError: They have another form.
    """
    if cell is None:
        return None
    if _KINDS[key] is Kind.STRING_LABEL:
        return _read_label(cell)
    if _KINDS[key] is Kind.LABELS:
        return [*map(_read_label, _as(list, cell, key))]
    return place_in(1, 1, [*map(_read_object, _as(list, cell, key))])


def _read_label(annotation: Any) -> str:
    return str(_as(str, _as(dict, annotation, "an annotation").get("displayName"), "displayName"))


def _read_object(annotation: Any) -> Any:
    """Returns an object; what is none stays, and is a fault when it is parsed."""
    if not isinstance(annotation, dict):
        return annotation
    corners = [annotation.get(corner) for corner in _CORNERS]
    return {"label": annotation.get("displayName"), "box": corners}
