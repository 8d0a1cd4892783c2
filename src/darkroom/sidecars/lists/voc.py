"""Pascal VOC: a file of XML for each image, and lists of the images of splits."""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import escape

from darkroom.sidecars.lists.images import ListedImage, ListedObject, ListForm, Unsaid, number_lines

_IMAGE = """<annotation>
  <filename>{filename}</filename>
  <path>{path}</path>
  <size><width>{width}</width><height>{height}</height></size>
{objects}</annotation>
"""
_OBJECT = """  <object>
    <name>{name}</name>
    <difficult>{difficult:d}</difficult>
    <bndbox><xmin>{}</xmin><ymin>{}</ymin><xmax>{}</xmax><ymax>{}</ymax></bndbox>
  </object>
"""


def _build(
    images: Iterable[ListedImage], numbers: Mapping[str, int], _: Counter[str]
) -> Iterator[tuple[str, bytes]]:
    splits = defaultdict(list)
    for image in images:
        splits[image.split].append(image.name)
        # Without a file, nobody looked.
        if image.objects is not None:
            text = _IMAGE.format(
                filename=escape(posixpath.basename(image.path)),
                path=escape(image.path),
                width=image.width,
                height=image.height,
                objects="".join(map(_format_object, image.objects)),
            )
            yield f"Annotations/{image.name}.xml", text.encode()
    for split, names in splits.items():
        yield f"ImageSets/Main/{split}.txt", "".join(f"{name}\n" for name in names).encode()
    # Else classes are in the order of their names.
    yield "labels.txt", "".join(f"{label}\n" for label in numbers).encode()


def _format_object(each: ListedObject) -> str:
    # Many readers take whole numbers alone.
    corners = (str(corner).removesuffix(".0") for corner in each.box)
    return _OBJECT.format(*corners, name=escape(each.label), difficult=each.difficult)


VOC = ListForm(
    "JPEGImages",
    False,
    number_lines,
    lambda corners, sides: corners * sides,
    lambda boxes, sides: boxes / sides,
    frozenset((Unsaid.CROWDS, Unsaid.AREAS, Unsaid.IDS)),
    _build,
)
