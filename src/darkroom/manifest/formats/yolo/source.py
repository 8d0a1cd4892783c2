"""Reads a dataset of YOLO: the label files of its images.

Without a label file nothing is in an image. Where no image of a folder has one, nobody looked; all
of train or eval without them are refused.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from darkroom.dataset.read_as import BY_LISTS, BY_NAMES, Doubt, ReadAs
from darkroom.dataset.splits import EVAL, TRAIN, parse_split
from darkroom.errors import DataError, RejectError
from darkroom.manifest.formats.base import Annotated, AnnotationSource, place_in
from darkroom.manifest.formats.files import read_files
from darkroom.manifest.formats.yolo.files import (
    LIST_ENDING,
    find_images_below,
    find_named_images,
    list_label_folders,
    list_label_names,
    pair_labels,
)
from darkroom.manifest.formats.yolo.labels import check_is_drawn, decode_labels, parse_label_file
from darkroom.manifest.formats.yolo.settings import find_settings
from darkroom.manifest.sources.listing import Listing
from darkroom.manifest.sources.roots import list_roots
from darkroom.options.manifest import ManifestOptions
from darkroom.options.source import FIRST_CLASS, TASK_CLASS, UNUSED_LABELS
from darkroom.runtime.text import format_count
from darkroom.storage.uris import relative_identity
from darkroom.targets.form import UNANNOTATED

_BACKGROUND = "images without a label file, where nothing is"
# So many label files of no image are read, to know whether there are objects in any.
_MOST_READ = 64


class YoloSource(AnnotationSource):
    """Reads a dataset of YOLO; see `AnnotationSource`.

    Args:
        source: data.yaml, the .data file of darknet, or what is below a folder with one of them, or
            with a file that has the names of the classes (classes.txt, obj.names,
            _darknet.labels).
        options: How it is read.

    Raises:
        DataError: Classes, images or labels are not found, or they are of poses.
        OSError: It cannot be read.
    """

    def __init__(self, source: str | Listing, options: ManifestOptions) -> None:
        listing = None if isinstance(source, str) else source
        path = source if isinstance(source, str) else source.path
        self._roots = list_roots(path, options)
        file, settings = find_settings(source, self._roots)
        self.classes = settings.classes
        if listing and not settings.entries:
            found = find_images_below(Listing(options.image_dir) if options.image_dir else listing)
        else:
            found = find_named_images(file, settings, options.image_dir, self._roots)
        if not found.images:
            raise DataError(f"{file}: there is no image in its folders.", "Check its paths.")
        self._images = found.images
        # Images beside those of a list were not chosen.
        self._has_lists = any(place.endswith(LIST_ENDING) for _, place in settings.entries)
        self._labels, self._lost = pair_labels((image.uri for image in found.images), listing)
        self._unused = self._take_labels(listing) if listing else []
        # The classes of objects.
        self._used: set[str] = set()
        self._looked_at = {*map(posixpath.dirname, self._labels)}
        if options.empty_labels == UNANNOTATED:
            self._check_labels(file)
        remarks = (f"classes of {posixpath.basename(file)}", *found.remarks)
        has_splits = any(image.split for image in found.images)
        read_as = ReadAs("YOLO", remarks=remarks, splits=BY_LISTS if settings.entries else BY_NAMES)
        super().__init__(path, found.base, read_as, has_splits=has_splits)
        self._check_form()

    def _take_labels(self, listing: Listing) -> list[str]:
        """Takes the label files that are read; returns others, which no image has."""
        paths = (*self._labels.values(), *self._lost.values())
        listing.taken.update(relative_identity(each, listing.path) for each in paths)
        others = [file for file in listing.others if file not in listing.taken]
        return [*map(listing.join, list_label_names(others))]

    def _check_labels(self, file: str) -> None:
        """Checks that train and eval have label files, as those of test are often not given."""
        images = self._images
        known = {each.split for each in images if posixpath.dirname(each.uri) in self._looked_at}
        for split, uri in {each.split: each.uri for each in reversed(images)}.items():
            if split not in known and (not known or parse_split(split) in (TRAIN, EVAL)):
                raise DataError(
                    f"{file}: no image{split and f' of {split}'} has a label file, as {uri}. "
                    f"Tried: {', '.join(list_label_folders(posixpath.dirname(uri)))}.",
                    "Put the label files there, or correct the name of their folder. If nothing is "
                    "in these images: --empty-labels none (empty_labels= in Python). If their "
                    f"folders are classes: --accept {TASK_CLASS} (accept=).",
                )

    def _check_form(self) -> None:
        paths = [*self._labels.values()]
        for path, text in zip(paths, self._read_texts(paths), strict=True):
            if isinstance(text, str) and text.strip():
                check_is_drawn(text, path)
                break

    def _read_texts(self, paths: Iterable[str]) -> Iterator[str | RejectError]:
        return read_files(paths, self.base, decode_labels, self._roots)

    def images(self) -> Iterator[Annotated]:
        """Yields every image, then the label files that have objects and no image."""
        uses = Counter(self._labels.values())
        self.counts["label files of several images each"] = sum(n > 1 for n in uses.values())
        # An image may be in two lists.
        paths = (self._labels.get(image.uri) for image in self._images)
        texts = self._read_texts(filter(None, paths))
        for image in self._images:
            if path := self._labels.get(image.uri):
                yield self._read(image, path, next(texts))
            elif posixpath.dirname(image.uri) in self._looked_at:
                self.counts[_BACKGROUND] += 1
                yield image._replace(objects=place_in(1, 1, []))
            else:
                self.counts["images in folders without labels, where nobody looked"] += 1
                yield image
        if not self._has_lists:
            yield from self._read_lost()
        self.doubts += self._doubt_unused()
        first = self.classes.get(0)
        if first and len(self.classes) > 1 and self._used and first not in self._used:
            self.doubts.append(_build_first_class(first))

    def _read(self, image: Annotated, path: str, text: str | RejectError) -> Annotated:
        if isinstance(text, RejectError):
            return image._replace(fault=text)
        return image._replace(objects=place_in(1, 1, self._parse(path, text)))

    def _parse(self, path: str, text: str) -> list[dict[str, Any]]:
        name = relative_identity(path, self.base)
        objects = parse_label_file(text, name, self.classes, self.counts)
        self._used.update(each["label"] for each in objects if each.get("label"))
        return objects

    def _read_lost(self) -> Iterator[Annotated]:
        """Yields the label files that have objects and no image; others are notes of any kind."""
        splits = {posixpath.dirname(image.uri): image.split for image in self._images}
        texts = self._read_texts(self._lost.values())
        for (uri, path), text in zip(self._lost.items(), texts, strict=True):
            objects = self._parse(path, text) if isinstance(text, str) else []
            if _has_objects(objects):
                split, said = splits[posixpath.dirname(uri)], place_in(1, 1, objects)
                detail = f"{relative_identity(path, self.base)} has objects, but no image"
                yield Annotated(uri, split, said, RejectError("unknown_image", detail))

    def _doubt_unused(self) -> Iterator[Doubt]:
        """Yields the doubt about label files of no image, where images have no label file."""
        background = self.counts[_BACKGROUND]
        read = self._read_texts(self._unused[:_MOST_READ]) if background else ()
        texts = (text for text in read if isinstance(text, str))
        if any(_has_objects(parse_label_file(each, "", self.classes, Counter())) for each in texts):
            yield Doubt(
                UNUSED_LABELS,
                f"No image has the name of {format_count(len(self._unused), 'label file')}, as "
                f"{self._unused[0]}, and {format_count(background, 'image')} without a label file "
                "would be without objects.",
                "Give label files the names of their images, in labels where these are in images, "
                "or beside them. If nothing is in these images: "
                f"--accept {UNUSED_LABELS} (accept= in Python).",
            )


def _has_objects(objects: Iterable[dict[str, Any]]) -> bool:
    """Tells whether a label file has objects that can be used."""
    return any("fault" not in each for each in objects)


def _build_first_class(name: str) -> Doubt:
    """Returns the doubt about label files in which no object has class 0, which has this name."""
    return Doubt(
        FIRST_CLASS,
        f"No object has class 0, {name!r:.80}. YOLO numbers classes from 0, and these label files "
        "may do so from 1.",
        f"If they do, number the names in data.yaml so: names: {{1: {name:.80}, ...}}. If they do "
        f"not, and nobody drew such an object: --accept {FIRST_CLASS} (accept= in Python).",
    )
