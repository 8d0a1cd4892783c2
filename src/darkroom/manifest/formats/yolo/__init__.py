"""YOLO: a text file with boxes for each image, and data.yaml, which names the classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import Evidence
from darkroom.manifest.sources.listing import Listing

# A class, and a box or the corners of a polygon; some tools write 0.0 for 0, or decimal commas.
_LINE = re.compile(r"\d+(\.0+)?(\s+-?(\d+([.,]\d*)?|[.,]\d+)([eE]-?\d+)?){4,}")
# Of data.yaml, or of the .data file of darknet.
_SETTING = re.compile(r"(names|nc):|names *=")


def _is_yolo(found: Evidence) -> bool:
    return any(map(_SETTING.match, found.lines)) or (bool(found.lines) and _is_label(found))


def _is_label(found: Evidence) -> bool:
    # Nothing is in some images.
    return all(map(_LINE.fullmatch, found.lines))


def _has_labels(listing: Listing) -> bool:
    """Tells whether most of the files that may be label files by their names are such."""
    from darkroom.manifest.formats.yolo.files import list_likely_labels

    found = [_is_label(listing.read_evidence(file)) for file in list_likely_labels(listing)]
    return 2 * sum(found) > len(found)


def _find(listing: Listing) -> Iterator[str]:
    """Yields the files that name classes: data.yaml, or names alone where there are label files."""
    from darkroom.manifest.formats.yolo.settings import is_class_file, list_settings

    yield from list_settings(listing)
    classes = [*filter(is_class_file, listing.others)]
    if classes and _has_labels(listing):
        yield from classes


FORMAT = AnnotationForm(
    "a file of YOLO",
    _is_yolo,
    "Put data.yaml, or classes.txt with a name of a class in each line, into the folder of the "
    "dataset, and convert that with --format yolo.",
    mark="",
    find=_find,
    of_file=f"{__name__}.source:YoloSource",
    of_folder=f"{__name__}.source:YoloSource",
    of_names=f"{__name__}.settings:read_names",
)
