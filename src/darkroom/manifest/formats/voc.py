"""Pascal VOC: an XML file for each image, in Annotations, beside the images, or in any folder."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from darkroom import storage
from darkroom.dataset.journal import find_outputs
from darkroom.dataset.read_as import BY_LISTS, BY_NAMES, ReadAs
from darkroom.dataset.splits import find_split
from darkroom.errors import DataError
from darkroom.manifest.formats.base import Annotated, AnnotationSource, Fault, place_in
from darkroom.manifest.formats.files import read_files
from darkroom.manifest.formats.places import SAMPLE_NAMES, find_images
from darkroom.manifest.formats.voc_annotation import Annotation, parse_annotation
from darkroom.manifest.formats.voc_files import (
    ANNOTATIONS,
    IMAGES,
    Images,
    find_stem,
    name_listed,
    read_splits,
)
from darkroom.manifest.sources.folder import is_image_name
from darkroom.manifest.sources.forms import MAX_FILES, is_voc, read_evidence
from darkroom.manifest.sources.roots import list_roots
from darkroom.options.manifest import ManifestOptions

_ENDING = ".xml"
_MASKS = re.compile(r"(.*/)?Segmentation(Class|Object)/")
_USUAL_FOLDERS = (ANNOTATIONS, "annotations", "xml", "xmls", "labels")


class VocSource(AnnotationSource):
    """Reads a folder of annotations of Pascal VOC; see `AnnotationSource`.

    Args:
        path: The folder.
        options: How it is read.

    Raises:
        DataError: It has no annotation, or none of their images is found.
        OSError: It cannot be read.
    """

    def __init__(self, path: str, options: ManifestOptions) -> None:
        self._folder, self._origin = path, options.voc_origin
        files, _ = find_outputs(path)
        self._roots = list_roots(path, options)
        self._splits = read_splits(path, files, self._roots)
        annotations = [file for file in files if file.lower().endswith(_ENDING)]
        self._files = [*filter(self._is_listed, annotations)]
        if not self._files:
            raise DataError(f"{path} has no annotation (.xml).", "Give the folder that has them.")
        base = options.image_dir or path
        images = _list_images(base)
        self._images = Images(images, self._files)
        if not self._images.has_any(names := self._read_names()):
            base = find_images(path, names, options.image_dir).folder
            images = _list_images(base)
            self._images = Images(images, self._files)
        num_unlisted = len(annotations) - len(self._files)
        left_out = {"annotations in no list of ImageSets/Main": num_unlisted}
        read_as = ReadAs(
            "Pascal VOC",
            splits=BY_LISTS if self._splits else BY_NAMES,
            left_out=left_out if num_unlisted else {},
        )
        folders = {*map(posixpath.dirname, (*self._files, *images))}
        has_splits = bool(self._splits) or any(map(find_split, folders))
        super().__init__(path, base, read_as, has_splits=has_splits)

    def _is_listed(self, file: str) -> bool:
        return not self._splits or name_listed(file) in self._splits

    def _read_names(self) -> list[str]:
        """Returns what the first annotations call their images."""
        read = self._read(self._files[:SAMPLE_NAMES])
        return [posixpath.basename(_name_image(file, found)) for file, found in read]

    def _read(self, files: Sequence[str]) -> Iterator[tuple[str, Annotation | Fault]]:
        """Yields each file with what it says."""
        paths = (storage.join(self._folder, file) for file in files)
        parse = partial(parse_annotation, origin=self._origin)
        return zip(files, read_files(paths, self._folder, parse, self._roots), strict=True)

    def images(self) -> Iterator[Annotated]:
        """Yields the image of every annotation, then those without one, where nobody looked."""
        listed = dict.fromkeys(self._splits)
        least = math.inf
        for file, found in self._read(self._files):
            named = _name_image(file, found)
            image = self._images.take(file, posixpath.basename(named)) or named
            listed.pop(name_listed(file), None)
            if isinstance(found, Annotation):
                said, fault = place_in(found.width, found.height, found.objects), None
                least = min(least, _find_least(found))
            else:
                said, fault = None, found
            for split in self._find_splits(file, image):
                yield Annotated(storage.join(self.base, image), split, said, fault)
        spare = [*filter(self._is_listed, self._images.spare)]
        for image in spare:
            listed.pop(name_listed(image), None)
        for image in (*spare, *map(_name_listed_image, listed)):
            for split in self._find_splits(image, image):
                yield Annotated(storage.join(self.base, image), split, None)
        if least < math.inf:
            smallest = f"the smallest corner is {least + self._origin:g}"
            remark = f"{smallest}, and the first pixel {self._origin}"
            self.read_as = replace(self.read_as, remarks=(remark,))

    def _find_splits(self, file: str, image: str) -> Sequence[str]:
        if self._splits:
            return self._splits[name_listed(file)]
        return [find_split(posixpath.dirname(file)) or find_split(posixpath.dirname(image)) or ""]


def _name_image(file: str, found: Annotation | Fault) -> str:
    """Returns where the image of an annotation would be, by the name that it gives."""
    folder = posixpath.dirname(file).replace(ANNOTATIONS, IMAGES)
    said = found.filename.replace("\\", "/") if isinstance(found, Annotation) else ""
    return posixpath.join(folder, posixpath.basename(said) or f"{find_stem(file)}.jpg")


def _name_listed_image(name: str) -> str:
    """Returns where an image would be of which there is only the name in a list."""
    return posixpath.join(posixpath.dirname(name), IMAGES, f"{posixpath.basename(name)}.jpg")


def _list_images(folder: str) -> list[str]:
    """Returns the images below a folder; masks of Pascal VOC have the same names."""
    files, _ = find_outputs(folder)
    return [file for file in files if is_image_name(file) and not _MASKS.match(file)]


def _find_least(annotation: Annotation) -> float:
    """Returns the smallest corner; infinity without one."""
    corners = (corner for each in annotation.objects for corner in each.get("box", ()))
    return min(filter(math.isfinite, corners), default=math.inf)


def is_layout(folder: str, names: Sequence[str]) -> bool:
    """Tells whether a folder is a dataset of Pascal VOC, by the names in it.

    It has annotations, or a folder of a split has them, or one with a usual name.

    Raises:
        OSError: A file cannot be read.
    """
    inside = [name for name in names if name in _USUAL_FOLDERS or find_split(name)]
    for place in (folder, *(storage.join(folder, name) for name in inside)):
        files = [name for name in storage.list_folder(place) if name.lower().endswith(_ENDING)]
        found = (read_evidence(storage.join(place, name)) for name in files[:MAX_FILES])
        if any(map(is_voc, found)):
            return True
    return False
