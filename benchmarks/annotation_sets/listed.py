"""A set of annotations as its list has it: images, and objects in pixels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import takewhile
from pathlib import Path
from typing import Any

from annotation_sets.places import Photograph, has_area, is_near, open_photograph, place_things
from annotation_sets.plain import NO_IMAGE, Picture, Thing, find_form, read_pictures

Things = dict[Path, list[Thing]]


class AnnotationSet:
    """A set, read by `plain.py`.

    Args:
        name: What tables call it.
        path: Its file or folder.
        orientation: What `--box-orientation` says of it; None for nothing.

    Attributes:
        form: The form of its annotations.
        num_images: Number of images in the list.
        num_objects: Number of objects in it, also of images that it does not have.
        photographs: Its images by their paths.
        things: Their objects, in pixels of what people see.
    """

    def __init__(self, name: str, path: Path, orientation: str | None = None) -> None:
        self.name, self.path, self.orientation = name, path, orientation
        self.form = find_form(path)
        folder = path if path.is_dir() else path.parent
        self._files = _list_images(folder.parent if folder.name == "annotations" else folder)
        pictures = read_pictures(path)
        self.num_objects = sum(len(picture.things) for picture in pictures)
        self.num_images = sum(picture.name != NO_IMAGE for picture in pictures)
        self.photographs: dict[Path, Photograph] = {}
        self._sizes: dict[Path, tuple[float, float] | None] = {}
        self.things: Things = defaultdict(list)
        for picture in pictures:
            if image := self.find_image(picture.name):
                self.photographs[image] = open_photograph(image)
                self._sizes[image] = picture.size
                self.things[image] += self.place(image, picture.things)

    def find_image(self, name: str) -> Path | None:
        """Returns the image of a name: that with the longest equal end of its path."""
        found = self._files.get(name.rpartition("/")[2], [])
        return max(found, key=lambda path: _count_equal_ends(str(path), name), default=None)

    def place(self, image: Path, things: list[Thing]) -> list[Thing]:
        """Returns objects in the units of the list in pixels of what people see."""
        picture = Picture("", self._sizes[image], things)
        return place_things(picture, self.photographs[image], self.orientation)

    def list_kept(self, rejects: list[dict[str, Any]]) -> Things:
        """Returns the objects that are not rejected, each that equals others of its image once.

        Args:
            rejects: The lines of `rejects.jsonl`. What they name and the list does not have stays.
        """
        left = {image: [*things] for image, things in self.things.items()}
        for row in rejects:
            image = self.find_image(row.get("image_uri") or row.get("file_name") or "")
            if image and row["stage"] != "object":
                left.pop(image, None)
            elif image:
                said = row["objects"]
                for each in said["objects"] if isinstance(said, dict) else said:
                    self._remove(left[image], image, each)
        return {image: [*dict.fromkeys(things)] for image, things in left.items()}

    def _remove(self, things: list[Thing], image: Path, said: Mapping[str, Any]) -> None:
        """Removes the object that a reject says: of the same box; without one, one without area."""
        same = [each for each in things if each.label == (said.get("label") or "")]
        if box := said.get("box"):
            left, top, right, bottom = map(float, box)
            (placed,) = self.place(image, [Thing("", (left, top, right, bottom))])
            same = [each for each in same if is_near(each.box, placed.box)]
        else:
            same = [each for each in same if not has_area(each.box)]
        if same:
            things.remove(same[0])


def _list_images(folder: Path) -> Mapping[str, list[Path]]:
    """Returns the images below a folder by their names."""
    named = defaultdict(list)
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in (".jpg", ".jpeg", ".png"):
            named[path.name].append(path)
    return named


def _count_equal_ends(one: str, other: str) -> int:
    pairs = zip(reversed(one.split("/")), reversed(other.split("/")), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
