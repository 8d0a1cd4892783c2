"""What the names of folders say: splits, classes, or parts of another task than classification."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from darkroom.dataset.read_as import Doubt
from darkroom.dataset.splits import find_split, mention_split
from darkroom.errors import DataError
from darkroom.manifest.formats import find_known
from darkroom.manifest.sources.listing import Listing, find_stem
from darkroom.options.source import SPLIT_CLASS, SPLIT_NAMES, TASK_CLASS
from darkroom.runtime.text import list_first

# Names of folders with the images of detection or segmentation, and with what was annotated. They
# are common words, which may be joined, as in mask_images, so that a few are enough. The last line
# of each has the names of Pascal VOC and Cityscapes.
_IMAGES = frozenset(
    (
        *("image", "images", "img", "imgs", "jpeg"),
        *("jpegimages", "leftimg8bit"),
    )
)
_ANNOTATIONS = frozenset(
    (
        *("mask", "masks", "label", "labels", "annotation", "annotations", "groundtruth", "gt"),
        *("segmentation", "bbox", "bboxes"),
        *("segmentationclass", "segmentationobject", "gtfine", "gtcoarse"),
    )
)
# nnU-Net's ends of names for the splits train and test.
_SPLIT_ENDS = ("tr", "ts")
# Capitals begin a word, too, as in TrainImages.
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# What the name of a mask, or of its image, has beside that of the pair.
_MARK = re.compile(
    r"^(?:mask|label|image|img)s?[ _.-]|[ _.-](?:masks?|labels?|gt|seg|segmentation|annotation)$",
    re.IGNORECASE,
)
# The same where it has the name of its folder, and words, but no number, follow.
_OWN = "[ _.-](?:{})(?:[ _.-][a-z]+)*$"


def list_parts(names: Sequence[str]) -> list[str]:
    """Returns the names of folders of detection or segmentation, with images or annotations."""
    return [name for name in names if _is_part(name, _IMAGES | _ANNOTATIONS)]


def _is_part(name: str, words: frozenset[str]) -> bool:
    """Tells whether a name has words of a part of a task, and else only those of parts or splits.

    Two words may be one, as in ground_truth.
    """
    found = [word.lower() for word in _WORDS.findall(name)]
    found = [word for word in found if not mention_split(word) and word not in _SPLIT_ENDS]
    if not words.isdisjoint((name.lower(), "".join(found))):
        return True
    return not words.isdisjoint(found) and _IMAGES.union(_ANNOTATIONS).issuperset(found)


def find_masks(files: Sequence[str]) -> dict[str, set[str]]:
    """Returns the folders with masks or annotations, each with the folders of their images.

    They have a name of annotations, and half of their files the names of files elsewhere, apart
    from a mark, or from what a name has of its folder's at its end: gtFine/1_gtFine_color.png
    belongs to leftImg8bit/1_leftImg8bit.png.
    """
    stems: defaultdict[str, set[str]] = defaultdict(set)
    for file in files:
        stems[posixpath.dirname(file)].add(find_stem(file))
    named = [each for each in stems if any(_is_part(n, _ANNOTATIONS) for n in each.split("/"))]
    if not named:
        return {}
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for folder in stems.keys() - named:
        for stem in _drop_marks(folder, stems[folder]):
            homes[stem].add(folder)
    found = {}
    for folder in named:
        pairs = [homes[stem] for stem in _drop_marks(folder, stems[folder]) if stem in homes]
        if 2 * len(pairs) >= len(stems[folder]):
            found[folder] = set().union(*pairs)
    return found


def _drop_marks(folder: str, stems: Iterable[str]) -> Iterator[str]:
    """Yields names without marks, and without what they have of the names of their folders."""
    parts = "|".join(map(re.escape, folder.split("/")))
    own = re.compile(_OWN.format(parts), re.IGNORECASE)
    return (_MARK.sub("", own.sub("", stem)) for stem in stems)


def drop_masks(images: Sequence[str]) -> list[str]:
    """Returns the images of a dataset without its masks."""
    masks = find_masks(images)
    return [image for image in images if posixpath.dirname(image) not in masks]


def doubt_classes(listing: Listing, num_annotated: int) -> Iterator[Doubt]:
    """Yields the doubt about annotations in folders that may be classes, if most images have none.

    Args:
        listing: What is below the source.
        num_annotated: Number of images at which somebody looked.
    """
    folders = {posixpath.basename(posixpath.dirname(image)) for image in listing.images}
    classes = sorted(folders)
    may_be = len(classes) > 1 and not any(map(mention_split, classes)) and not list_parts(classes)
    if may_be and all(classes) and 2 * num_annotated <= len(listing.images):
        yield Doubt(
            TASK_CLASS,
            f"Of {len(listing.images):,} images, {num_annotated:,} are annotated, and their "
            f"folders may be classes: {list_first(classes)}.",
            f"If they are classes: --accept {TASK_CLASS} (accept= in Python). If boxes are meant, "
            "name their form with --format (format=).",
        )


def check_splits(folder: str, classes: Sequence[str]) -> None:
    """Checks that folders that would be classes are not splits.

    Raises:
        DataError: All are named after splits, of which there are several.
    """
    named = [*map(mention_split, classes)]
    if all(named) and len({*map(find_split, named)}) > 1:
        raise DataError(
            f"{SPLIT_CLASS}: all folders in {folder} are named after splits, and would be classes: "
            f"{list_first(classes)}.",
            "If they are splits, rename them to train, eval and test, with a folder for each label "
            "in each. If they are classes: "
            f"--accept {SPLIT_CLASS} (accept= in Python).",
        )


def doubt_splits(lists: Sequence[str], splits: Sequence[str]) -> Iterator[Doubt]:
    """Yields the doubt about several lists of which only some are named after splits.

    Args:
        lists: Their paths, relative to the place that the user named.
        splits: What these mean; empty for none.
    """
    others = [path for path, split in zip(lists, splits, strict=True) if not split]
    named = [path for path in lists if mention_split(path)]
    if others and named:
        yield Doubt(
            SPLIT_NAMES,
            f"Of {len(lists):,} lists, {list_first(named)} may be named after splits, and the "
            f"images of {list_first(others)} are assigned by hash.",
            "Name all of them after their splits, as a_train and a_val, or none: --split-ratios "
            f"80/10/10. If this is meant: --accept {SPLIT_NAMES} (accept= in Python).",
        )


def check_parts(listing: Listing, classes: Sequence[str]) -> None:
    """Checks that a folder of classes is not a dataset of detection or segmentation.

    Args:
        listing: What is below the source.
        classes: The folders that would be its classes.

    Raises:
        DataError: A folder has masks or annotations of the images beside it. Or the images have
            no classes or one, and there are annotations of a known form.
    """
    why = _find_masked(listing)
    found = find_known(listing) if why or len(classes) < 2 else None
    if found:
        form, path = found
        what, advice = f"{path} is {form.title}", form.format_advice(path)
        why = why or (
            f"{classes[0]} would be the class of all" if classes else "no folder is a class"
        )
    elif why:
        what, advice = "darkroom reads no masks", "Convert a CSV of the images and their labels."
    else:
        return
    raise DataError(
        f"{TASK_CLASS}: {why}, and {what}.",
        f"{advice}\nIf folders are classes: --accept {TASK_CLASS} (accept= in Python).",
    )


def _find_masked(listing: Listing) -> str:
    """Tells in words which folder has masks or annotations of images; empty for none."""
    for folder, homes in sorted(find_masks(listing.files).items()):
        # Where several are numbered in the same way, one with a name of images has them.
        named = {home for home in homes if any(_is_part(n, _IMAGES) for n in home.split("/"))}
        if named or len(homes) == 1:
            home = min(named or homes) or "it"
            return f"in {listing.path}, the files in {folder} have the names of those in {home}"
    return ""
