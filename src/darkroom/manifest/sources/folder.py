"""Folders of images: `<label>/<file>`, or `<split>/<label>/<file>` if all top names are splits.

Folders below that of a label belong to it, unless that may be wrong: a folder with the name of a
split may be one, and a single folder around all others names no label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from darkroom import storage
from darkroom.dataset.read_as import BY_FOLDER, BY_HASH, ReadAs
from darkroom.dataset.schema import Columns, Kind, Schema
from darkroom.dataset.splits import find_split
from darkroom.errors import DataError, RejectError, UsageError
from darkroom.images.headers import IMAGE_ENDINGS
from darkroom.manifest.sources.base import Row, Source, Value
from darkroom.manifest.sources.layouts import check_parts, check_splits
from darkroom.manifest.sources.listing import Listing
from darkroom.options.source import (
    JOIN_SUBFOLDERS,
    REJECT_SUBFOLDERS,
    SPLIT_CLASS,
    TASK_CLASS,
)
from darkroom.runtime import progress
from darkroom.runtime.text import format_count
from darkroom.storage.files import find_skip_reason

_UNKNOWN_ENDING = "files without an ending of images"


class FolderSource(Source):
    """Reads a folder of images; see `Source`. Rows are numbered in the order of their paths.

    Attributes:
        ignored: Paths of files without an image's ending, relative to the folder.
        outputs: Paths, likewise, of outputs of conversions below it, finished or not: their files
            are not part of the source.
        label_depth: Number of folders, from the top to that of the label, in the path of an image.
    """

    has_columns = False

    def __init__(
        self,
        listing: Listing,
        columns: Columns,
        subfolders: str = JOIN_SUBFOLDERS,
        accept: Collection[str] = (),
    ) -> None:
        path = listing.path
        if columns.schema or columns.label_marks or columns.targets:
            raise UsageError(
                f"{path} is a folder, which has no columns.",
                "Say what columns hold with a file of rows only.",
            )
        self.name = path
        self.base = self.identity_base = path
        self.outputs = listing.outputs
        for name in self.outputs:
            progress.note(f"{storage.join(path, name)} is left out, because darkroom wrote it.")
        self._files, self.ignored = listing.images, sorted(listing.others)
        # What their names say is asked once for each, and not for each image.
        self._folders = {file.rpartition("/")[0] for file in self._files}
        around = (folder.split("/") for folder in self._folders)
        self._known = {"/".join(each[:depth]) for each in around for depth in (1, 2)}
        self._known.update(listing.outputs, (file for file in listing.files if "/" not in file))
        self._has_splits = self._find_splits()
        self.label_depth = 1 + self._has_splits
        self._is_wrapped = self._find_wrapped()
        self._is_strict = subfolders == REJECT_SUBFOLDERS or self._is_wrapped
        label = Kind.LABELS if columns.has_labels else Kind.STRING_LABEL
        split = [("split", Kind.SPLIT)] if self._has_splits else []
        self.schema = Schema((*split, ("image_uri", Kind.IMAGE), ("label", label)))
        self._labels = {folder: self._find_label(folder) for folder in self._folders}
        self._splits = {top: find_split(top) or "" for top in self._list_tops()}
        classes = sorted({*filter(None, self._labels.values())})
        if SPLIT_CLASS not in accept and not self._has_splits:
            check_splits(path, sorted(self._list_tops()))
        if TASK_CLASS not in accept:
            check_parts(listing, classes)
        if not self._files:
            raise DataError(
                f"There is no image below {path}. It has "
                f"{format_count(len(self.ignored), 'file')}, and "
                "no name has the ending of an image.",
                f"Known endings: {' '.join(sorted(IMAGE_ENDINGS))}. Convert other images to PNG.",
            )
        tops = self._list_tops() if self._has_splits else [""]
        empty = {name for top in tops for name in self._list_empty(top)} - {*classes}
        left_out = listing.left_out | {_UNKNOWN_ENDING: len(self.ignored)}
        self.read_as = ReadAs(
            "folder",
            files=0,
            layout=self._layout,
            splits=BY_FOLDER if self._has_splits else BY_HASH,
            left_out={name: count for name, count in sorted(left_out.items()) if count},
            empty_classes=tuple(
                each.encode(errors="backslashreplace").decode() for each in sorted(empty)
            ),
        )

    @property
    def _layout(self) -> str:
        return "<split>/<label>/<file>" if self._has_splits else "<label>/<file>"

    def _find_splits(self) -> bool:
        """Tells whether the top folders are splits.

        One that is not does not change that for several that are, if all of their images are in
        folders of labels.

        Raises:
            DataError: There is no image in the folder of a split.
        """
        tops = self._list_tops()
        named = {top: find_split(top) for top in tops if _is_split(top)}
        has_labels = all("/" in folder for folder in self._folders if folder.split("/")[0] in named)
        if not named or (len(named) < len(tops) and (len({*named.values()}) < 2 or not has_labels)):
            return False
        if empty := [*filter(_is_split, self._list_empty(""))]:
            raise DataError(
                f"There is no image below {', '.join(storage.join(self.name, n) for n in empty)}, "
                "which has the name of a split.",
                "Put images into it, or delete the folder.",
            )
        return True

    def _list_tops(self) -> set[str]:
        return {folder.split("/")[0] for folder in self._folders if folder}

    def _list_empty(self, top: str) -> Iterator[str]:
        """Yields the names of folders in a top folder, or beside it, that have no image."""
        folder = storage.join(self.name, top) if top else self.name
        for name in storage.list_folder(folder):
            path = f"{top}/{name}".lstrip("/")
            if path in self._known or find_skip_reason(name, is_folder=True):
                continue
            if storage.is_folder(storage.join(folder, name)):
                yield name

    def _split(self, folder: str) -> list[str]:
        """Returns the names of the folders in a path, without that of a split."""
        return folder.split("/")[self._has_splits :] if folder else []

    def _find_wrapped(self) -> bool:
        """Tells whether a single folder is around those of the labels, as in photos/cat/1.jpg."""
        found = list(map(self._split, self._folders))
        names = {folders[0] for folders in found if folders}
        return len(names) == 1 and all(len(folders) != 1 for folders in found)

    def _find_label(self, folder: str) -> str | None:
        """Returns the label of the files in a folder; None if its names do not say it."""
        folders = self._split(folder)
        if self._has_splits and not _is_split(folder.split("/")[0]):
            return None
        if len(folders) > 1 and (self._is_strict or any(map(_is_split, folders))):
            return None
        return folders[0] if folders else None

    def _explain(self, file: str) -> str:
        """Returns why the folders of a file do not say its label, if that is not seen at once."""
        top, *inside = file.split("/")[:-1] or [""]
        if self._has_splits and top and not _is_split(top):
            return f", as {top} is not a split"
        if self._is_wrapped and not self._has_splits:
            return f": convert {storage.join(self.name, top)}"
        if inside and _is_split(top):
            return f", and {top} is a split only where all other folders here are splits"
        return ""

    def rows(self) -> Iterator[Row]:
        """Yields one row for each image."""
        for row, file in enumerate(self._files, start=1):
            top = file.split("/")[0]
            split: list[Value] = [self._splits.get(top, "")] if self._has_splits else []
            label = self._labels[file.rpartition("/")[0]]
            if label is None:
                detail = f"{file} is not in {self._layout}{self._explain(file)}"
                yield Row(row, [*split, file, ""], RejectError("outside_layout", detail))
            else:
                yield Row(row, [*split, file, label])


def _is_split(name: str) -> bool:
    return find_split(name) is not None
