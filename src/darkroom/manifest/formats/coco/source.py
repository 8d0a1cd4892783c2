"""Reads a file of COCO: its images, with their objects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from darkroom.dataset.labels import SEE_FORMS
from darkroom.dataset.read_as import ReadAs
from darkroom.errors import DataError, RejectError
from darkroom.manifest.formats.base import TURNED, Annotated, AnnotationSource, place_in
from darkroom.manifest.formats.coco.objects import (
    CocoAnnotation,
    CocoObjects,
    Id,
    doubt_boxes,
    list_outlined,
    turn_boxes,
)
from darkroom.manifest.formats.json_file import Elements, JsonFile
from darkroom.manifest.formats.places import find_images
from darkroom.manifest.sources.listing import Listing
from darkroom.options.manifest import ManifestOptions
from darkroom.targets.form import UPRIGHT

# Of annotations without boxes: a key that these have, and what they are.
_OTHERS = {"caption": "captions", "segments_info": "panoptic segments", "keypoints": "keypoints"}
_BOXES = ("bbox", "segmentation")
_KINDS = (*_BOXES, "keypoints")
_LABEL_STUDIO = "Label Studio"
_SHOWN = "of Label Studio, with boxes in the images as they are shown"


class _Image(msgspec.Struct, gc=False):
    id: Id
    file_name: str = ""
    width: float | str | None = None
    height: float | str | None = None
    coco_url: str | None = None

    def __post_init__(self) -> None:
        """Takes the path of an image of LVIS from its address, as .../train2017/1.jpg."""
        self.file_name = self.file_name or "/".join((self.coco_url or "").split("/")[-2:])
        if not self.file_name:
            raise ValueError("Object missing required field `file_name`")


class _Category(msgspec.Struct, gc=False):
    id: Id
    name: str | int


def read_categories(file: JsonFile, path: str) -> dict[Id, str]:
    """Returns the names of the classes of a file by their ids.

    Raises:
        DataError: A category cannot be used, or two of other names have one id.
    """
    names: dict[Id, str] = {}
    for chunk in file.read_array("categories", _Category):
        for value, problem in chunk.bad:
            raise DataError(
                f"{path}: the category {value!r:.80} cannot be used: {problem}.",
                "Give each category an id and a name.",
            )
        for each in chunk.good:
            if (other := names.setdefault(each.id, f"{each.name}")) != f"{each.name}":
                raise DataError(
                    f"{path}: two categories have the id {each.id!r}: {other!r} and {each.name!r}.",
                    "Give each an id of its own.",
                )
    return names


def read_names(path: str) -> dict[Id, str]:
    """Returns the names of the classes of a file that is given as a label map.

    Raises:
        DataError: It has none, or is not as COCO writes it.
        OSError: It cannot be read.
    """
    if names := read_categories(JsonFile(path), path):
        return names
    raise DataError(
        f"The label file {path} is JSON without categories.",
        f"Give a file of COCO, or a text with one label a line. {SEE_FORMS}",
    )


class CocoSource(AnnotationSource):
    """Reads a file of COCO; see `AnnotationSource`.

    Each image of it is a row, also without objects. Objects of an image that it does not have are
    rows of their own, which are rejected.

    Args:
        path: The file; one in a store is fetched.
        options: How it is read.
        listing: What is below the folder that it was found in, if the user named that.

    Raises:
        DataError: It is not a file of COCO, its classes are not clear, or its images are not
            found.
        OSError: It cannot be read.
    """

    def __init__(self, path: str, options: ManifestOptions, listing: Listing | None = None) -> None:
        self._path = path
        self._json = JsonFile(path)
        if isinstance(self._json.parts, list):
            raise DataError(
                f"{path} is a list, as one of results of a model.",
                "Convert the file with images, categories and annotations that they are about.",
            )
        if "images" not in self._json.parts:
            raise DataError(f"{path} has no list of images.", "Name a file of annotations of COCO.")
        self.classes = read_categories(self._json, path)
        self._place = find_images(path, self._read_names, options.image_dir, listing)
        # It shows images upright, and has Pillow say the sizes of the files.
        is_upright = self._json.find_text("info", "contributor") == _LABEL_STUDIO
        self._orientation = (options.box_orientation or UPRIGHT) if is_upright else None
        remarks = (_SHOWN,) if self._orientation == UPRIGHT else ()
        ids = {f"{each}": name for each, name in self.classes.items()}
        read_as = ReadAs("COCO", remarks=remarks, class_ids=ids)
        super().__init__(path, self._place.folder, read_as)

    def images(self) -> Iterator[Annotated]:
        """Yields every image once.

        Raises:
            DataError: Two images have one id, or two categories with objects have one name.
        """
        objects = CocoObjects(*self._read_ids(), self.classes, self.counts)
        chunks = self._json.read_array("annotations", CocoAnnotation)
        for number, chunk in enumerate(chunks):
            self.counts[TURNED] += turn_boxes(chunk.good)
            if not number:
                self._check_kind(chunk)
                self.doubts += doubt_boxes([*list_outlined(chunk.good)])
            objects.add(chunk)
        self._check_classes(objects.count_classes())
        found = objects.list_images()
        # Without a list, as in image_info_test2017.json, nobody has looked.
        is_annotated = "annotations" in self._json.parts
        for images in self._read_images():
            for image in images.good:
                listed = next(found)
                said = _frame(image, listed if is_annotated else None, self._orientation)
                yield Annotated(self._place.resolve(image.file_name), "", said)
            for value, problem in images.bad:
                yield self._reject(value, problem, next(found))
        for name in objects.list_unknown():
            detail = f"no image of the file has the id {name!r}"
            said = {"image_id": name, "objects": next(found)}
            yield Annotated(f"image_id={name}", "", said, RejectError("unknown_image", detail))

    def _check_kind(self, first: Elements[CocoAnnotation]) -> None:
        """Refuses annotations without boxes, with their number."""
        keys = {key for value, _ in first.bad for key in value}
        keys |= {key for each in first.good for key in _KINDS if len(getattr(each, key) or ())}
        other = next(filter(keys.__contains__, _OTHERS), None)
        if other and keys.isdisjoint(_BOXES):
            chunks = self._json.read_array("annotations", dict)
            count = sum(len(each.good) + len(each.bad) for each in chunks)
            raise DataError(
                f"{self._path} has {count:,} annotations with {_OTHERS[other]}, and no boxes.",
                "Convert a file of instances: instances_*.json.",
            )

    def _read_ids(self) -> tuple[dict[Id, int], int]:
        """Returns the places of images by their ids, and the number of all images."""
        places: dict[Id, int] = {}
        num_images = 0
        for chunk in self._read_images():
            for name in [
                *(each.id for each in chunk.good),
                *(_find_id(each) for each, _ in chunk.bad),
            ]:
                if name is not None and places.setdefault(name, num_images) != num_images:
                    raise DataError(
                        f"{self._path}: two images have the id {name!r}.",
                        "Give each an id of its own, which its objects name.",
                    )
                num_images += 1
        return places, num_images

    def _read_names(self) -> Iterator[str]:
        return (each.file_name for found in self._read_images() for each in found.good)

    def _read_images(self) -> Iterator[Elements[_Image]]:
        return self._json.read_array("images", _Image)

    def _check_classes(self, counts: Sequence[int]) -> None:
        """Checks that no two classes of objects have one name; without objects it is unused."""
        used: defaultdict[str, list[Id]] = defaultdict(list)
        for (number, name), count in zip(self.classes.items(), counts, strict=True):
            if count:
                used[name].append(number)
        for name, ids in used.items():
            if len(ids) > 1:
                raise DataError(
                    f"{self._path}: the categories {ids[0]!r} and {ids[1]!r} are both named "
                    f"{name!r}, and have objects.",
                    "Rename one of them, or give the objects of both one category_id.",
                )

    def _reject(
        self, value: dict[str, Any], problem: str, objects: list[dict[str, Any]]
    ) -> Annotated:
        """Returns an image that cannot be used, as far as it is known."""
        name = value.get("file_name")
        uri = self._place.resolve(name) if isinstance(name, str) else f"image_id={_find_id(value)}"
        said = {"image_id": _find_id(value), "objects": objects}
        return Annotated(uri, "", said, RejectError("bad_value", problem))


def _find_id(value: dict[str, Any]) -> Id | None:
    found = value.get("id")
    return found if isinstance(found, Id) else None


def _frame(
    image: _Image, objects: list[dict[str, Any]] | None, orientation: str | None
) -> dict[str, Any]:
    """Returns the objects of an image with the size that the file declares; 0 is none."""
    has_size = image.width and image.height
    size = (image.width, image.height) if has_size else (None, None)
    return {"image_id": image.id, **place_in(*size, objects, orientation)}
