"""Folders that `datasets` of Hugging Face loads as `imagefolder`: images, and lists of them.

A list has the name `metadata` and a column `file_name`, relative to its folder. Splits are folders,
each with its own list. Without objects, the folders of images are classes.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from darkroom.dataset.schema import Kind, Schema
from darkroom.manifest.formats.form import AnnotationForm
from darkroom.manifest.sources.base import Source
from darkroom.manifest.sources.evidence import METADATA_FILES, is_never
from darkroom.manifest.sources.listing import Listing
from darkroom.options.manifest import ManifestOptions


def _has_objects(file: str, schema: Schema) -> bool:
    return (
        posixpath.basename(file) in METADATA_FILES and Kind.OBJECTS in dict(schema.columns).values()
    )


def _find(listing: Listing) -> Iterable[str]:
    """Returns one list of each folder."""
    from darkroom.manifest.sources.lists import find_lists

    lists = find_lists(listing, _has_objects)
    return {posixpath.dirname(each): each for each in lists}.values()


def open_metadata(path: str, options: ManifestOptions, _: Listing | None = None) -> Source:
    """Returns the reader of a list, which is as that of any list."""
    from darkroom.manifest.sources.lists import open_list

    return open_list(path, options)


FORMAT = AnnotationForm(
    "a list of Hugging Face",
    is_never,
    find=_find,
    of_file=f"{__name__}:open_metadata",
)
