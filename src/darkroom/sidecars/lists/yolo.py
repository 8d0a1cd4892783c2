"""YOLO: a label file for each image, in `labels` in place of `images`, and `data.yaml`."""

from __future__ import annotations

import json
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from darkroom.sidecars.lists.images import (
    ListedImage,
    ListForm,
    Unsaid,
    number_lines,
)

_IMAGES, _LABELS = "/images/", "/labels/"


def _build(
    images: Iterable[ListedImage], numbers: Mapping[str, int], _: Counter[str]
) -> Iterator[tuple[str, bytes]]:
    folders: dict[str, str] = {}
    for image in images:
        path = posixpath.splitext(image.path)[0]
        folders[image.split] = path.removesuffix(f"/{image.name}")
        lines = (_format_line(numbers[each.label], each.box) for each in image.objects or ())
        # Readers replace the last `images` of the path of an image.
        label_file = _LABELS.join(f"/{path}.txt".rsplit(_IMAGES, 1))[1:]
        yield label_file, "".join(lines).encode()
    # Its texts are escaped as those of JSON.
    names = "".join(f"  {n}: {json.dumps(label)}\n" for label, n in numbers.items())
    paths = "".join(f"{split}: {json.dumps(path)}\n" for split, path in folders.items())
    yield "data.yaml", f"{paths}names:\n{names}".encode()


def _format_line(number: int, box: Sequence[float]) -> str:
    shares = (np.format_float_positional(share, trim="-") for share in box)
    return f"{number} {' '.join(shares)}\n"


def _spell(corners: np.ndarray[Any, Any], sides: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    first, last = corners[:, :2], corners[:, 2:]
    return np.hstack(((first + last) / 2, last - first))


def _read(boxes: np.ndarray[Any, Any], sides: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    middle, half = boxes[:, :2], boxes[:, 2:] / 2
    return np.hstack((middle - half, middle + half))


YOLO = ListForm(
    "images/{split}",
    True,
    number_lines,
    _spell,
    _read,
    frozenset((Unsaid.CROWDS, Unsaid.DIFFICULT, Unsaid.AREAS, Unsaid.IDS, Unsaid.UNKNOWN)),
    _build,
)
