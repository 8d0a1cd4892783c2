"""Folders of images: `<label>/<file>`, or `<split>/<label>/<file>` if all top names are splits."""

from __future__ import annotations

import os
from collections.abc import Iterator

from darkroom import storage
from darkroom.dataset import splits
from darkroom.dataset.journal import find_outputs
from darkroom.dataset.schema import Kind, Schema
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources.base import BadRow, Row
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

# Files with other endings (licences, notes, thumbnail databases) are not rows.
IMAGE_ENDINGS = frozenset(
    f".{name}"
    for name in "avif bmp gif heic heif jfif jpe jpeg jpg png tif tiff webp".split()  # noqa: SIM905
)


class FolderSource:
    """Reads a folder of images; see `Source`. Rows are numbered in the order of their paths.

    Attributes:
        ignored: Paths of files without an image's ending, relative to the folder.
        outputs: Paths, likewise, of outputs of conversions below it, finished or not: their files
            are not part of the source.
    """

    def __init__(self, path: str, schema: Schema | None) -> None:
        if schema is not None:
            raise UsageError(
                f"{path} is a folder, which has no columns.",
                "Use a schema with a file of rows only.",
            )
        self.name = path
        self.base = self.identity_base = path
        files, self.outputs = find_outputs(path)
        for name in self.outputs:
            progress.note(f"{storage.join(path, name)} is left out, because darkroom wrote it.")
        self._files = [f for f in files if os.path.splitext(f)[1].lower() in IMAGE_ENDINGS]
        self.ignored = sorted(set(files) - set(self._files))
        if not self._files:
            raise DataError(
                f"There is no image below {path}. It has {format_count(len(files), 'file')}, and "
                "no name has the ending of an image.",
                f"Known endings: {' '.join(sorted(IMAGE_ENDINGS))}. Convert other images to PNG.",
            )
        tops = {file.split("/")[0] for file in self._files if "/" in file}
        self._has_splits = bool(tops) and all(splits.parse_split(top) is not None for top in tops)
        if self._has_splits:
            self._check_empty_splits(tops)
        columns = [("image_uri", Kind.IMAGE), ("label", Kind.STRING_LABEL)]
        if self._has_splits:
            columns.insert(0, ("split", Kind.SPLIT))
        self.schema = Schema(tuple(columns))

    def _check_empty_splits(self, tops: set[str]) -> None:
        known = tops.union(self.outputs)
        names = (name for name in storage.list_folder(self.name) if name not in known)
        empty = [
            name
            for name in names
            if splits.parse_split(name) and storage.is_folder(storage.join(self.name, name))
        ]
        if empty:
            raise DataError(
                f"There is no image below {', '.join(storage.join(self.name, n) for n in empty)}, "
                "which has the name of a split.",
                "Put images into it, or delete the folder.",
            )

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields one row for each image."""
        depth = 3 if self._has_splits else 2
        layout = "<split>/<label>/<file>" if self._has_splits else "<label>/<file>"
        for row, file in enumerate(self._files, start=1):
            parts = file.split("/")
            if len(parts) != depth:
                known = [parts[0]] if self._has_splits else []
                detail = f"{file} is not in {layout}"
                yield BadRow(row, "outside_layout", detail, [*known, file, ""])
            elif self._has_splits:
                yield Row(row, [parts[0], file, parts[1]])
            else:
                yield Row(row, [file, parts[0]])
