"""Which files of a dataset of Pascal VOC belong together: annotations, images, lists of splits."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable

from darkroom import storage
from darkroom.dataset.splits import TRAIN, UNASSIGNED, find_split, parse_split
from darkroom.manifest.sources.folder import is_image_name
from darkroom.manifest.sources.roots import check_found
from darkroom.manifest.sources.text import TextFile

# Folders of a dataset as VOC has it; others may have any names.
ANNOTATIONS, IMAGES = "Annotations", "JPEGImages"
_USUAL = frozenset(
    (
        *("annotations", "annotation", "annots", "xml", "xmls", "labels", "label"),
        *("jpegimages", "images", "image", "imgs", "img", "data"),
    )
)
_LIST = re.compile(r"(?:(.*)/)?ImageSets/Main/([^/]+)\.txt")
# Its images are those of train and eval, but it does not say which is in which.
_BOTH = "trainval"


class Images:
    """The images of a dataset, by what annotations may know of them.

    Args:
        images: Their relative paths.
        annotations: Those of the annotations.

    Attributes:
        spare: The images that no annotation has by its path, and that none has taken.
    """

    def __init__(self, images: Iterable[str], annotations: Iterable[str]) -> None:
        self._stems = Counter(map(find_stem, annotations))
        keys = {*map(name_listed, annotations)}
        self._own: defaultdict[str, list[str]] = defaultdict(list)
        self._named: defaultdict[str, list[str]] = defaultdict(list)
        self.spare: dict[str, None] = {}
        for image in images:
            if (key := name_listed(image)) in keys:
                self._own[key].append(image)
            else:
                self.spare[image] = None
                self._named[find_stem(image)].append(image)
                self._named[posixpath.basename(image)].append(image)

    def has_any(self, names: Iterable[str]) -> bool:
        """Tells whether an image has one of some names, or is that of an annotation."""
        return bool(self._own) or not self._named.keys().isdisjoint((*self._stems, *names))

    def take(self, annotation: str, name: str) -> str | None:
        """Returns the image of an annotation, which is that of no other one; None without any.

        It has the path of the annotation, apart from usual folders, as `Annotations/day/a.xml` and
        `JPEGImages/day/a.jpg`; else it is the only one with the name that the annotation says, or
        with that of the annotation.

        Args:
            annotation: Its relative path.
            name: What it calls its image, which may be an older name.
        """
        if own := self._own.pop(name_listed(annotation), None):
            image = next((each for each in own if posixpath.basename(each) == name), own[0])
            self.spare |= dict.fromkeys(each for each in own if each != image)
            return image
        stem = find_stem(annotation)
        names = (name, stem) if self._stems[stem] == 1 else (name,)
        found = {
            image
            for each in names
            for image in self._named.get(each, ())
            if image in self.spare and _are_of_one_split(annotation, image)
        }
        if len(found) != 1:
            return None
        self.spare.pop(image := found.pop())
        return image


def name_listed(path: str) -> str:
    """Returns the path of a file without its ending and usual folders, as lists of splits do."""
    return _remove_usual(_strip_ending(path))


def _remove_usual(path: str) -> str:
    *folders, name = path.split("/")
    return "/".join([*(folder for folder in folders if folder.lower() not in _USUAL), name])


def find_stem(path: str) -> str:
    """Returns the name of a file without its folders and its ending."""
    return _strip_ending(posixpath.basename(path))


def _strip_ending(path: str) -> str:
    return posixpath.splitext(path)[0]


def _are_of_one_split(first: str, second: str) -> bool:
    splits = {find_split(posixpath.dirname(path)) for path in (first, second)}
    return len(splits - {UNASSIGNED, None}) < 2


def read_splits(folder: str, files: Iterable[str], roots: Collection[str]) -> dict[str, list[str]]:
    """Reads the lists of splits in ImageSets/Main.

    Args:
        folder: The folder of the dataset.
        files: Relative paths of its files.
        roots: The folders in which they may be; see `list_roots`.

    Returns:
        The splits of each image, by `name_listed`.

    Raises:
        DataError: A list is not text, or not in an allowed folder.
        OSError: It cannot be read.
    """
    found = [match for file in files if (match := _LIST.fullmatch(file))]
    lists = {(match[1] or "", match[2]): match[0] for match in found}
    splits: dict[str, list[str]] = {}
    for (root, name), file in sorted(lists.items(), key=lambda each: each[0][1] == _BOTH):
        if not parse_split(name) and (name != _BOTH or (root, TRAIN) in lists):
            continue
        for line in TextFile(check_found(storage.join(folder, file), roots)).lines():
            if image := line.strip().strip('"'):
                image = _strip_ending(image) if is_image_name(image) else image
                image = _remove_usual(posixpath.join(root, image))
                if name == _BOTH:
                    splits.setdefault(image, [UNASSIGNED])
                else:
                    splits.setdefault(image, []).append(name)
    return splits
