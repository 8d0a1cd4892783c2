"""The images of a dataset of YOLO, and their label files.

Images are below folders, or in lists. The label file of `images/train/a.jpg` is
`labels/train/a.txt`, else it is beside the image.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable
from functools import partial
from typing import NamedTuple

from darkroom import storage
from darkroom.dataset.splits import TEST, compare_lists, find_split, parse_split
from darkroom.errors import DataError
from darkroom.manifest.formats.base import Annotated
from darkroom.manifest.formats.places import Place, find_place, use_slashes
from darkroom.manifest.formats.yolo.settings import Settings, is_class_file
from darkroom.manifest.sources.base import ALLOWED_SCHEMES
from darkroom.manifest.sources.layouts import drop_masks
from darkroom.manifest.sources.listing import Listing, find_stem, pair_names
from darkroom.manifest.sources.roots import check_found
from darkroom.manifest.sources.text import TextFile
from darkroom.storage.uris import has_scheme, relative_identity

# Also of label files.
LIST_ENDING = ".txt"


class FoundImages(NamedTuple):
    """The images of a dataset.

    Attributes:
        base: The folder that they are named from.
        images: All of them, with their splits.
        remarks: What was decided, in words.
    """

    base: str
    images: list[Annotated]
    remarks: list[str]


def find_images_below(listing: Listing) -> FoundImages:
    """Returns all images below a folder, with the splits that folders name."""
    images = [
        Annotated(listing.join(file), find_split(posixpath.dirname(file)) or "")
        for file in drop_masks(listing.images)
    ]
    return FoundImages(listing.path, images, [])


def find_named_images(
    file: str, settings: Settings, image_dir: str | None, roots: Collection[str]
) -> FoundImages:
    """Returns the images that data.yaml or a file of darknet names.

    Paths are relative to the folder of the file, to the one that it calls path, to the working
    folder, or to wherever the file was written: `../train/images` of Roboflow is in the folder.

    Args:
        file: The file.
        settings: What it says.
        image_dir: A folder that has them; None to look for them.
        roots: The folders in which they, and lists of them, may be; see `list_roots`.

    Raises:
        DataError: The images of train or eval are not found, or are not in an allowed folder.
        OSError: They cannot be listed.
    """
    folder = posixpath.dirname(file)
    starts = [folder] if storage.is_remote(file) else [folder, os.getcwd()]
    bases = [image_dir] if image_dir else []
    bases += [Place(start, use_slashes).join(settings.path).rstrip("/") for start in starts]
    bases += [folder]
    base, remarks = "", []
    uris: dict[str, list[str]] = {}
    splits: dict[str, str] = {}
    for split, text in settings.entries:
        is_list = text.endswith(LIST_ENDING)
        # What is in the folder that the user names may be there under its last name alone.
        least_parts = 1 if is_list or image_dir else 2
        try:
            what = f"The images of {file} ({split})"
            place = find_place(what, [text].copy, bases, least_parts=least_parts)
        except DataError as error:
            if parse_split(split) != TEST:
                raise DataError(
                    error.message,
                    f"Correct {split} in {file}. It is joined with each of these folders, and with "
                    "that of --image-dir (image_dir= in Python).",
                ) from error
            # Roboflow names it always.
            remarks.append(f"no {split}: {text} is not found")
            continue
        base = base or place.folder
        path = check_found(place.join(text), roots)
        name = split if split not in uris else f"{text} of {split}"
        splits[name] = split
        uris[name] = _read_list(path, bases) if is_list else _list_images(path)
    kept, said = compare_lists(uris)
    images = [Annotated(uri, splits[name]) for name in kept for uri in uris[name]]
    return FoundImages(base, images, [*remarks, *said])


def _list_images(folder: str) -> list[str]:
    listing = Listing(folder)
    return [*map(listing.join, listing.images)]


def _read_list(file: str, bases: list[str]) -> list[str]:
    """Returns the images that a list names.

    Raises:
        DataError: None of the first ones is found, or the list is not text.
    """
    names = [*filter(None, map(str.strip, TextFile(file).lines()))]
    folder = posixpath.dirname(file)
    folders = [*bases, folder, posixpath.dirname(folder)]
    place = find_place(f"The images of {file}", lambda: names, folders)
    return [*map(place.resolve, names)]


def pair_labels(
    images: Iterable[str], listing: Listing | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the label files of images, and those of images that are not there.

    Args:
        images: Paths of images.
        listing: What is below the folder of the dataset: an image without a label file where that
            should be has one of its name elsewhere.

    Returns:
        Both by the paths of the images; one that has none is not in them.

    Raises:
        OSError: A folder cannot be read.
    """
    folders: dict[str, dict[str, str]] = {}
    labels: dict[str, str] = {}
    missing: list[str] = []
    for image in images:
        folder, stem = posixpath.dirname(image), find_stem(image)
        if folder not in folders:
            folders[folder] = _list_labels(folder)
        if stem in folders[folder]:
            labels[image] = folders[folder][stem]
        else:
            missing.append(image)
    if listing and missing:
        inside = partial(relative_identity, base=listing.path)
        pairs = pair_names(
            {inside(image): inside(path) for image, path in labels.items()},
            {inside(image): find_stem(image) for image in missing},
            list_label_names(listing.others),
        )
        labels |= {listing.join(image): listing.join(path) for image, path in pairs.items()}
    used = {*labels.values()}
    lost = {
        storage.join(folder, f"{stem}.jpg"): path
        for folder, paths in folders.items()
        for stem, path in paths.items()
        if path not in used
    }
    return labels, lost


def list_label_folders(images: str) -> list[str]:
    """Returns the folders in which the label files of the images of a folder may be."""
    # The last one counts: a folder above the dataset may have this name, too.
    above, found, below = f"{images}/".rpartition("/images/")
    return [f"{above}/labels/{below}".rstrip("/"), images] if found else [images]


def _list_labels(images: str) -> dict[str, str]:
    """Returns the label files of the images of a folder, by their names without ending."""
    # Hosts, as of http://, are not asked.
    if has_scheme(images) and images.partition("://")[0] not in ALLOWED_SCHEMES:
        return {}
    return {
        find_stem(name): storage.join(folder, name)
        for folder in reversed(list_label_folders(images))
        for name in list_label_names(storage.list_folder(folder))
    }


def list_label_names(names: Iterable[str]) -> list[str]:
    """Returns the names of files that may be label files."""
    return [
        name for name in names if name.lower().endswith(LIST_ENDING) and not is_class_file(name)
    ]


def list_likely_labels(listing: Listing) -> list[str]:
    """Returns the first files in a folder labels, or with the names of images."""
    stems = {*map(find_stem, listing.images)}
    return [
        name
        for name in list_label_names(listing.list_texts())
        if "labels" in name.split("/")[:-1] or find_stem(name) in stems
    ]
