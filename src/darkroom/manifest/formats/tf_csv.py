"""Lists with a row for each object, as in the tutorials of TensorFlow, known by their columns."""

from __future__ import annotations

from collections.abc import Iterator

from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.evidence import is_never
from darkroom.manifest.sources.listing import Listing


def _find(listing: Listing) -> Iterator[str]:
    from darkroom.manifest.sources.lists import find_lists

    return find_lists(listing, lambda file, schema: schema.objects is not None)


FORMAT = AnnotationForm(
    "a list with a row for each object",
    is_never,
    find=_find,
    of_file="darkroom.manifest.formats.object_rows:open_object_rows",
)
