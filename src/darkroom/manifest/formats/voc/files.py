"""Which files of a dataset of Pascal VOC belong together: annotations, images, lists of splits."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from darkroom.dataset.splits import SPLITS, UNASSIGNED, compare_lists, parse_split
from darkroom.images.endings import is_image_name
from darkroom.manifest.sources.listing import (
    Listing,
    are_of_one_split,
    find_group,
    find_name,
    find_stem,
    name_listed,
    pair_names,
)
from darkroom.manifest.sources.roots import check_found
from darkroom.manifest.sources.text import TextFile

# Folders of a dataset as VOC has it; others may have any names.
ANNOTATIONS, IMAGES = "Annotations", "JPEGImages"
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

    def __init__(self, images: Iterable[str], annotations: Collection[str]) -> None:
        keys = {*map(name_listed, annotations)}
        self._own: defaultdict[str, list[str]] = defaultdict(list)
        self._named: defaultdict[str, list[str]] = defaultdict(list)
        self.spare: dict[str, None] = {}
        for image in images:
            if (key := name_listed(image)) in keys:
                self._own[key].append(image)
            else:
                self.spare[image] = None
        groups = {each: find_group(each) for each in annotations}
        missing = {each: groups[each] for each in annotations if name_listed(each) not in self._own}
        self._homes = {groups[each] for each in groups.keys() - missing}
        self._pairs = pair_names(missing, self.spare, self._homes, find_stem)
        for image in self.spare.keys() - self._pairs.values():
            self._named[find_name(image)].append(image)

    def has_any(self, names: Iterable[str]) -> bool:
        """Tells whether an image has one of some names, or is that of an annotation."""
        return bool(self._own or self._pairs) or not self._named.keys().isdisjoint(names)

    def take(self, annotation: str, name: str) -> str | None:
        """Returns the image of an annotation, which is that of no other one; None without any.

        It has the path of the annotation, apart from usual folders, as `Annotations/day/a.xml` and
        `JPEGImages/day/a.jpg`; else it is the only one with the name of the annotation, or with
        that which it says.

        Args:
            annotation: Its relative path.
            name: What it calls its image, which may be an older name.
        """
        name = find_name(name)
        if own := self._own.pop(name_listed(annotation), None):
            image = next((each for each in own if find_name(each) == name), own[0])
            self.spare |= dict.fromkeys(each for each in own if each != image)
            return image
        likely = [self._pairs[annotation]] if annotation in self._pairs else self._named[name]
        found = [image for image in likely if image in self.spare and self._fits(annotation, image)]
        if len(found) != 1:
            return None
        self.spare.pop(found[0])
        return found[0]

    def _fits(self, annotation: str, image: str) -> bool:
        group = find_group(annotation)
        is_home = group and group in self._homes
        return are_of_one_split(annotation, image) and not (is_home and group != find_group(image))


def read_splits(listing: Listing, roots: Collection[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Reads the lists of splits in ImageSets/Main.

    Args:
        listing: What is below the folder of the dataset.
        roots: The folders in which they may be; see `list_roots`.

    Returns:
        The splits of each image, by `name_listed`; and in words where lists are alike.

    Raises:
        DataError: A list is not text, or not in an allowed folder.
        OSError: It cannot be read.
    """
    found = [match for file in listing.others if (match := _LIST.fullmatch(file))]
    splits: dict[str, list[str]] = {}
    remarks: list[str] = []
    for root in sorted({match[1] or "" for match in found}):
        lists = {
            match[2]: [*_read_list(check_found(listing.join(match[0]), roots), root)]
            for match in sorted(found, key=_find_order)
            if (match[1] or "") == root and (match[2] == _BOTH or parse_split(match[2]))
        }
        both = lists.pop(_BOTH, ())
        kept, said = compare_lists(lists)
        remarks += said
        for name in kept:
            for image in lists[name]:
                splits.setdefault(image, []).append(name)
        for image in both:
            splits.setdefault(image, [UNASSIGNED])
    return splits, remarks


def _find_order(found: re.Match[str]) -> int:
    split = parse_split(found[2])
    return SPLITS.index(split) if split else len(SPLITS)


def _read_list(path: str, root: str) -> Iterator[str]:
    """Yields the images that a list names, by `name_listed`."""
    for line in TextFile(path).lines():
        if image := line.strip().strip('"'):
            listed = posixpath.join(root, image)
            yield name_listed(listed if is_image_name(image) else f"{listed}.xml")
