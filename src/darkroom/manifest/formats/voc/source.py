"""Reads a folder of Pascal VOC: annotations, the images that they are of, and lists of splits."""

from __future__ import annotations

import math
import posixpath
from collections.abc import Collection, Iterator, Sequence
from functools import partial

from darkroom import storage
from darkroom.dataset.read_as import BY_LISTS, BY_NAMES, ReadAs
from darkroom.dataset.splits import find_split
from darkroom.errors import DataError, RejectError
from darkroom.manifest.formats.base import TURNED, Annotated, AnnotationSource, place_in
from darkroom.manifest.formats.files import read_files
from darkroom.manifest.formats.places import SAMPLE_NAMES, find_images
from darkroom.manifest.formats.voc.annotation import VocAnnotation, parse_annotation
from darkroom.manifest.formats.voc.files import (
    ANNOTATIONS,
    IMAGES,
    pair_images,
    read_splits,
)
from darkroom.manifest.sources.layouts import drop_masks
from darkroom.manifest.sources.listing import Listing, find_name, find_stem, name_listed
from darkroom.manifest.sources.roots import list_roots
from darkroom.options.manifest import ManifestOptions

_ENDING = ".xml"
_UNLISTED = "annotations in no list of ImageSets/Main"


class VocSource(AnnotationSource):
    """Reads a folder of annotations of Pascal VOC; see `AnnotationSource`.

    Args:
        listing: What is below it.
        options: How it is read.

    Raises:
        DataError: It has no annotation, or none of their images is found.
        OSError: It cannot be read.
    """

    def __init__(self, listing: Listing, options: ManifestOptions) -> None:
        path = listing.path
        self._folder, self._origin = path, options.voc_origin
        self._roots = list_roots(path, options)
        self._splits, remarks = read_splits(listing, self._roots)
        annotations = [file for file in listing.others if file.lower().endswith(_ENDING)]
        listing.taken.update(annotations)
        self._files = [*filter(self._is_listed, annotations)]
        if not self._files:
            raise DataError(f"{path} has no annotation (.xml).", "Give the folder that has them.")
        base = options.image_dir or path
        images = drop_masks((listing if base == path else Listing(base)).images)
        self._pairs = pair_images(self._files, images, self._read_names)
        names = () if self._pairs else self._read_names(self._files[:SAMPLE_NAMES]).values()
        if names and {*map(find_name, images)}.isdisjoint(names):
            base = find_images(path, lambda: names, options.image_dir).folder
            images = drop_masks(Listing(base).images)
            self._pairs = pair_images(self._files, images, self._read_names)
        used = {*self._pairs.values()}
        self._spare = [image for image in images if image not in used and self._is_listed(image)]
        listing.left_out[_UNLISTED] += len(annotations) - len(self._files)
        splits = BY_LISTS if self._splits else BY_NAMES
        read_as = ReadAs("Pascal VOC", remarks=tuple(remarks), splits=splits)
        folders = {*map(posixpath.dirname, (*self._files, *images))}
        has_splits = bool(self._splits) or any(map(find_split, folders))
        super().__init__(path, base, read_as, has_splits=has_splits)

    def _is_listed(self, file: str) -> bool:
        return not self._splits or name_listed(file) in self._splits

    def _read_names(self, files: Collection[str]) -> dict[str, str]:
        """Returns what annotations call their images."""
        return {file: find_name(_name_image(file, found)) for file, found in self._read(files)}

    def _read(self, files: Collection[str]) -> Iterator[tuple[str, VocAnnotation | RejectError]]:
        """Yields each file with what it says."""
        paths = (storage.join(self._folder, file) for file in files)
        parse = partial(parse_annotation, origin=self._origin)
        return zip(files, read_files(paths, self._folder, parse, self._roots), strict=True)

    def images(self) -> Iterator[Annotated]:
        """Yields the image of every annotation, then those without one, where nobody looked."""
        listed = dict.fromkeys(self._splits)
        least = math.inf
        for file, found in self._read(self._files):
            image = self._pairs.get(file) or _name_image(file, found)
            listed.pop(name_listed(file), None)
            if isinstance(found, VocAnnotation):
                said, fault = place_in(found.width, found.height, found.objects), None
                least = min(least, _find_least(found))
                self.counts[TURNED] += sum("rotation" in each for each in found.objects)
            else:
                said, fault = None, found
            for split in self._find_splits(file, image):
                yield Annotated(storage.join(self.base, image), split, said, fault)
        for image in self._spare:
            listed.pop(name_listed(image), None)
        for image in (*self._spare, *map(_name_listed_image, listed)):
            for split in self._find_splits(image, image):
                yield Annotated(storage.join(self.base, image), split, None)
        if least < math.inf:
            smallest = f"the smallest corner is {least + self._origin:g}"
            self.remarks.append(f"{smallest}, and the first pixel {self._origin}")

    def _find_splits(self, file: str, image: str) -> Sequence[str]:
        if self._splits:
            return self._splits[name_listed(file)]
        return [find_split(posixpath.dirname(file)) or find_split(posixpath.dirname(image)) or ""]


def _name_image(file: str, found: VocAnnotation | RejectError) -> str:
    """Returns where the image of an annotation would be, by the name that it gives."""
    folder = posixpath.dirname(file).replace(ANNOTATIONS, IMAGES)
    said = found.filename.replace("\\", "/") if isinstance(found, VocAnnotation) else ""
    return posixpath.join(folder, posixpath.basename(said) or f"{find_stem(file)}.jpg")


def _name_listed_image(name: str) -> str:
    """Returns where an image would be of which there is only the name in a list."""
    return posixpath.join(posixpath.dirname(name), IMAGES, f"{posixpath.basename(name)}.jpg")


def _find_least(annotation: VocAnnotation) -> float:
    """Returns the smallest corner; infinity without one."""
    corners = (corner for each in annotation.objects for corner in each.get("box", ()))
    return min(filter(math.isfinite, corners), default=math.inf)
