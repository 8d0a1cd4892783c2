"""Which files of a dataset of Pascal VOC belong together: annotations, images, lists of splits."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import filterfalse

from darkroom.dataset.splits import SPLITS, UNASSIGNED, compare_lists, parse_split
from darkroom.images.headers import is_image_name
from darkroom.manifest.sources.listing import (
    Listing,
    find_name,
    find_stem,
    name_listed,
    pair_names,
)
from darkroom.manifest.sources.roots import check_found
from darkroom.manifest.sources.text import TextFile

# Folders of a dataset as VOC has it; others may have any names.
ANNOTATIONS, IMAGES = "Annotations", "JPEGImages"
_LIST = re.compile(r"((?:.*/)?)ImageSets/Main/([^/]+)\.txt")
# Its images are those of train and eval, but it does not say which is in which.
_BOTH = "trainval"


def pair_images(
    annotations: Sequence[str],
    images: Sequence[str],
    read_names: Callable[[Collection[str]], Mapping[str, str]],
) -> dict[str, str]:
    """Returns the images of annotations, none of which is that of two; some may have none.

    One has the path of its annotation, apart from usual folders, as `Annotations/day/a.xml` and
    `JPEGImages/day/a.jpg`; else it is the only one with the name of the annotation, or with that
    which it says, which may be an older name.

    Args:
        annotations: Their relative paths.
        images: Those of all images.
        read_names: Returns what annotations call their images, as `find_name` does.
    """
    own = {name_listed(file): file for file in reversed(annotations)}
    likely: defaultdict[str, list[str]] = defaultdict(list)
    for image in images:
        if file := own.get(name_listed(image)):
            likely[file].append(image)
    said = read_names([file for file, there in likely.items() if len(there) > 1])
    found = {
        file: next((image for image in there if find_name(image) == said.get(file)), there[0])
        for file, there in likely.items()
    }
    missing = {file: find_stem(file) for file in annotations if file not in found}
    pairs = found | pair_names(found, missing, images)
    if spare := [*filterfalse({*pairs.values()}.__contains__, images)]:
        named = read_names(missing.keys() - pairs.keys())
        pairs |= pair_names(found, named, spare, find_name)
    return pairs


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
    lists = {
        f"{match[1]}{match[2]}": [*_read_list(check_found(listing.join(match[0]), roots), match[1])]
        for match in filter(None, map(_LIST.fullmatch, listing.others))
        if match[2] == _BOTH or parse_split(match[2])
    }
    known = {name: parse_split(posixpath.basename(name)) for name in lists}
    ordered = [name for split in SPLITS for name in lists if known[name] == split]
    kept, remarks = compare_lists({name: lists[name] for name in ordered})
    splits: dict[str, list[str]] = {}
    for name in kept:
        for image in lists[name]:
            splits.setdefault(image, []).append(posixpath.basename(name))
    for name in filterfalse(ordered.__contains__, lists):
        for image in lists[name]:
            splits.setdefault(image, [UNASSIGNED])
    return splits, remarks


def _read_list(path: str, root: str) -> Iterator[str]:
    """Yields the images that a list names, by `name_listed`."""
    for line in TextFile(path).lines():
        if image := line.strip().strip('"'):
            listed = posixpath.join(root, image)
            yield name_listed(listed if is_image_name(image) else f"{listed}.xml")
