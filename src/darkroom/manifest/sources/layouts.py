"""What the names of folders say: splits, classes, or parts of another task than classification."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from darkroom.dataset.read_as import Doubt
from darkroom.dataset.splits import find_split, mention_split
from darkroom.errors import DataError
from darkroom.manifest.formats import find_known
from darkroom.manifest.sources.listing import Listing, find_stem
from darkroom.options.source import SIMILAR_LABELS, SPLIT_CLASS, SPLIT_NAMES, TASK_CLASS
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
_OWN = "[ _.-]{}([ _.-][a-z]+)*$"


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


def drop_masks(images: Sequence[str]) -> list[str]:
    """Returns the images of a dataset without masks: those in a folder that is named so.

    Most of its names are those of images elsewhere, apart from a mark; else these are the images.
    """
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for image in images:
        folders[posixpath.dirname(image)].append(find_stem(image))
    named = [each for each in folders if any(_is_part(n, _ANNOTATIONS) for n in each.split("/"))]
    stems = {stem for folder in folders.keys() - named for stem in folders[folder]}
    masks = set()
    for folder in named:
        pairs = sum(_MARK.sub("", stem) in stems for stem in folders[folder])
        if 2 * pairs >= len(folders[folder]):
            masks.add(folder)
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
    """Yields the doubt about lists of which only some are named after splits.

    Args:
        lists: Their paths, relative to the place that the user named.
        splits: What these mean; empty for none.
    """
    others = [path for path, split in zip(lists, splits, strict=True) if not split]
    named = [path for path in lists if mention_split(path)]
    if len(lists) > 1 and others and named:
        yield Doubt(
            SPLIT_NAMES,
            f"Of {len(lists):,} lists, {list_first(named)} may be named after splits, and the "
            f"images of {list_first(others)} are assigned by hash.",
            "Name all of them after their splits, as a_train and a_val, or none: --split-ratios "
            f"80/10/10. If this is meant: --accept {SPLIT_NAMES} (accept= in Python).",
        )


def doubt_labels(classes: Sequence[str]) -> Doubt | None:
    """Returns the doubt about folders that are one class, as labels have no space around them."""
    by_label: defaultdict[str, list[str]] = defaultdict(list)
    for name in classes:
        by_label[name.strip()].append(name)
    texts = [" and ".join(map(repr, names)) for names in by_label.values() if len(names) > 1]
    if not texts:
        return None
    return Doubt(
        SIMILAR_LABELS,
        f"Folders whose names differ in space around them are one class: {list_first(texts)}.",
        "Rename those that differ. If they are the same: "
        f"--accept {SIMILAR_LABELS} (accept= in Python).",
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
    settle = f"If they are classes: --accept {TASK_CLASS} (accept= in Python)."
    stems = _list_stems(listing.files)
    images = [name for name in stems if not _is_part(name, _ANNOTATIONS)]
    for name in sorted(stems.keys() - images):
        beside = [each for each in images if 2 * len(stems[each] & stems[name]) >= len(stems[name])]
        # With several, all are numbered in the same way, unless one alone has a name of images.
        if len(beside) > 1:
            beside = [each for each in beside if _is_part(each, _IMAGES)]
        if len(beside) == 1:
            found = find_known(listing)
            known = "darkroom does not read these"
            advice = f"Convert a CSV of the images in {beside[0]} and their labels."
            if found:
                known, advice = f"{found[1]} is {found[0].title}", found[0].format_advice(found[1])
            raise DataError(
                f"{TASK_CLASS}: in {listing.path}, the files in {name} have the names of those in "
                f"{beside[0]}, so they are their masks or annotations: {known}.",
                f"{advice} {settle}",
            )
    if len(classes) < 2 and (found := find_known(listing)):
        form, path = found
        if not classes:
            raise DataError(
                f"{path} is {form.title}, and no folder is a class.", form.format_advice(path)
            )
        raise DataError(
            f"{TASK_CLASS}: {path} is {form.title}, and {classes[0]} would be the class of all.",
            f"{form.format_advice(path)}\n{settle}",
        )


def _list_stems(files: Sequence[str]) -> Mapping[str, set[str]]:
    """Returns the names of files without endings, by folders of one of which they may be parts.

    Empty where no folder is named as a part with annotations. The path around the folder belongs
    to a name: labels/train/1.txt belongs to images/train/1.jpg. What a name has of its folder's
    name at its end does not: gtFine/1_gtFine_color.png belongs to leftImg8bit/1_leftImg8bit.png.
    """
    folders = {path.rpartition("/")[0] for path in files}
    if not any(_is_part(part, _ANNOTATIONS) for inside in folders for part in inside.split("/")):
        return {}
    by_folder: defaultdict[str, list[str]] = defaultdict(list)
    for path in files:
        inside, _, name = path.rpartition("/")
        by_folder[inside].append(posixpath.splitext(name)[0])
    stems: defaultdict[str, set[str]] = defaultdict(set)
    for inside, names in by_folder.items():
        parts = inside.split("/")
        for place, part in enumerate(parts):
            # A folder of a split is around parts, or beside one, as train and train_masks.
            if len(parts) == 1 or not find_split(part):
                around = "/".join((*parts[:place], "*", *parts[place + 1 :]))
                own = re.compile(_OWN.format(re.escape(part)), re.IGNORECASE)
                bare = (_MARK.sub("", own.sub("", name)) for name in names)
                stems[part].update(f"{around}/{name}" for name in bare)
    return stems
