"""YOLO: a text file with boxes for each image, and data.yaml, which names the classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from darkroom.manifest.formats.form import Form
from darkroom.manifest.sources.evidence import Evidence
from darkroom.manifest.sources.listing import Listing

# A class, and a box or the corners of a polygon.
_LINE = re.compile(r"\d+(\s+-?\d+(\.\d+)?([eE]-?\d+)?){4,}")
# Of data.yaml, or of the .data file of darknet.
_SETTING = re.compile(r"(names|nc):|names *=")


def _is_yolo(found: Evidence) -> bool:
    is_settings = any(map(_SETTING.match, found.lines))
    return is_settings or bool(found.lines and all(map(_LINE.fullmatch, found.lines)))


def _find(listing: Listing) -> Iterator[str]:
    """Yields the files that name classes: data.yaml, or names alone where there are label files."""
    from darkroom.manifest.formats.yolo.files import has_labels
    from darkroom.manifest.formats.yolo.settings import is_class_file, list_settings

    yield from list_settings(listing)
    classes = [*filter(is_class_file, listing.others)]
    if classes and has_labels(listing):
        yield from classes


FORMAT = Form(
    "a file of YOLO",
    _is_yolo,
    "Put data.yaml, or classes.txt with a name of a class in each line, into the folder of the "
    "dataset, and convert that with --format yolo.",
    find=_find,
    of_file=f"{__name__}.source:YoloSource",
    of_folder=f"{__name__}.source:YoloSource",
)
