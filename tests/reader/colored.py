"""Images with boxes that are easy to see: each object fills its box, in the color of its label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import darkroom

LABELS = ("red", "green", "blue")
COUNT, TRAINED = 24, 16
# Nobody has looked at this image.
UNKNOWN = 6


def get_size(number: int) -> tuple[int, int]:
    """Returns (height, width) of an image."""
    return (260, 400) if number % 2 else (330, 300)


def list_objects() -> list[list[dict[str, Any]] | None]:
    """Returns what a list says of each image: up to three objects, of other labels."""
    random = np.random.default_rng(1)
    found: list[list[dict[str, Any]] | None] = []
    for number in range(COUNT):
        objects = []
        for label in LABELS[: number % 4]:
            top, left = (random.uniform(0, side - 40) for side in get_size(number))
            bottom, right = (
                random.uniform(start + 30, side)
                for start, side in zip((top, left), get_size(number), strict=True)
            )
            box = [left, top, right, bottom]
            objects.append({"label": label, "box": box, "is_crowd": int(label == "blue")})
        found.append(objects)
    found[UNKNOWN] = None
    return found


def write_records(folder: Path) -> Path:
    """Writes the images, their list, and the dataset, which has the column `number`."""
    rows = []
    for number, objects in enumerate(list_objects()):
        pixels = np.zeros((*get_size(number), 3), np.uint8)
        for each in objects or ():
            left, top, right, bottom = map(round, each["box"])
            pixels[top:bottom, left:right, LABELS.index(each["label"])] = 250
        name = f"{number}.{'png' if number % 3 else 'jpg'}"
        Image.fromarray(pixels).save(folder / name, quality=95, subsampling=0)
        split = "train" if number < TRAINED else "eval"
        rows.append({"image_uri": name, "split": split, "objects": objects, "number": number})
    (folder / "list.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    darkroom.convert(
        folder / "list.jsonl",
        folder / "records",
        label_map=LABELS,
        num_shards={"train": 3, "eval": 1},
    )
    return folder / "records"


def check_colors(image: Any, target: dict[str, Any], first_label: int = 0) -> int:
    """Checks that each box is where its color is in an image, uint8 [H, W, 3].

    Returns:
        The number of boxes.
    """
    labels = (np.asarray(target["labels"]) - first_label).tolist()
    boxes = np.asarray(target["boxes"])
    assert len(labels) == len({*labels}) == len(boxes)
    for color in range(3):
        bright = np.asarray(image)[..., color] > 125
        across, down = np.flatnonzero(bright.any(0)), np.flatnonzero(bright.any(1))
        if color not in labels:
            # A sliver of a pixel may round up to one.
            assert min(len(across), len(down)) <= 1
            continue
        box = boxes[labels.index(color)]
        if len(across):
            expected = across[0], down[0], across[-1] + 1, down[-1] + 1
            np.testing.assert_allclose(box, expected, atol=1.2)
        else:
            assert min(box[2:] - box[:2]) <= 1
    return len(labels)
