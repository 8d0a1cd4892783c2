"""Pascal VOC: an XML file for each image, in Annotations, beside the images, or in any folder."""

from __future__ import annotations

import re

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import Evidence
from darkroom.manifest.sources.listing import Listing


def _is_voc(found: Evidence) -> bool:
    # labelImg writes attributes into it.
    return re.search(r"<annotation[\s>]", found.text) is not None


def _find(listing: Listing) -> list[str]:
    """Returns the first annotation alone: the reader takes all."""
    first = next(listing.find(FORMAT.is_it), None)
    return [first] if first else []


FORMAT = AnnotationForm(
    "an annotation of Pascal VOC",
    _is_voc,
    "Convert the folder that has it and the images: darkroom convert {folder} --format voc",
    mark="<",
    find=_find,
    of_folder=f"{__name__}.source:VocSource",
)
