"""How many faults of a tool in the boxes of a group are named, and how many right sets are doubted.

    python benchmarks/tool_faults.py [SET ...] [--seeds 4]

A set is a file or folder of annotations with its images, as `darkroom convert` takes it; it is
read by a few lines for each form (`annotation_sets/plain.py`), and its images are two lists at
random. Without any, 24 sets are made from each seed: streets, shelves, tiles from above, cells,
pages, portraits, faces and rooms, each in images of some sizes, some of them squares as tools
stretch them. Classes have their forms and sizes, an image cuts objects at its edge, people draw a
pixel or two beside it, some boxes are outside, and lists differ as cameras and people do.

In one list of each set, x and y are swapped, all is at half scale, or 12 pixels to the right and
down, with the boxes cut at the edge or not. `named` is of how many sets the list and the fault are
said; `doubted` how many right sets are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from annotation_sets.listed import AnnotationSet

from darkroom.targets.boxes.odd_boxes import OddGroup, find_odd_groups

Numbers = np.ndarray[Any, Any]
_SHIFT = 12


class Kind(NamedTuple):
    """Objects of a class: share of all, ln(width / height) and its spread, side and its spread."""

    share: float
    form: float
    form_spread: float
    side: float
    side_spread: float


class Scene(NamedTuple):
    """What a set shows.

    Attributes:
        sizes: (width, height) of its images.
        kinds: Its classes; their sides are shares of the root of the area of the image.
        objects: Mean number of objects of an image.
        middle: Where objects are on average, as shares of width and height.
        spread: How far around that.
        images: Number of images.
        lists: The share of each list.
    """

    sizes: Sequence[tuple[int, int]]
    kinds: Sequence[Kind]
    objects: float
    middle: tuple[float, float]
    spread: tuple[float, float]
    images: int
    lists: Sequence[float]


class Boxes(NamedTuple):
    """Boxes of a set as columns.

    Attributes:
        corners: float64 [4, N]: xmin, ymin, xmax, ymax in pixels.
        size: float64 [2, N]: width and height of their images.
        image: int64 [N]: numbers of their images.
        label: Their classes, int64 [N].
        group: The list of each, int64 [N].
    """

    corners: Numbers
    size: Numbers
    image: Numbers
    label: Numbers
    group: Numbers


_VGA, _TALL, _HD = (640, 480), (480, 640), (1920, 1080)
_SQUARE = ((640, 640),)
_PHOTOS = (_VGA, _VGA, (640, 427), (500, 375), _TALL, (427, 640))
_PEOPLE = Kind(0.4, -0.9, 0.35, 0.25, 0.7)
_ROOM = (
    *(_PEOPLE, Kind(0.2, -0.3, 0.5, 0.15, 0.6), Kind(0.1, -1.0, 0.3, 0.08, 0.5)),
    *(Kind(0.2, 0.5, 0.5, 0.3, 0.5), Kind(0.1, 0.0, 0.4, 0.06, 0.4)),
)
_STREET = (
    *(Kind(0.6, 0.35, 0.35, 0.06, 0.7), Kind(0.1, 0.2, 0.4, 0.1, 0.6)),
    *(Kind(0.2, -0.85, 0.3, 0.05, 0.6), Kind(0.1, -0.6, 0.3, 0.03, 0.5)),
)
_CELLS = (Kind(0.85, 0.0, 0.15, 0.15, 0.2), Kind(0.15, 0.1, 0.25, 0.25, 0.3))
_SHELF = (Kind(0.7, -0.5, 0.3, 0.07, 0.3), Kind(0.3, 0.4, 0.3, 0.09, 0.3))
_TILES = (Kind(0.7, 0.0, 0.5, 0.04, 0.4), Kind(0.3, 0.0, 0.6, 0.12, 0.5))
_PAGES = (
    Kind(0.7, 2.2, 0.6, 0.12, 0.5),
    Kind(0.2, 0.4, 0.4, 0.35, 0.4),
    Kind(0.1, 2.0, 0.3, 0.2, 0.3),
)
_FACES = (Kind(1.0, -0.25, 0.15, 0.1, 0.8),)
_ONE = (Kind(0.5, -0.3, 0.4, 0.6, 0.3), Kind(0.5, 0.4, 0.3, 0.55, 0.3))
_EVEN, _UNEVEN, _MANY = (0.5, 0.5), (0.7, 0.2, 0.1), (0.2,) * 5
_CENTER = (0.5, 0.5)
SCENES: Mapping[str, Scene] = {
    "rooms": Scene(_PHOTOS, _ROOM, 7, _CENTER, (0.3, 0.25), 400, _UNEVEN),
    "rooms, few": Scene(_PHOTOS, _ROOM, 5, _CENTER, (0.3, 0.25), 60, _EVEN),
    "rooms, squares": Scene(_SQUARE, _ROOM, 7, _CENTER, (0.3, 0.25), 300, _UNEVEN),
    "street": Scene((_HD,), _STREET, 12, (0.5, 0.55), (0.3, 0.1), 300, _MANY),
    "street, small": Scene(((1280, 720), _VGA), _STREET, 9, (0.5, 0.6), (0.3, 0.15), 90, _UNEVEN),
    "street, squares": Scene(_SQUARE, _STREET, 8, (0.5, 0.55), (0.3, 0.12), 200, _UNEVEN),
    "cells": Scene((_VGA,), _CELLS, 12, _CENTER, (0.5, 0.5), 250, _UNEVEN),
    "cells, squares": Scene(((416, 416),), _CELLS, 12, _CENTER, (0.5, 0.5), 120, _EVEN),
    "cells, wide": Scene(((1360, 1024),), _CELLS, 25, _CENTER, (0.5, 0.5), 40, _EVEN),
    "shelf": Scene(((3024, 4032), (2448, 3264)), _SHELF, 90, _CENTER, (0.5, 0.5), 60, _UNEVEN),
    "shelf, wide": Scene(((4032, 3024),), _SHELF, 40, _CENTER, (0.5, 0.4), 40, _EVEN),
    "shelf, squares": Scene(_SQUARE, _SHELF, 30, _CENTER, (0.5, 0.4), 50, _UNEVEN),
    "tiles": Scene(((1024, 1024),), _TILES, 40, _CENTER, (0.6, 0.6), 100, _UNEVEN),
    "tiles, wide": Scene(((1920, 1440),), _TILES, 40, _CENTER, (0.6, 0.6), 60, _EVEN),
    "drone": Scene((_HD, (1360, 765)), _STREET, 50, _CENTER, (0.4, 0.4), 80, _MANY),
    "pages": Scene(((1240, 1754),), _PAGES, 15, _CENTER, (0.1, 0.4), 100, _UNEVEN),
    "pages, scanned": Scene(
        ((2480, 3508), (2550, 3300)), _PAGES, 20, _CENTER, (0.15, 0.4), 80, _EVEN
    ),
    "signs": Scene(((1280, 720),), _FACES, 2, (0.6, 0.4), (0.3, 0.15), 500, _UNEVEN),
    "faces": Scene(
        ((1024, 683), (1024, 768), (683, 1024)), _FACES, 6, (0.5, 0.4), (0.3, 0.2), 200, _EVEN
    ),
    "faces, one": Scene((_VGA, _TALL), _FACES, 1.5, (0.5, 0.4), (0.15, 0.15), 200, _EVEN),
    "one thing": Scene(_PHOTOS, _ONE, 1, _CENTER, (0.1, 0.1), 300, _UNEVEN),
    "one thing, squares": Scene(((416, 416),), _ONE, 1, _CENTER, (0.1, 0.1), 200, _EVEN),
    "one thing, phone": Scene(
        ((3024, 4032), (4032, 3024)), _ONE, 1.3, _CENTER, (0.12, 0.12), 150, _EVEN
    ),
    "hall": Scene(((1920, 1080), (2560, 1440)), _ROOM, 9, (0.5, 0.6), (0.35, 0.2), 120, _MANY),
}


def make(scene: Scene, rng: np.random.Generator) -> Boxes:
    """Draws a set: each list has a camera, and people, of its own."""
    group = np.sort(rng.choice(len(scene.lists), scene.images, p=scene.lists))
    size = np.array(scene.sizes, float)[rng.integers(len(scene.sizes), size=scene.images)]
    image = np.repeat(np.arange(scene.images), rng.poisson(scene.objects, scene.images).clip(1))
    group, size = group[image], size[image].T
    num_lists, total = len(scene.lists), len(image)
    kinds = np.array(scene.kinds)
    shares = kinds[:, 0] * rng.uniform(0.5, 1.5, (num_lists, len(kinds)))
    shares = np.cumsum(shares / shares.sum(1, keepdims=True), 1)
    label = (rng.random(total)[:, None] > shares[group]).sum(1).clip(max=len(kinds) - 1)
    _, form, form_spread, side, side_spread = kinds[label].T
    # A camera is nearer, higher, or looks at things from another side.
    form = form + rng.normal(0, 0.1, (num_lists, len(kinds)))[group, label]
    form = rng.normal(form, form_spread)
    side = (
        side * rng.uniform(0.75, 1.3, num_lists)[group] * np.exp(rng.normal(0, side_spread, total))
    )
    side = side * np.sqrt(size.prod(0))
    half = np.stack([side * np.exp(form / 2), side * np.exp(-form / 2)]) / 2
    middle = np.array(scene.middle)[:, None] + rng.normal(0, 0.04, (2, num_lists))[:, group]
    center = (middle + rng.normal(0, 1, (2, total)) * np.array(scene.spread)[:, None]) * size
    boxes = Boxes(np.concatenate([center - half, center + half]), size, image, label, group)
    return _draw(boxes, rng)


def _draw(boxes: Boxes, rng: np.random.Generator) -> Boxes:
    """Returns boxes as people draw them: those that are seen, cut near the edge or beyond."""
    low, high = boxes.corners[:2], boxes.corners[2:]
    seen_low, seen_high = np.maximum(low, 0), np.minimum(high, boxes.size)
    seen = np.prod(np.maximum(seen_high - seen_low, 0), 0)
    kept = (seen > 0.3 * np.prod(high - low, 0)) & ((seen_high - seen_low).min(0) > 3)
    # Tools hold some people at the edge, and others stop a pixel or two before it.
    is_exact = rng.random(boxes.group.max() + 1)[boxes.group] < 0.6
    gap = np.where(is_exact, 0, rng.integers(0, 3, (2, len(kept))))
    is_loose = rng.random(len(kept)) < rng.choice([0, 0.005])
    gap = np.where(is_loose, -rng.uniform(0, 6, len(kept)), gap)
    low, high = np.maximum(low, gap), np.minimum(high, boxes.size - gap)
    corners = np.concatenate([low, high])
    corners = corners.round() if rng.random() < 0.5 else corners.round(2)
    kept &= (corners[2:] - corners[:2]).min(0) >= 1
    return Boxes(*(each[..., kept] for each in boxes._replace(corners=corners)))


def _swap(corners: Numbers, size: Numbers) -> Numbers:
    return corners[[1, 0, 3, 2]]


def _halve(corners: Numbers, size: Numbers) -> Numbers:
    return corners / 2


def _shift(corners: Numbers, size: Numbers) -> Numbers:
    return corners + _SHIFT


def _shift_and_cut(corners: Numbers, size: Numbers) -> Numbers:
    return np.minimum(corners + _SHIFT, np.concatenate([size, size]))


FAULTS: Mapping[str, tuple[Callable[[Numbers, Numbers], Numbers], str]] = {
    "swapped": (_swap, "were swapped"),
    "half scale": (_halve, "half as large"),
    "shifted": (_shift, "are shifted"),
    "shifted, cut": (_shift_and_cut, "are shifted"),
}


def plant(boxes: Boxes, fault: str, group: int) -> Boxes:
    """Returns the boxes with those of a list as a tool with a fault writes them."""
    is_hit = boxes.group == group
    corners = boxes.corners.copy()
    corners[:, is_hit] = FAULTS[fault][0](corners[:, is_hit], boxes.size[:, is_hit])
    kept = (corners[2:] > corners[:2]).all(0)
    return Boxes(*(each[..., kept] for each in boxes._replace(corners=corners)))


def ask(boxes: Boxes) -> list[OddGroup]:
    """Returns the lists that are in doubt, and what is said of them."""
    order = np.argsort(boxes.image, kind="stable")
    corners, size, image, label, group = (each[..., order] for each in boxes)
    first = np.flatnonzero(np.diff(image, prepend=-1))
    places = np.arange(0, corners.size + 1, 4, np.int32)
    fields = {
        "label": pa.array(label.astype(str)),
        "box": pa.ListArray.from_arrays(places, corners.T.ravel()),
        "area": pa.nulls(len(image), pa.float64()),
    }
    objects = pa.StructArray.from_arrays([*fields.values()], [*fields])
    ends = np.append(first, len(image)).astype(np.int32)
    columns = {
        "file": pa.array([f"list {number}" for number in group[first]]),
        "folder": pa.nulls(len(first), pa.string()),
        "split": pa.nulls(len(first), pa.string()),
        "width": size[0][first],
        "height": size[1][first],
        "unit": np.ones(len(first), np.int64),
        "objects": pa.ListArray.from_arrays(ends, objects),
    }
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        pq.write_table(pa.table(columns), f"{folder}/images.parquet")
        return find_odd_groups(connection, f"FROM '{folder}/images.parquet'")


def is_named(found: Sequence[OddGroup], fault: str, group: int) -> bool:
    """Tells whether a list is said to have a fault, or that it or the others have it."""
    said = [each for each in found if FAULTS[fault][1] in each.fault]
    return any(each.name == f"list {group}" or "or in the others" in each.fault for each in said)


def read(path: Path, rng: np.random.Generator) -> Boxes:
    """Reads annotations of users; half of the images are one list each."""
    found = AnnotationSet(path.name, path)
    names = sorted({each.label for things in found.things.values() for each in things})
    halves = rng.permutation(len(found.photographs)) % 2
    rows = [
        (
            *each.box,
            *found.photographs[image].shown,
            number,
            names.index(each.label),
            halves[number],
        )
        for number, image in enumerate(found.photographs)
        for each in found.things[image]
        if each.box[2] > each.box[0] and each.box[3] > each.box[1]
    ]
    columns = np.array(rows, float).reshape(-1, 9).T
    image, label, group = columns[6:].astype(np.int64)
    return Boxes(columns[:4], columns[4:6], image, label, group)


def list_sets(paths: Sequence[Path], seed: int) -> Iterator[tuple[str, Boxes, np.random.Generator]]:
    """Yields the name of each set, its boxes, and what chooses the list with a fault."""
    for number, name in enumerate(paths or SCENES):
        rng = np.random.default_rng([seed, number])
        yield str(name), (read(name, rng) if paths else make(SCENES[name], rng)), rng


def main() -> None:
    """Prints a row for each set, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sets", nargs="*", type=Path, help="files or folders of annotations")
    parser.add_argument("--seeds", type=int, default=4)
    given = parser.parse_args()
    named: defaultdict[str, Counter[str]] = defaultdict(Counter)
    boxes: Counter[str] = Counter()
    for seed in range(given.seeds):
        for name, right, rng in list_sets(given.sets, seed):
            boxes[name] += len(right.group)
            said = ask(right)
            named[name]["doubted"] += bool(said)
            if said:
                print(f"{name}, right: {said[0]}", flush=True)
            group = int(rng.choice(np.unique(right.group)))
            for fault in FAULTS:
                found = ask(plant(right, fault, group))
                named[name][fault] += is_named(found, fault, group)
    columns = ["doubted", *FAULTS]
    print(f"| set | boxes | {' | '.join(columns)} |\n| --- | {' | '.join(['---:'] * 6)} |")
    named["all"] = sum(named.values(), Counter())
    for name, counts in named.items():
        cells = [f"{counts[column]}" for column in columns]
        print(f"| {name} | {boxes[name] // given.seeds or '-'} | {' | '.join(cells)} |")
    planted = given.seeds * (len(named) - 1)
    shares = ", ".join(f"{fault} {named['all'][fault] / planted:.2f}" for fault in FAULTS)
    print(f"\nNamed of {planted} sets: {shares}.")


if __name__ == "__main__":
    main()
