"""Folders that `datasets` of Hugging Face loads as `imagefolder`: images, and lists of them.

A list has the name `metadata` and a column `file_name`, relative to its folder. Splits are folders,
each with its own list.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from darkroom import storage
from darkroom.dataset.read_as import BY_COLUMN, BY_NAMES
from darkroom.dataset.schema import Kind, Schema
from darkroom.dataset.splits import find_split
from darkroom.errors import DataError
from darkroom.manifest.sources.base import BadRow, Row, Source
from darkroom.manifest.sources.forms import METADATA_FILES, read_evidence
from darkroom.manifest.sources.lists import open_list
from darkroom.manifest.sources.parquet import read_arrow_schema
from darkroom.manifest.sources.roots import check_found, list_roots
from darkroom.options.manifest import ManifestOptions
from darkroom.storage.uris import has_scheme

_OBJECTS = "objects"


class ImageFolderSource(Source):
    """Reads such a folder, or one of its lists; see `Source`.

    Raises:
        DataError: It has no list, or its lists have other columns.
    """

    def __init__(self, path: str, options: ManifestOptions) -> None:
        is_folder = storage.is_folder(path)
        self.name = path
        self.base = self.identity_base = path if is_folder else posixpath.dirname(path)
        paths = _find_lists(path, storage.list_folder(path)) if is_folder else [path]
        if not paths:
            raise DataError(
                f"{path} has no list of Hugging Face.",
                f"Expected one of {', '.join(METADATA_FILES)}.",
            )
        roots = list_roots(path, options) if is_folder else ()
        self._lists = [open_list(check_found(each, roots), options) for each in paths]
        first = self._lists[0]
        if odd := [
            each for each in self._lists if {*each.schema.columns} != {*first.schema.columns}
        ]:
            raise DataError(
                f"The columns of {odd[0].name} are {odd[0].schema.to_json()}, and those of "
                f"{first.name} {first.schema.to_json()}.",
                "Give the lists the same columns, or name those that all have with --columns "
                "(columns= in Python).",
            )
        self._has_splits = first.schema.split is None and posixpath.dirname(paths[0]) != self.base
        split = (("split", Kind.SPLIT),) if self._has_splits else ()
        self.schema = Schema((*split, *first.schema.columns))
        self.has_types = first.has_types
        how = BY_NAMES if self._has_splits else BY_COLUMN
        self.read_as = replace(first.read_as, files=len(paths), splits=how)

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields the rows of all lists, with their splits, and the paths of images from the top."""
        numbers, columns = count(1), self._lists[0].schema.columns
        image = [kind for _, kind in columns].index(Kind.IMAGE)
        for each in self._lists:
            folder = posixpath.dirname(each.name).removeprefix(self.base).lstrip("/")
            places = [each.schema.columns.index(column) for column in columns]
            for row in each.rows():
                values = [row.values[place] for place in places] if row.values else []
                if values:
                    values[image] = _join(folder, values[image])
                    values = [find_split(folder), *values] if self._has_splits else values
                yield row._replace(row=next(numbers), values=values)


def _join(folder: str, path: Any) -> Any:
    """Returns a path below a folder from above it; absolute ones, and empty ones, stay."""
    text = "" if path is None else str(path).strip()
    is_absolute = text.startswith("/") or has_scheme(text)
    return f"{folder}/{path}" if folder and text and not is_absolute else path


def is_image_folder(path: str, names: Sequence[str]) -> bool:
    """Tells whether a folder has lists, of which the first has objects."""
    lists = _find_lists(path, names)
    return bool(lists) and _has_objects(lists[0])


def _find_lists(path: str, names: Sequence[str]) -> list[str]:
    """Returns the list in a folder, or else those in its folders of splits."""
    splits = [storage.join(path, name) for name in names if find_split(name)]
    return _pick(path, names) or [
        found
        for folder in filter(storage.is_folder, splits)
        for found in _pick(folder, storage.list_folder(folder))
    ]


def _pick(folder: str, names: Sequence[str]) -> list[str]:
    return [storage.join(folder, name) for name in METADATA_FILES if name in names][:1]


def _has_objects(path: str) -> bool:
    """Tells whether a list has a column of objects."""
    if path.endswith(".parquet"):
        return _OBJECTS in read_arrow_schema(path).names
    found = read_evidence(path)
    return _OBJECTS in (found.header if path.endswith(".csv") else found.keys)
