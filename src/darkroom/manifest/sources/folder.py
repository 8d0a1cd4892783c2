"""Folders of images: `<label>/<file>`, or `<split>/<label>/<file>` if all top names are splits.

Folders below that of a label belong to it, unless that may be wrong: a folder with the name of a
split may be one, and a single folder around all others names no label.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from darkroom import storage
from darkroom.dataset import splits
from darkroom.dataset.journal import find_outputs
from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.errors import DataError, UsageError
from darkroom.manifest.sources.base import BadRow, Row, Source
from darkroom.options.source import JOIN_SUBFOLDERS, REJECT_SUBFOLDERS
from darkroom.runtime import progress
from darkroom.runtime.text import format_count

# Files with other endings (licences, notes, thumbnail databases) are not rows.
IMAGE_ENDINGS = frozenset(
    f".{name}"
    for name in "avif bmp gif heic heif jfif jpe jpeg jpg png tif tiff webp".split()  # noqa: SIM905
)


class FolderSource(Source):
    """Reads a folder of images; see `Source`. Rows are numbered in the order of their paths.

    Attributes:
        ignored: Paths of files without an image's ending, relative to the folder.
        outputs: Paths, likewise, of outputs of conversions below it, finished or not: their files
            are not part of the source.
        label_depth: Number of folders, from the top to that of the label, in the path of an image.
    """

    def __init__(self, path: str, columns: Columns, subfolders: str = JOIN_SUBFOLDERS) -> None:
        if columns.schema or columns.label_marks or columns.targets:
            raise UsageError(
                f"{path} is a folder, which has no columns.",
                "Say what columns hold with a file of rows only.",
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
        self._has_splits = bool(tops) and all(map(_is_split, tops))
        if self._has_splits:
            self._check_empty_splits(tops)
        self.label_depth = 1 + self._has_splits
        self._is_strict = subfolders == REJECT_SUBFOLDERS or self._is_wrapped()
        label = Kind.LABELS if columns.has_labels else Kind.STRING_LABEL
        found = [("image_uri", Kind.IMAGE), ("label", label)]
        if self._has_splits:
            found.insert(0, ("split", Kind.SPLIT))
        self.schema = Schema(tuple(found))

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

    def _list_folders(self, file: str) -> list[str]:
        """Returns the names of the folders of a file, without that of its split."""
        return file.split("/")[self._has_splits : -1]

    def _is_wrapped(self) -> bool:
        """Tells whether a single folder is around those of the labels, as in photos/cat/1.jpg."""
        found = [self._list_folders(file) for file in self._files]
        names = {folders[0] for folders in found if folders}
        return len(names) == 1 and all(len(folders) != 1 for folders in found)

    def _find_label(self, file: str) -> str | None:
        """Returns the label of a file; None if its folders do not say it."""
        folders = self._list_folders(file)
        if len(folders) > 1 and (self._is_strict or any(map(_is_split, folders))):
            return None
        return folders[0] if folders else None

    def rows(self) -> Iterator[Row | BadRow]:
        """Yields one row for each image."""
        layout = "<split>/<label>/<file>" if self._has_splits else "<label>/<file>"
        for row, file in enumerate(self._files, start=1):
            split = [file.split("/")[0]] if self._has_splits else []
            label = self._find_label(file)
            if label is None:
                detail = f"{file} is not in {layout}"
                yield BadRow(row, "outside_layout", detail, [*split, file, ""])
            else:
                yield Row(row, [*split, file, label])


def _is_split(name: str) -> bool:
    return splits.parse_split(name) is not None
