"""Readers of annotations of boxes, which other tools wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from darkroom import storage
from darkroom.errors import UsageError
from darkroom.manifest.formats import coco, voc, yolo
from darkroom.manifest.formats.hugging_face import ImageFolderSource, is_image_folder
from darkroom.manifest.formats.label_studio import LabelStudioSource
from darkroom.manifest.formats.object_rows import AutoMLSource, open_object_rows
from darkroom.manifest.formats.vertex import VertexSource
from darkroom.manifest.sources.base import Source
from darkroom.options.manifest import ManifestOptions


class Format(NamedTuple):
    """A format of annotations.

    Attributes:
        open: Returns the reader of a file or a folder.
        is_layout: Tells whether a folder is a dataset of the format, by its path and the names
            directly in it; few further folders are looked into.
        takes: What a source of it is: a file, a folder, or either of them.
    """

    open: Callable[[str, ManifestOptions], Source]
    is_layout: Callable[[str, Sequence[str]], bool] = lambda path, names: False
    takes: str = "a file or a folder"


# By their names in `--format`. Files are known by their content: `manifest/sources/forms.py`.
FORMATS: Mapping[str, Format] = {
    "coco": Format(coco.CocoSource, coco.is_layout),
    "tf_csv": Format(open_object_rows, takes="a file"),
    "vertex": Format(VertexSource, takes="a file"),
    "automl": Format(AutoMLSource, takes="a file"),
    "label_studio": Format(LabelStudioSource, takes="a file"),
    "hugging_face": Format(ImageFolderSource, is_image_folder),
    "voc": Format(voc.VocSource, voc.is_layout, "a folder"),
    "yolo": Format(yolo.YoloSource, yolo.is_layout),
}


def open_format(name: str, path: str, options: ManifestOptions) -> Source:
    """Returns the reader of annotations.

    Args:
        name: The name of their format.
        path: The file or the folder that has them.
        options: How they are read.

    Raises:
        UsageError: A format of files is in a folder, or the other way round.
        DataError: They cannot be read; see the reader.
        OSError: The same.
    """
    found = "a folder" if storage.is_folder(path) else "a file"
    if found not in FORMATS[name].takes:
        takes = FORMATS[name].takes
        raise UsageError(
            f"{path} is {found}, and a source of the format {name} is {takes}.",
            f"Give {takes.replace('a ', 'the ')} with the annotations.",
        )
    return FORMATS[name].open(path, options)


def find_layout(folder: str) -> str:
    """Returns the name of the format of which a folder is a dataset; empty for none.

    Raises:
        OSError: It cannot be read.
    """
    names = storage.list_folder(folder)
    return next((name for name, each in FORMATS.items() if each.is_layout(folder, names)), "")
